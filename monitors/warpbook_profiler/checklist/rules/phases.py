"""What is of trainings alone, and what is of inference alone."""

from __future__ import annotations

import re

from warpbook_monitors import units
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, at_line, counted, percent

_STEP = "Optimizer.step#"
_ZERO_GRAD = "Optimizer.zero_grad#"
_CHECKPOINT = re.compile(r"CheckpointFunction|torch::checkpoint")
_MANY_AT_ONCE = re.compile(r"multi_tensor_apply|fused_?(adam|sgd)|FusedAdam", re.I)
#: norms and factors of clipping and of gradient scaling, which update no parameter
_CLIPS = re.compile(r"LpNormFunctor|BinaryOpScalarTensorFunctor|non_finite_check")
#: of the GPU's memory, from which a larger batch no longer fits
_NEARLY_FULL = 0.85
_TRAINS_NORM = re.compile(r"bn_fw_tr|batchnorm_fwtr|batch_norm_collect_statistics")
_INFERS_NORM = re.compile(
    r"bn_fw_inf|batchnorm_fwinf|batch_norm_transform_input|bn_inf"
)
_MODES = re.compile(r"aten::(\w*dropout|\w*batch_norm)")
#: a variable of such a name is mostly a file's content
_CHECKPOINTS = (
    "checkpoint_sequential",
    "gradient_checkpointing_enable",
    "apply_activation_checkpointing",
)
_WITHOUT_AUTOGRAD = ("inference_mode", "no_grad")


def checkpointing(facts: Facts) -> Judgement:
    """Tell whether activations are computed again where memory is short."""
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


def gradients_to_none(facts: Facts) -> Judgement:
    """Tell whether gradients are dropped, and not filled with zeros."""
    passed = facts.code.keyword("set_to_none", "zero_grad")
    if passed is not None and passed[0] is False:
        return Judgement(
            "no",
            f"The code passes set_to_none=False{at_line(passed[1])}.",
            "Leave it out: then gradients are dropped and nothing is filled with "
            "zeros. What it gives is not known before it is tried.",
        )
    rows = facts.annotations(_ZERO_GRAD)
    if not rows:
        return Judgement("not applicable", "No zero_grad is in this window.")
    if any(row.work is None for row in rows):
        return Judgement(
            "unknown",
            "What zero_grad puts on the GPU was not recorded.",
            "Record with ProfilerActivity.CUDA, too.",
        )
    work = sum(row.work or 0 for row in rows)
    if not work:
        return Judgement("yes", "zero_grad puts no work on the GPU.")
    return Judgement(
        "no",
        f"zero_grad puts {work:,} kernels and memsets on the GPU.",
        "Call zero_grad(set_to_none=True), as it is by default since PyTorch 2.0. What "
        "it gives is not known before it is tried.",
    )


def fused_optimizer(facts: Facts) -> Judgement:
    """Tell whether an optimizer updates all tensors at once."""
    advised = facts.by_change("fused-optimizer")
    if advised is not None:
        return advised
    steps = facts.annotations(_STEP)
    if not steps:
        return Judgement("not applicable", "No step of an optimizer is in this window.")
    count = sum(row.times for row in steps)
    kernels = sum(row.work or 0 for row in steps)
    evidence = f"{counted(count, 'step')} put {counted(kernels, 'kernel')} on the GPU."
    names = [row.name for row in facts.profile.kernels]
    if any(_MANY_AT_ONCE.search(name) and not _CLIPS.search(name) for name in names):
        return Judgement("yes", f"{evidence} They take many tensors each.")
    return facts.without_gain(evidence)


def no_autograd(facts: Facts) -> Judgement:
    """Tell whether an inference runs without recording for autograd."""
    nodes = facts.profile.autograd_nodes
    mentioned = {name: facts.code.mention(name) for name in _WITHOUT_AUTOGRAD}
    said = " ".join(
        f"The code uses torch.{name}{at_line(line)}."
        for name, line in mentioned.items()
        if line is not None
    )
    if nodes == 0:
        return Judgement("yes", f"Autograd recorded nothing here. {said}".rstrip())
    if nodes is not None:
        return Judgement(
            "no",
            f"Autograd made {counted(nodes, 'node')} for a backward pass, and none is "
            f"in this window. {said}".rstrip(),
            "Unless a backward pass follows it, run it within torch.inference_mode(): "
            "activations are then freed at once, and the host does less for each "
            "operator. What it gives is not known before it is tried.",
        )
    if said:
        said = f" {said} Whether all that ran is within it is not known."
    return Judgement(
        "unknown",
        f"The profile does not show whether autograd records.{said}",
        "Record several steps again, with ProfilerActivity.CPU.",
    )


def eval_mode(facts: Facts) -> Judgement:
    """Tell whether dropout and batch norm are in the mode for inference."""
    if not any(_MODES.match(name) for name in facts.host_names):
        return Judgement(
            "not applicable", "Neither dropout nor batch norm is in this window."
        )
    names = [row.name for row in facts.profile.kernels]
    drops = "aten::native_dropout" in facts.host_names
    trains = drops or any(_TRAINS_NORM.search(name) for name in names)
    if trains:
        what = "Dropout draws" if drops else "Batch norm takes statistics"
        return Judgement(
            "no",
            f"{what} though no backward pass follows.",
            "Call model.eval() before you infer: the results differ from those in "
            "training mode.",
        )
    has_norm = any("batch_norm" in name for name in facts.host_names)
    norms = sum(
        row.share_ratio
        for row in facts.profile.kernels
        if _INFERS_NORM.search(row.name)
    )
    if has_norm and not norms:
        return Judgement(
            "unknown",
            "No kernel of this window tells the mode of batch norm.",
            "See that model.eval() is called before you infer.",
        )
    shown = f" Batch norm ({percent(norms)}) is in eval mode." if norms else ""
    return Judgement("yes", f"Nothing works as in training mode.{shown}")
