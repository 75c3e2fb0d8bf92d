"""Rules for a prediction, and a tile that takes no word more than it has elements."""

from collections import Counter

#: what is in a line of the kernel, the first that is found; the reason that it means
RULES = (
    ("atomicAdd", "drain"),
    ("* scale", "barrier"),
    ("__sinf", "mio_throttle"),
    ("other * 0.5", "math_pipe_throttle"),
    ("0.999f", "wait"),
    ("tile[lane * 32", "mio_throttle"),
    ("tile[lane * 33", "not_selected"),
    ("x[row * 64 + lane]", "long_scoreboard"),
    ("sum += x[", "lg_throttle"),
)


def by_line(samples):
    found = {}
    for row in samples:
        if row["reason"][-11:] != "_not_issued":
            key = str(row["line"])
            found[key] = row["samples"] + found.get(key, 0)
    return found


def leading(samples):
    waiting = [
        row
        for row in samples
        if row["reason"] != "selected" and "_not_issued" not in row["reason"]
    ]
    lines = by_line(waiting)
    most = int(max(lines, key=lines.get))
    reasons = Counter()
    for row in waiting:
        if row["line"] == most:
            reasons[row["reason"]] += row["samples"]
    return f"{most} {max(reasons, key=reasons.get)}"


def predict(kernel):
    for text, reason in RULES:
        for row in kernel["source"]:
            if text in row["code"]:
                return f"{row['line']} {reason}"
    return ""


def reads(row, columns):
    steps = []
    for element in range(columns):
        if element % 32 == 0:
            steps.append([])
        steps[-1].append(row * columns + element)
    return steps


def words(rows, columns):
    # the lowest five bits say which bank: each row turns them by its number
    return [
        [row * columns + (column ^ (row % 32)) for column in range(columns)]
        for row in range(rows)
    ]
