"""Autograd or training mode left on during inference."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import counted
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line, percent
from warpbook_profiler.events.columns import rows_by
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_TRAINS_NORM = re.compile(r"bn_fw_tr|batchnorm_fwtr|batch_norm_collect_statistics")
_INFERS_NORM = re.compile(
    r"bn_fw_inf|batchnorm_fwinf|batch_norm_transform_input|bn_inf"
)
_MODES = re.compile(r"aten::(\w*dropout|\w*batch_norm)")
_WITHOUT_AUTOGRAD = ("inference_mode", "no_grad")
_OPTIMIZER = "Optimizer."
#: what says that something goes back through the results
_TRAINS = (
    *("backward", "grad", "requires_grad_", "jacrev", "jacfwd", "vjp", "jvp"),
    *("zero_grad", "step"),
)
_LEAST_NODES = 20


def no_autograd(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to record nothing of what nothing goes back through."""
    operators, code = evidence.operators, evidence.code
    if operators.are_trained:
        return
    if any(name.startswith(_OPTIMIZER) for name in operators.annotations.names):
        return
    recorded = operators.recorded
    if len(recorded) < _LEAST_NODES or code.calls(*_TRAINS):
        return
    table, ways = operators.table, Ways(evidence)
    bare, taken = (evidence.takes(name).usual_ns for name in ("operator", "autograd"))
    # of an operator's time on the host, what its record takes
    record = max(1 - bare / taken, 0.0)
    for rows in rows_by(table.track[recorded]):
        mine = recorded[rows]
        begins = table.start_ns[mine]
        ends = begins + (record * table.duration_ns[mine]).astype(np.int64)
        ways.drop_host(int(table.track[mine[0]]), begins, ends)
    yield Proposal(
        name="no-autograd",
        title="Run it within torch.no_grad(): no backward pass uses it.",
        evidence=(
            f"Autograd records {len(recorded):,} operators, and no backward pass is in "
            "this window."
        ),
        ways=ways,
        reason="Activations are then also freed at once.",
        operator=operators.name(int(recorded[0])),
        code=_without_autograd(code),
    )


def _without_autograd(code: CellCode) -> str:
    """Write the cell within the mode, but for imports and a wait at its end."""
    body = code.tree.body
    # a magic is read as `pass`, and can't be within a block
    while body and isinstance(body[0], ast.Import | ast.ImportFrom | ast.Pass):
        body = body[1:]
    if body and isinstance(body[-1], ast.Expr):
        if not ast.unparse(body[-1]).endswith("synchronize()"):
            return ""
        body = body[:-1]
    if not body:
        return ""
    edit = SourceEdit(code)
    # not inference_mode(), whose tensors no later backward pass may take
    edit.under(body, f"{edit.torch}.no_grad()")
    return edit.source()


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
            "operator. Its gain is known only after a trial.",
        )
    if said:
        said = f" {said} It is not known whether everything that ran is inside it."
    return Judgement(
        "unknown",
        f"The profile does not show whether autograd records.{said}",
        "Record several steps again, with ProfilerActivity.CPU.",
    )


def _judge_mode(facts: Facts) -> Judgement:
    if not any(_MODES.match(name) for name in facts.host_names):
        return Judgement(
            "not applicable", "Neither dropout nor batch norm runs in this window."
        )
    names = [row.name for row in facts.profile.kernels]
    drops = "aten::native_dropout" in facts.host_names
    trains = drops or any(_TRAINS_NORM.search(name) for name in names)
    if trains:
        what = (
            "Dropout is active"
            if drops
            else "Batch norm computes statistics of the batch"
        )
        return Judgement(
            "no",
            f"{what} though no backward pass follows.",
            "Call model.eval() before inference: results differ from those in "
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
            "No kernel in this window shows the mode of batch norm.",
            "Make sure that model.eval() is called before inference.",
        )
    shown = f" Batch norm ({percent(norms)}) is in eval mode." if norms else ""
    return Judgement("yes", f"No layer runs in training mode.{shown}")


NO_AUTOGRAD = Question(
    name="no-autograd",
    text="Is autograd off (inference_mode, no_grad)?",
    judge=_judge_autograd,
    no_where=(
        "in inference, autograd creates nodes: the sequence numbers that torch records "
        "with operators grow. `unknown` where there are too few operators"
    ),
    part="inference",
    is_of_gpu=False,
)


EVAL_MODE = Question(
    name="eval-mode",
    text="Is the model in eval mode?",
    judge=_judge_mode,
    no_where="in inference, dropout or batch norm run in training mode",
    part="inference",
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("no-autograd",),
            what="operators that autograd records, where no backward pass follows",
            time="predicted",
            answers=NO_AUTOGRAD,
        ),
    ),
    rule=no_autograd,
    questions=(NO_AUTOGRAD, EVAL_MODE),
    untried="Only you know whether a backward pass follows in another cell.",
)
