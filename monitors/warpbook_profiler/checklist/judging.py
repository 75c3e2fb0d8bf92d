"""Goes through the checklist with a profile."""

from __future__ import annotations

from collections import Counter

from warpbook_profiler.checklist.answers import (
    ANSWERS,
    Checklist,
    Judgement,
    Labs,
    Line,
)
from warpbook_profiler.checklist.code_settings import CodeSettings
from warpbook_profiler.checklist.facts import Facts
from warpbook_profiler.checklist.items import ITEMS, Item
from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.model.cell_profile import CellProfile

_NO_GPU = Judgement(
    "unknown",
    "Nothing of a GPU is in the profile.",
    "Record it where the GPU is, with ProfilerActivity.CUDA.",
)
_NO_PHASE = Judgement(
    "unknown",
    "No operators are in the profile, so that training can't be told from inference.",
    "Record with ProfilerActivity.CPU, too.",
)


def checklist(
    profile: CellProfile,
    labs: Labs,
    source: str | None = None,
    process: ProcessState | None = None,
) -> Checklist:
    """Answer each item.

    Args:
        profile: of what ran.
        labs: which lab teaches an item.
        source: the code that ran, which is parsed and never run; None if not known.
        process: settings of the process that ran it, as far as they are known.
    """
    facts = Facts(profile, CodeSettings(source), process or ProcessState())
    lines = tuple(_line(item, facts, labs) for item in ITEMS)
    counts = Counter(line.answer for line in lines)
    return Checklist(
        lines,
        ", ".join(f"{counts[answer]} {answer}" for answer in ANSWERS) + ".",
        profile.completeness.warnings,
    )


def _line(item: Item, facts: Facts, labs: Labs) -> Line:
    judgement = _judgement(item, facts)
    return Line(
        item.name,
        item.part,
        item.question,
        judgement.answer,
        judgement.evidence,
        judgement.advice,
        labs.get(item.name),
    )


def _judgement(item: Item, facts: Facts) -> Judgement:
    if item.part != "any work" and not facts.host_names:
        return _NO_PHASE
    if item.part == "training" and not facts.trains:
        return Judgement("not applicable", "No backward pass is in this window.")
    if item.part == "inference" and facts.trains:
        return Judgement("not applicable", "The window trains.")
    if item.part == "inference" and not facts.has_layers:
        return Judgement("not applicable", "No layer of a model is in this window.")
    if item.is_of_gpu:
        if not facts.has_gpu_work:
            return _NO_GPU
        refusal = facts.profile.completeness.refusal
        if refusal:
            return Judgement("unknown", refusal, "Record it again.")
    return item.rule(facts)
