"""Where warps wait, before and after a look, and two repairs."""

from collections import Counter

#: by kernel: what must be there before the line can go on
PREDICTED = {
    # each lane is in another sector: requests queue up where they are made
    "row_sums": "9 lg_throttle",
    # the whole row is in flight, and its first use waits
    "rows_by_warps": "17 long_scoreboard",
    # 32 lanes in one bank: shared memory's queue is full
    "tile_columns": "34 mio_throttle",
    # nothing waits long: warps are ready, and there are more than one
    "padded_columns": "48 not_selected",
    # nobody needs the result, so the warp waits at its end
    "four_bins": "58 drain",
    "one_works": "73 barrier",
    # special functions share the queue of shared memory
    "sines": "82 mio_throttle",
    "in_double": "92 math_pipe_throttle",
    # one warp, and each step needs the one before
    "long_chain": "103 wait",
    "gather": "115 lg_throttle",
}


def _lines(samples):
    lines = {}
    for row in samples:
        # those are part of their partners
        if not row["reason"].endswith("_not_issued"):
            of = lines.setdefault(row["line"], Counter())
            of[row["reason"]] += row["samples"]
    return lines


def by_line(samples):
    return {str(line): sum(of.values()) for line, of in _lines(samples).items()}


def leading(samples):
    waits = {}
    for line, of in _lines(samples).items():
        # a warp that is selected does not wait
        waits[line] = {reason: of[reason] for reason in of if reason != "selected"}
    line = max(waits, key=lambda line: sum(waits[line].values()))
    reason = max(waits[line], key=lambda reason: waits[line][reason])
    return f"{line} {reason}"


def predict(kernel):
    return PREDICTED[kernel["name"]]


def reads(row, columns):
    first, end = row * columns, (row + 1) * columns
    return [list(range(at, min(at + 32, end))) for at in range(first, end, 32)]


def words(rows, columns):
    # a word more in each row: the next row begins a bank later
    return [
        [row * (columns + 1) + column for column in range(columns)]
        for row in range(rows)
    ]
