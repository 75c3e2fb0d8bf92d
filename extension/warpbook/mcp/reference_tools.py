"""`memory`, `explain`, `labs`: what needs no GPU and no run."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator
from functools import cache
from typing import Annotated

from msgspec import Meta, field

from warpbook.mcp.answer import Answer
from warpbook.mcp.lab_policy import allow, left_out_words, refused
from warpbook.mcp.marked import Own
from warpbook.mcp.source import Source, ToolError
from warpbook.mcp.tool import Arguments, Tool
from warpbook_labs.lab.entries import LabEntry
from warpbook_monitors import metrics
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.model_memory.fit import read_gpu_size
from warpbook_monitors.model_memory.models import known_names, read_model
from warpbook_monitors.model_memory.plan import HELP, Plan
from warpbook_monitors.model_memory.view import model_memory, view_of_memory
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.verdict_kinds import MEANINGS


class Memory(Arguments, frozen=True, kw_only=True):
    """A model, and how it is trained or served."""

    model: Annotated[
        str, Meta(max_length=100, description="One of: " + ", ".join(known_names()))
    ]
    gpu_size: Annotated[
        str, Meta(max_length=20, description="As it is sold, such as 80GB.")
    ] = ""
    plan: Annotated[
        Plan,
        Meta(description="; ".join(f"{name}: {words}" for name, words in HELP.items())),
    ] = field(default_factory=Plan)


class Explain(Arguments, frozen=True, kw_only=True):
    """A word of a report or a figure."""

    term: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=100,
            description="A verdict, a metric, a change, a reason why warps wait, or a "
            "lab: launch-bound, sm_active_ratio, long_scoreboard.",
        ),
    ]


class Labs(Arguments, frozen=True, kw_only=True):
    """Which labs."""

    track: Annotated[str, Meta(max_length=40, description="One track alone.")] = ""


async def _memory(source: Source, asked: Memory) -> Answer:
    if asked.model not in known_names():
        # a name that is none would be taken for a file
        known = ", ".join(known_names())
        raise ToolError(f"That is not a known model. There are {known}.")
    try:
        capacity = read_gpu_size(asked.gpu_size) if asked.gpu_size else None
        memory = model_memory(read_model(asked.model), asked.plan, capacity)
    except (MonitorError, ValueError) as problem:
        raise ToolError("It can't be computed:", bounded(str(problem), 400)) from None
    view = view_of_memory(memory, asked.plan)
    head: dict[str, object] = {
        "model": Own(asked.model),
        "by": Own("formula, not by measurement"),
        "parameters": memory.parameters,
        "gpus": memory.gpus,
        "heaviest_gpu": view.title,
        "where": view.where,
        "peak_bytes": view.peak_bytes,
        "capacity_bytes": view.capacity_bytes,
        "fit": view.fit,
    }
    rows = [[row.label, row.text] for row in view.rows]
    see = {"in_a_terminal": Own(f"warpbook memory {asked.model}")}
    return Answer(head, rows, (), see)


async def _explain(source: Source, asked: Explain) -> Answer:
    # techniques need NumPy, which is not for the event loop
    found = await asyncio.to_thread(explained, asked.term)
    if not found:
        listing = await source.labs()
        found = [dict(_lab(lab)) for lab in listing.labs if lab.id == asked.term]
        if found:
            await allow(asked.term, "teach")
    if not found:
        terms = await asyncio.to_thread(known_terms, asked.term)
        raise ToolError("That is no word of warpbook's. Near it are: " + terms)
    return Answer({"term": asked.term}, found)


async def _labs(source: Source, asked: Labs) -> Answer:
    listing = await source.labs()
    tracks = sorted({lab.track for lab in listing.labs})
    head = {"tracks": tracks, "next_lab": listing.next_lab, "notice": listing.notice}
    wanted = [lab for lab in listing.labs if asked.track in ("", lab.track)]
    hidden = await refused([lab.id for lab in wanted], "see")
    rows = [dict(_lab(lab)) for lab in wanted if lab.id not in hidden]
    unknown = [*listing.problems, *filter(None, [left_out_words(len(hidden))])]
    see = {"in_jupyterlab": Own("warpbook's labs in the launcher")}
    return Answer(head, rows, unknown, see)


def _lab(lab: LabEntry) -> Iterator[tuple[str, object]]:
    yield "lab", lab.id
    yield "title", lab.title
    yield "track", lab.track
    yield "language", lab.language
    yield "minutes", lab.minutes
    yield "goal", lab.goal
    if lab.after:
        yield "after", list(lab.after)
    yield "can_check", lab.can_check
    if lab.why:
        yield "why", lab.why
    if lab.progress is None:
        yield "progress", Own("not known")
    else:
        yield "progress", Own(lab.progress.state)


REFERENCE_TOOLS = (
    Tool(
        "memory",
        "What training or serving a model needs of a GPU's memory, by formula, and "
        "whether it fits.",
        Memory,
        _memory,
    ),
    Tool(
        "explain",
        "What a verdict, metric, change or reason of stalls means, what to do about "
        "it, and which lab teaches it.",
        Explain,
        _explain,
    ),
    Tool(
        "labs",
        "The labs with their goals, what comes before each, and how far the person is.",
        Labs,
        _labs,
    ),
)


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
