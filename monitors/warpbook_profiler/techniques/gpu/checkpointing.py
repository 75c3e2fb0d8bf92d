"""Activations that are computed again; a trace tells no gain of it."""

from __future__ import annotations

import re

from warpbook_monitors import units
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line
from warpbook_profiler.techniques.technique import Technique

_CHECKPOINT = re.compile(r"CheckpointFunction|torch::checkpoint")
#: of the GPU's memory, from which a larger batch no longer fits
_NEARLY_FULL = 0.85
#: a variable of such a name is mostly a file's content
_CHECKPOINTS = (
    "checkpoint_sequential",
    "gradient_checkpointing_enable",
    "apply_activation_checkpointing",
)


def _judge(facts: Facts) -> Judgement:
    if any(_CHECKPOINT.search(name) for name in facts.host_names):
        return Judgement("yes", "The backward pass computes activations again.")
    line = facts.code.called(*_CHECKPOINTS)
    if line is not None:
        return Judgement("yes", f"The code checkpoints{at_line(line)}.")
    line = facts.code.called("checkpoint")
    if line is not None and facts.code.imports_from("torch.utils.checkpoint"):
        return Judgement("yes", f"The code checkpoints{at_line(line)}.")
    if line is not None:
        return Judgement(
            "unknown",
            f"The code calls checkpoint{at_line(line)}, and the trace does not tell "
            "whose: that of torch.utils computes activations again, another saves a "
            "file.",
            "Look at that line.",
        )
    retries = sum(use.retries for use in facts.profile.memory)
    if retries:
        times = "once" if retries == 1 else f"{retries:,} times"
        return Judgement(
            "no",
            f"The GPU's memory was full {times}, and torch gave some back.",
            "Checkpoint the longest layers (torch.utils.checkpoint), which costs about "
            "one more forward pass of them. warpbook memory computes what it saves.",
        )
    peak, total = facts.profile.peak_reserved_bytes, facts.process.gpu_memory_bytes
    if peak is None or total is None:
        return Judgement(
            "unknown",
            "How full the GPU's memory was is not known.",
            "Profile the cell by %%gpuprof --memory and ask %gpuadvise, or run the "
            "script by warpbook advise SCRIPT.",
        )
    evidence = f"At its peak torch held {units.size(peak, total)} of the GPU."
    if peak < _NEARLY_FULL * total:
        return Judgement(
            "not applicable", f"{evidence} There is room, and checkpoints cost time."
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
    no_where="in training, the GPU's memory was full, or at its peak to 85 %",
    lab="checkpointing",
    part="training",
)


TECHNIQUE = Technique(questions=(CHECKPOINTING,))
