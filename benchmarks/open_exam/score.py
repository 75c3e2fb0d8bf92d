"""Score answers by the measured truth: `python score.py ANSWERS... truth.json`.

It needs Python alone. README.md says what both files hold. What an answer does not say
is an abstention, which is counted, and no error.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: a time is good within this factor
NEAR = 1.25
#: more than this many times as fast is the promise of a gain
GAIN = 1.1
#: a change must be among so many
FIRST = 2
#: causes where the GPU decides the time, and where the host does
GPU = frozenset({"compute-bound", "memory-bound", "transfer-bound"})
HOST = frozenset({"launch-bound", "sync-bound", "host-bound"})

#: of a cell, of what was measured of it, or of what is said of it
Facts = dict[str, Any]


class Score(NamedTuple):
    """One criterion."""

    name: str
    right: int
    said: int
    asked: int
    #: how far off times are, as shares: 0.1 is a tenth
    errors: tuple[float, ...] = ()


def scores(answers: Facts, truth: Facts) -> Iterator[Score]:
    """Compare what is said of each trace with the truth, by each criterion."""
    papers = [
        (truth["cells"][trace["cell"]], trace, answers["traces"].get(name) or {})
        for name, trace in truth["traces"].items()
    ]
    for name, judge in CRITERIA.items():
        marks = [mark for paper in papers for mark in judge(*paper)]
        said = [mark for mark in marks if mark is not None]
        errors = tuple(mark for mark in said if not isinstance(mark, bool))
        right = sum(
            mark if isinstance(mark, bool) else mark <= NEAR - 1 for mark in said
        )
        yield Score(name, right, len(said), len(marks), errors)


#: right or wrong, how far off a time is, or not said
Mark = bool | float | None
_Judge = Callable[[Facts, Facts, Facts], Iterator[Mark]]


def decided_by(kinds: Iterable[str]) -> str | None:
    """Tell whether GPU or host decides the time; None where these causes differ."""
    if set(kinds) <= GPU:
        return "GPU"
    return "host" if set(kinds) <= HOST else None


def error_of(said_ms: float, measured_ms: float) -> float:
    """Return how far off a time is: a half and twice as much are both 1."""
    return max(said_ms / measured_ms, measured_ms / said_ms) - 1


def holds(
    low_ms: float | None, high_ms: float | None, least_ms: float, most_ms: float
) -> bool:
    """Tell whether a range meets that of the measured times; None is no end."""
    over = low_ms is not None and low_ms > most_ms
    under = high_ms is not None and high_ms < least_ms
    return not over and not under


def _ends(times: Facts) -> tuple[float, float]:
    return times["least_ms"], times["most_ms"]


def _who(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    right = decided_by(cell["kinds"])
    if right is not None:
        kind = answer.get("kind")
        said = answer.get("decided_by") or (decided_by([kind]) if kind else None)
        yield None if said is None else said == right


def _kind(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    kind = answer.get("kind")
    yield None if kind is None else kind in cell["kinds"]


def _bare(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    if decided_by(cell["kinds"]) == "GPU":
        said = answer.get("time_ms")
        yield None if said is None else error_of(said, trace["before"]["median_ms"])


def _bare_range(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    if decided_by(cell["kinds"]) == "host":
        ends = answer.get("low_ms"), answer.get("high_ms")
        yield None if None in ends else holds(*ends, *_ends(trace["before"]))


def _named(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    if cell["changes"] and cell["judged"] != "no gain":
        names = [change["name"] for change in answer.get("changes", ())[:FIRST]]
        yield bool(set(names) & set(cell["changes"])) if names else None


def _made(cell: Facts, answer: Facts) -> Facts:
    """Return what is said of the change that the fast cell makes."""
    own = (
        change
        for change in answer.get("changes", ())
        if change["name"] == cell["changes"][0]
    )
    return next(own, {})


def _time(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    if cell["changes"] and cell["judged"] == "prediction" and trace["fixed"]:
        said = _made(cell, answer).get("time_ms")
        yield None if said is None else error_of(said, trace["fixed"]["median_ms"])


def _range(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    """Judge ranges and lower bounds."""
    if cell["changes"] and cell["judged"] != "no gain" and trace["fixed"]:
        change = _made(cell, answer)
        high = change.get("high_ms") if cell["judged"] == "prediction" else None
        ends = change.get("low_ms"), high
        yield None if ends == (None, None) else holds(*ends, *_ends(trace["fixed"]))


def _no_gain(cell: Facts, trace: Facts, answer: Facts) -> Iterator[Mark]:
    """Judge where nothing is gained: no change may be surely faster."""
    if cell["judged"] != "no gain":
        return
    slowest = [
        change.get("high_ms") or change["time_ms"]
        for change in answer.get("changes", ())
        if change.get("time_ms") is not None
        # a good cell has none at all, another may have further changes
        and (not cell["changes"] or change["name"] in cell["changes"])
    ]
    least = min(slowest, default=float("inf"))
    is_none = trace["before"]["median_ms"] < GAIN * least
    yield is_none if "changes" in answer else None


CRITERIA: dict[str, _Judge] = {
    "GPU or host decides": _who,
    "kind of the cause": _kind,
    "time without the profiler, where the GPU decides": _bare,
    "its range, where the host decides": _bare_range,
    f"expert's change among the first {FIRST}": _named,
    "time after the change": _time,
    "range or bound of it": _range,
    "no gain promised where there is none": _no_gain,
}


def unseen(truth: Facts) -> Facts:
    """Leave out the cells that shaped a tool which takes part."""
    traces = {
        name: trace
        for name, trace in truth["traces"].items()
        if truth["cells"][trace["cell"]]["unseen"]
    }
    return {**truth, "traces": traces}


def table(answers: Sequence[Facts], truth: Facts) -> str:
    """Write the scores of all side by side, in Markdown."""
    columns = [list(scores(answer, truth)) for answer in answers]
    rows = [
        "| | asked | " + " | ".join(answer["tool"] for answer in answers) + " |",
        "| --- | --- |" + " --- |" * len(answers),
    ]
    for row in zip(*columns, strict=True):
        cells = (_words(score) for score in row)
        rows.append(f"| {row[0].name} | {row[0].asked} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _words(score: Score) -> str:
    if not score.said:
        return "not said"
    words = f"{score.right} of {score.said} right"
    if score.errors:
        words += f", median error {100 * statistics.median(score.errors):.1f} %"
    left = score.asked - score.said
    return words + (f"; {left} not said" if left else "")


def main(paths: Sequence[str]) -> int:
    """Print the table; 2 where the files can't be scored."""
    if len(paths) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        *answers, truth = (json.loads(Path(path).read_bytes()) for path in paths)
        names = {name for answer in answers for name in answer["traces"]}
        if unknown := names - set(truth["traces"]):
            raise ValueError(f"no such trace: {min(unknown)}")
        for words, part in (("All", truth), ("Unseen", unseen(truth))):
            if part["traces"]:
                print(f"{words}: {len(part['traces'])} traces\n")
                print(table(answers, part), end="\n\n")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"can't be scored: {error!r}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
