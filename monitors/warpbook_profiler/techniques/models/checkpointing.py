"""Activations that are computed again in the backward pass, or should be."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import BACKWARD, Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.checkpoint_code import without_checkpoints
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line
from warpbook_profiler.events.columns import NONE, Int64s, distinct, rows_by
from warpbook_profiler.facts.traffic import tensor_sizes
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_CHECKPOINT = re.compile(r"CheckpointFunction|torch::checkpoint")
#: of the GPU's memory, from which a larger batch no longer fits
_NEARLY_FULL = 0.85
#: a variable of such a name is mostly a file's content
_CHECKPOINTS = (
    "checkpoint_sequential",
    "gradient_checkpointing_enable",
    "apply_activation_checkpointing",
)
#: of the GPU's memory, from which keeping activations may not fit
_MOST_MEMORY = 0.8
#: of what is computed again, what the forward pass has too
_LEAST_ALIKE = 0.8


def checkpoint_off(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to keep the activations that are computed again."""
    operators = evidence.operators
    again = _again(operators)
    if not len(again):
        return
    made = np.intersect1d(np.flatnonzero(operators.within(again)), operators.launching)
    kept_bytes = sum(
        max(tensor_sizes(operators.operands(one)) or [0]) for one in made.tolist()
    )
    run = evidence.run
    has_bytes = run.gpus[0].memory_bytes if run.gpus else None
    needed_bytes = (run.peak_allocated_bytes or 0) + kept_bytes
    if has_bytes is not None and needed_bytes > _MOST_MEMORY * has_bytes:
        return
    table, ways = operators.table, Ways(evidence)
    ways.drop_operators(again)
    # what calls them is Python's
    for rows in rows_by(operators.parent[again]):
        mine = again[rows]
        first, last = mine[:1], mine[-1:]
        ways.drop_host(
            int(table.track[first[0]]), table.start_ns[first], table.end_ns[last]
        )
    events = operators.launched_within(again)
    yield Proposal(
        name="checkpoint-off",
        title="Keep the activations: call the functions without checkpoint.",
        evidence=(
            f"The backward pass computes the forward pass of {len(again):,} operators "
            f"again: {units.share(evidence.share(evidence.time_ns(events)))} of the "
            "bare run."
        ),
        ways=ways,
        reason=f"It needs up to {units.size(kept_bytes)} more of the GPU's memory.",
        operator=operators.name(int(again[0])),
        line=evidence.code.first_line("checkpoint"),
        code=without_checkpoints(evidence.code),
    )


def _again(operators: Operators) -> Int64s:
    """Give the operators of a forward pass that a backward pass calls."""
    table = operators.table
    steps = [name.startswith(BACKWARD) for name in table.names]
    is_step = np.array([*steps, False])[table.name]
    if not is_step.any():
        return np.zeros(0, np.int64)
    in_backward = operators.within(np.flatnonzero(is_step))
    # where autograd records, it is no part of going back
    is_forward = in_backward & (table.sequence != NONE)
    is_forward &= ~is_step & operators.named(
        *(name for name in table.names if name.startswith("aten::"))
    )
    above = operators.parent
    is_top = is_forward & ~np.append(is_forward, False)[above]
    kind = table.name.astype(np.int64) * (len(table.operands) + 1) + table.operand
    outside = distinct(kind[~in_backward])
    tops = np.flatnonzero(is_top)
    alike = np.isin(kind[tops], outside)
    return tops if alike.sum() >= _LEAST_ALIKE * len(tops) else tops[:0]


def _judge(facts: Facts) -> Judgement:
    if any(_CHECKPOINT.search(name) for name in facts.host_names):
        return Judgement("yes", "The backward pass recomputes activations.")
    line = facts.code.called(*_CHECKPOINTS)
    if line is not None:
        return Judgement(
            "yes", (f"The code uses activation checkpointing{at_line(line)}.")
        )
    line = facts.code.called("checkpoint")
    if line is not None and facts.code.imports_from("torch.utils.checkpoint"):
        return Judgement(
            "yes", (f"The code uses activation checkpointing{at_line(line)}.")
        )
    if line is not None:
        return Judgement(
            "unknown",
            f"The code calls checkpoint{at_line(line)}, and the trace does not show "
            "which: that of torch.utils recomputes activations, another may save a "
            "file.",
            "Check that line.",
        )
    retries = sum(use.retries for use in facts.profile.memory)
    if retries:
        times = "once" if retries == 1 else f"{retries:,} times"
        return Judgement(
            "no",
            f"The GPU's memory was full {times}, and torch freed some of its cache.",
            "Checkpoint the longest layers (torch.utils.checkpoint), which costs about "
            "one more forward pass of them. warpbook memory computes what it saves.",
        )
    peak, total = facts.profile.peak_reserved_bytes, facts.process.gpu_memory_bytes
    if peak is None or total is None:
        return Judgement(
            "unknown",
            "It is not known how full the GPU's memory was.",
            "Profile the cell by %%gpuprof --memory and ask %gpuadvise, or run the "
            "script by warpbook advise SCRIPT.",
        )
    evidence = f"At its peak, torch held {units.size(peak, total)} of the GPU's memory."
    if peak < _NEARLY_FULL * total:
        return Judgement(
            "not applicable",
            f"{evidence} There is free memory, and checkpoints cost time.",
        )
    return Judgement(
        "no",
        evidence,
        "Checkpoint layers (torch.utils.checkpoint) if a larger batch is to fit. "
        "warpbook memory computes what it saves; it costs time.",
    )


CHECKPOINTING = Question(
    name="checkpointing",
    text="Are activations checkpointed where memory is short?",
    judge=_judge,
    no_where="in training, the GPU's memory was full, or 85 % full at its peak",
    lab="checkpointing",
    part="training",
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("checkpoint-off",),
            what="activations that are recomputed, with memory to spare",
            time="predicted",
            lab="checkpointing",
        ),
    ),
    rule=checkpoint_off,
    questions=(CHECKPOINTING,),
    untried="Only you know how much memory other cells need.",
)
