"""Words of reports and figures, with what they mean and the lab that teaches them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache

from warpbook.mcp.marked import Own
from warpbook_monitors import metrics
from warpbook_monitors.verdict_kinds import MEANINGS


def explained(term: str) -> list[object]:
    """Say what a word means: as a verdict, a metric, a change, a reason of stalls."""
    return list(_meanings(term.strip()))


def known_terms(term: str) -> Own:
    """Name the words that are most like one that is not known."""
    words = sorted({*MEANINGS, *metrics.GPU, *metrics.MIG, *_stalls(), *_changes()})
    near = difflib.get_close_matches(term, words, 8, 0.3) or list(MEANINGS)
    return Own(", ".join(near))


def _meanings(term: str) -> Iterator[dict[str, object]]:
    from warpbook_profiler.stalls.reasons import stall_reasons

    for kind, meaning in MEANINGS.items():
        if kind == term:
            yield {"verdict": Own(kind), "means": Own(meaning)}
    metric = metrics.GPU.get(term) or metrics.MIG.get(term)
    if metric is not None:
        yield {
            "metric": Own(metric.name),
            "unit": Own(metric.unit),
            "label": Own(metric.label),
            "means": Own(metric.meaning),
        }
    reason = stall_reasons().get(term)
    if reason is not None:
        yield {
            "stall": Own(term),
            "a_warp": Own(reason.words),
            "advice": Own(reason.advice),
            "lab": None if reason.lab is None else Own(reason.lab),
        }
    change = _changes().get(term)
    if change is not None:
        what, time, lab = change
        yield {
            "change": Own(term),
            "means": Own(what),
            "its_time": Own(time),
            "lab": None if lab is None else Own(lab),
        }


def _stalls() -> list[str]:
    from warpbook_profiler.stalls.reasons import stall_reasons

    return list(stall_reasons())


@cache
def _changes() -> dict[str, tuple[str, str, str | None]]:
    """By name what a change is, its time and its lab."""
    from warpbook_profiler.techniques.registry import OWN

    return {
        name: (kind.what, kind.time, kind.lab)
        for technique in OWN
        for kind in technique.changes
        for name in kind.names
    }
