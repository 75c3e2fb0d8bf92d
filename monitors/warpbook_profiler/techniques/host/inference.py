"""What an inference does as in training; a trace tells no gain without it."""

from __future__ import annotations

import re

from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line, counted, percent
from warpbook_profiler.techniques.technique import Technique

_TRAINS_NORM = re.compile(r"bn_fw_tr|batchnorm_fwtr|batch_norm_collect_statistics")
_INFERS_NORM = re.compile(
    r"bn_fw_inf|batchnorm_fwinf|batch_norm_transform_input|bn_inf"
)
_MODES = re.compile(r"aten::(\w*dropout|\w*batch_norm)")
_WITHOUT_AUTOGRAD = ("inference_mode", "no_grad")


def _judge_autograd(facts: Facts) -> Judgement:
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


def _judge_mode(facts: Facts) -> Judgement:
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


NO_AUTOGRAD = Question(
    name="no-autograd",
    text="Is autograd off (inference_mode, no_grad)?",
    judge=_judge_autograd,
    no_where=(
        "in inference, autograd makes nodes: the numbers that torch notes with "
        "operators grow. `unknown` where there are too few operators"
    ),
    part="inference",
    is_of_gpu=False,
)


EVAL_MODE = Question(
    name="eval-mode",
    text="Is the model in eval mode?",
    judge=_judge_mode,
    no_where="in inference, dropout or batch norm work as in training",
    part="inference",
)


TECHNIQUE = Technique(questions=(NO_AUTOGRAD, EVAL_MODE))
