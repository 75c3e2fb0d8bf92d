"""Read where warps wait, predict it, and repair it. Fill in the five functions.

`by_line` and `leading` get samples of one kernel, as CUPTI counts them:

    [{"offset": 256, "line": 10, "reason": "long_scoreboard", "samples": 812},
     {"offset": 256, "line": 10, "reason": "long_scoreboard_not_issued",
      "samples": 700},
     {"offset": 272, "line": 10, "reason": "selected", "samples": 64}, ...]

`predict` gets a kernel of `kernels.cu`:

    {"name": "four_bins", "blocks": 2048, "threads": 256,
     "source": [{"line": 53, "code": "extern ... void four_bins(...)"}, ...]}
"""


def by_line(samples):
    """Add up the samples of each line."""
    lines = {}
    for row in samples:
        line = str(row["line"])
        lines[line] = lines.get(line, 0) + row["samples"]
    return lines


def leading(samples):
    """Name the line at which most warps wait, and what for."""
    most = max(samples, key=lambda row: row["samples"])
    return f"{most['line']} {most['reason']}"


def predict(kernel):
    """Name line and reason before looking."""
    return f"{kernel['source'][0]['line']} long_scoreboard"


def reads(row, columns):
    """Say what the lanes of a warp read, step by step."""
    # here each lane sums up a row of its own
    return [[lane * columns + step for lane in range(32)] for step in range(columns)]


def words(rows, columns):
    """Say where each element of a tile lies."""
    return [list(range(row * columns, (row + 1) * columns)) for row in range(rows)]
