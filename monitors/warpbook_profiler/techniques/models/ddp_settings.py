"""Settings of DistributedDataParallel that cost more than they must."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import CellCode, blocks
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Columns, Int64s
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_FORWARD, _STEP, _ZERO = (
    "DistributedDataParallel.forward",
    "Optimizer.step",
    "Optimizer.zero",
)
_SEARCH = "torch.distributed.ddp.reducer::search_unused_parameters"
_GATHERED = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
#: how a gradient that was used is noted, where others are searched for
_NOTED = ("aten::select", "aten::fill_")
#: what a backward pass does to all-reduce its gradients
_ALL_REDUCE = (
    "torch::distributed::reducer::mul_out",
    "torch.distributed.ddp.reducer::mul_out",
    "torch.distributed.ddp.reducer::copy_bucket_to_grad",
    "c10d::allreduce_",
)
_OPTION = "find_unused_parameters"


def ddp_settings(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to all-reduce once a step, and to search for no unused parameters."""
    operators = evidence.operators
    early = _early(operators)
    searches = _searches(operators)
    if not len(early) and not len(searches):
        return
    ways = Ways(evidence)
    ways.drop_operators(early)
    ways.drop_operators(searches)
    advice, seen = [], []
    if len(early):
        events = operators.launched_within(early)
        advice.append(
            "all-reduce gradients once a step "
            "(no_sync() around the other backward passes)"
        )
        seen.append(
            "gradients go to the other ranks several times for each step: "
            f"{len(events):,} kernels and copies, "
            f"{units.share(evidence.share(evidence.time_ns(events)))} of the bare run"
        )
    if len(searches):
        advice.append("set find_unused_parameters=False")
        seen.append("each pass searches for unused parameters, and there are none")
    title = " and ".join(advice)
    yield Proposal(
        name="ddp-settings",
        title=f"{title[0].upper()}{title[1:]}.",
        evidence=f"{'; '.join(seen).capitalize()}.",
        ways=ways,
        operator=_FORWARD,
        line=evidence.code.first_line("DistributedDataParallel", "DDP"),
        code=_settled(evidence.code, bool(len(early)), bool(len(searches))),
    )


def _marks(operators: Operators, name: str) -> Columns:
    marks = operators.annotations
    named = [text.startswith(name) for text in marks.names]
    return marks.where(np.array([*named, False])[marks.name])


def _early(operators: Operators) -> Int64s:
    """Give what all-reduces before the last backward pass of each step."""
    forwards = _marks(operators, _FORWARD)
    steps, zeroed = (_marks(operators, name) for name in (_STEP, _ZERO))
    begins, ends = forwards.start_ns, steps.start_ns
    step = np.searchsorted(ends, begins)
    reduces = np.flatnonzero(operators.named(*_ALL_REDUCE))
    begun_ns = operators.table.start_ns[reduces]
    chosen = np.zeros(len(reduces), np.bool_)
    for number in range(len(steps)):
        mine = begins[step == number]
        if len(mine) < 2:
            continue
        inside = (zeroed.start_ns > mine[0]) & (zeroed.start_ns < mine[-1])
        if not inside.any():
            chosen |= (begun_ns > mine[0]) & (begun_ns < mine[-1])
    return reduces[chosen]


def _searches(operators: Operators) -> Int64s:
    """Give the searches for unused parameters; none where there are some."""
    found = np.flatnonzero(operators.named(_SEARCH))
    if not len(found):
        return found
    gathers = np.append(operators.named(_GATHERED), False)[operators.parent]
    # the place of a gradient that is not there is filled
    if (gathers & operators.named("aten::zero_")).any():
        return found[:0]
    return np.union1d(found, np.flatnonzero(gathers & operators.named(*_NOTED)))


def _settled(code: CellCode, is_early: bool, is_searching: bool) -> str:
    """Write the cell with what can be set there; empty without any of it."""
    edit, is_changed = SourceEdit(code), False
    for call in code.calls("DistributedDataParallel", "DDP"):
        for option in call.node.keywords:
            if option.arg == _OPTION and is_searching:
                edit.replace(option.value, "False")
                is_changed = True
    model = code.model_call()
    for block in blocks(code.tree):
        for statement in block.statements:
            if is_early and model and _goes_back(statement, model.node):
                is_changed |= _reduce_last(edit, statement, model.name)
    return edit.source() if is_changed else ""


def _goes_back(statement: ast.stmt, call: ast.Call) -> bool:
    """Tell whether a loop over a batch's parts goes back in each turn, and no more."""
    called = {
        node.func.attr
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    is_loop = isinstance(statement, ast.For) and not statement.orelse
    is_whole = "backward" in called and not called & {"step", "no_sync", "zero_grad"}
    return is_loop and is_whole and call in ast.walk(statement)


def _reduce_last(edit: SourceEdit, loop: ast.stmt, model: str) -> bool:
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Name):
        return False
    at, parts = edit.free_name("at"), edit.text(loop.iter)
    contextlib = edit.free_name("contextlib")
    as_name = "" if contextlib == "contextlib" else f" as {contextlib}"
    edit.at_start(f"import contextlib{as_name}")
    target = edit.text(loop.target)
    target = f"({target})" if isinstance(loop.target, ast.Tuple) else target
    edit.replace(loop.target, f"{at}, {target}")
    edit.replace(loop.iter, f"enumerate({parts})")
    edit.under(
        loop.body,
        f"{model}.no_sync() if {at} + 1 < len({parts}) else {contextlib}.nullcontext()",
    )
    return True


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("ddp-settings",),
            what=(
                "`DistributedDataParallel` that reduces gradients several times a "
                "step, or searches for unused parameters where there are none"
            ),
            time="predicted",
            lab="collectives",
        ),
    ),
    rule=ddp_settings,
    untried="It needs all ranks, and a cell runs on one.",
)
