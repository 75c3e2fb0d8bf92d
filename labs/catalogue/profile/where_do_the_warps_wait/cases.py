"""Samples as an H200 took them, and others on which mistakes show."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpbook_labs.lab.python.questions import Question
from warpbook_profiler.stalls.reasons import stall_reason

Row = dict[str, Any]
Kernel = dict[str, Any]
_HERE = Path(__file__).parent
_FILE = json.loads((_HERE / "recorded.json").read_text(encoding="utf-8"))
_RECORDED: list[Kernel] = [
    {
        **kernel,
        "samples": [
            {
                "offset": offset,
                "line": line,
                "reason": _FILE["reasons"][reason],
                "samples": samples,
            }
            for offset, line, reason, samples in kernel["samples"]
        ],
    }
    for kernel in _FILE["kernels"]
]
_SOURCE = (_HERE / "kernels.cu").read_text(encoding="utf-8").splitlines()
_SELECTED, _NOT_ISSUED = "selected", "_not_issued"
#: a line or a reason leads by so much, or the kernel is not asked about
_CLEAR = 1.1
_BANKS, _SECTOR = 32, 8
_REASONS = ("long_scoreboard", "lg_throttle", "mio_throttle", "barrier", "wait")


def _counted(samples: list[Row], *, is_once: bool = True) -> dict[int, Counter[str]]:
    lines: dict[int, Counter[str]] = {}
    for row in samples:
        if not (is_once and row["reason"].endswith(_NOT_ISSUED)):
            of = lines.setdefault(row["line"], Counter())
            of[row["reason"]] += row["samples"]
    return lines


def _waits(of: Counter[str]) -> Counter[str]:
    return Counter({name: of[name] for name in of if name != _SELECTED})


def _ranked(amounts: dict[Any, int]) -> list[Any]:
    return sorted(amounts, key=lambda name: -amounts[name])


def _led_by(amounts: dict[Any, int]) -> Any:
    """Return what leads; None where the second is close."""
    first, *others = _ranked(amounts)
    if others and amounts[first] < _CLEAR * amounts[others[0]]:
        return None
    return first


def _leading(
    samples: list[Row], *, is_once: bool = True, waits_alone: bool = True
) -> tuple[int, str] | None:
    lines = _counted(samples, is_once=is_once)
    of = {
        line: (_waits(seen) if waits_alone else seen).total()
        for line, seen in lines.items()
    }
    line = _led_by(of)
    reason = None if line is None else _led_by(_waits(lines[line]))
    return None if reason is None else (line, reason)


def _of_instruction(samples: list[Row]) -> int:
    """Return the line of the instruction with most samples."""
    return int(max(samples, key=lambda row: row["samples"])["line"])


def _of_all(samples: list[Row]) -> str:
    """Return the reason for which most warps of the whole kernel wait."""
    total = sum(_counted(samples).values(), Counter[str]())
    return max(_waits(total), key=lambda name: total[name])


def _drawn(rng: random.Random) -> list[Row]:
    """Draw samples that give another answer to who forgets something."""
    while True:
        samples = [
            {"offset": 16 * (5 * line + at), "line": line, "reason": reason}
            | {"samples": rng.randint(1, 400)}
            for line in rng.sample(range(8, 40), 4)
            for at in range(rng.randint(1, 5))
            for reason in (*rng.sample(_REASONS, 2), _SELECTED)
        ]
        samples += [
            {**row, "reason": row["reason"] + _NOT_ISSUED}
            | {"samples": rng.randint(0, row["samples"])}
            for row in samples
            if row["reason"] != _SELECTED
        ]
        right = _leading(samples)
        if (
            right is not None
            and _leading(samples, is_once=False) != right
            and _leading(samples, waits_alone=False) != right
            and _of_instruction(samples) != right[0]
            and _of_all(samples) != right[1]
        ):
            rng.shuffle(samples)
            return samples


def _taken(kernel: Kernel, rng: random.Random) -> list[Row]:
    """Give a recording as it comes: in no order, and in parts."""
    rows = []
    for row in kernel["samples"]:
        part = rng.randint(0, row["samples"])
        rows += [{**row, "samples": part}, {**row, "samples": row["samples"] - part}]
    rng.shuffle(rows)
    return [row for row in rows if row["samples"]]


def _lines_of(name: str) -> list[Row]:
    first = next(at for at, code in enumerate(_SOURCE) if f" {name}(" in code)
    last = _SOURCE.index("}", first)
    numbers = range(first, last + 1)
    return [{"line": at + 1, "code": _SOURCE[at]} for at in numbers]


def questions(rng: random.Random) -> list[Question]:
    """Ask about recordings, samples that are drawn, and repairs."""
    asked = []
    for kernel in _RECORDED:
        samples = _taken(kernel, rng)
        about = f"`{kernel['name']}`, as an H200 ran it"
        asked.append(Question("by_line", {"samples": samples}, about))
        if _leading(samples) is not None:
            asked.append(Question("leading", {"samples": samples}, about))
        given = {name: kernel[name] for name in ("name", "blocks", "threads")}
        given["source"] = _lines_of(kernel["name"])
        asked.append(Question("predict", {"kernel": given}, about))
    for _ in range(6):
        drawn = {"samples": _drawn(rng)}
        asked.append(Question("by_line", drawn, "samples that are drawn"))
        asked.append(Question("leading", drawn, "samples that are drawn"))
    widths = [8, 32, 40, 264, 8 * rng.randint(1, 40), 8 * rng.randint(1, 40)]
    for columns in widths:
        row = {"row": rng.randint(0, 1000), "columns": columns}
        asked.append(Question("reads", row, "a row of a matrix"))
    tiles = [(32, 32), (32, 64), (64, 32), (32 * rng.randint(1, 4), 96)]
    for rows, columns in tiles:
        tile = {"rows": rows, "columns": columns}
        asked.append(Question("words", tile, "a tile"))
    return asked


def judge(question: Question, answer: Any) -> str:
    """Compare with what was recorded, or try the repair."""
    judged: dict[str, Callable[[dict[str, Any], Any], str]] = {
        "by_line": _judge_lines,
        "leading": _judge_leading,
        "predict": _judge_prediction,
        "reads": _judge_reads,
        "words": _judge_words,
    }
    return judged[question.function](question.arguments, answer)


def _judge_lines(given: dict[str, Any], answer: Any) -> str:
    right = {str(line): of.total() for line, of in _counted(given["samples"]).items()}
    if answer == right:
        return ""
    line = next(
        line for line in (*right, *answer) if answer.get(line) != right.get(line)
    )
    got, wanted = answer.get(line, "nothing"), right.get(line, "nothing")
    return f"Returned {got} for line {line}; expected {wanted}."


def _judge_leading(given: dict[str, Any], answer: Any) -> str:
    right = _leading(given["samples"])
    words = "" if right is None else f"{right[0]} {right[1]}"
    return "" if answer == words else f"Returned {answer!r}; expected {words!r}."


def _judge_prediction(given: dict[str, Any], answer: Any) -> str:
    name = given["kernel"]["name"]
    kernel = next(one for one in _RECORDED if one["name"] == name)
    lines = {line: _waits(of) for line, of in _counted(kernel["samples"]).items()}
    total = sum(lines.values(), Counter[str]())
    by_line = {line: of.total() for line, of in lines.items()}
    most = _ranked(by_line)[0]
    reason = max(lines[most], key=lambda one: lines[most][one])
    # compilers give some waits to the line behind
    near = (most - 1, most, most + 1)
    if answer in {f"{at} {why}" for at in near for why in _ranked(total)[:2]}:
        return ""
    share = 100 * by_line[most] / total.total()
    return (
        f"Predicted {answer!r}; in the recording {share:.0f} % of what waits is at "
        f"line {most}, where a warp mostly {stall_reason(reason).words} (`{reason}`)."
    )


def _judge_reads(given: dict[str, Any], answer: Any) -> str:
    first, columns = given["row"] * given["columns"], given["columns"]
    if any(len(step) > _BANKS for step in answer):
        return "A warp has 32 lanes, and a step has more elements."
    read = sorted(element for step in answer for element in step)
    if read != list(range(first, first + columns)):
        return f"The row has the elements {first} to {first + columns - 1}, each once."
    least = -(-columns // _BANKS)
    if len(answer) != least:
        return f"It takes {len(answer)} steps; {least} are enough."
    for step in answer:
        sectors = len({element // _SECTOR for element in step})
        if sectors > -(-len(step) // _SECTOR):
            return f"A step of {len(step)} elements touches {sectors} sectors."
    return ""


def _judge_words(given: dict[str, Any], answer: Any) -> str:
    rows, columns = given["rows"], given["columns"]
    if [len(row) for row in answer] != [columns] * rows:
        return f"The tile has {rows} rows of {columns}."
    words = [word for row in answer for word in row]
    if len(set(words)) != len(words):
        return "Two elements lie in one word."
    if min(words) < 0 or max(words) >= rows * (columns + 1):
        return f"There are {rows * (columns + 1)} words."
    sides = {"row": answer, "column": list(zip(*answer, strict=True))}
    for side, groups in sides.items():
        for group in groups:
            for begin in range(0, len(group), _BANKS):
                lanes = group[begin : begin + _BANKS]
                if len({word % _BANKS for word in lanes}) < len(lanes):
                    return f"32 neighbours of a {side} meet in a bank."
    return ""
