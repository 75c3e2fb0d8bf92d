"""Tensors that the host fills with numbers, only to copy them to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns, size
from warpbook_profiler.advice.cell_code import CellCode
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.source_edit import SourceEdit, names_in
from warpbook_profiler.advice.torch_code import is_number
from warpbook_profiler.advice.value_flow import ValueFlow
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Category, Int64s
from warpbook_profiler.facts.calls import TO_GPU, named
from warpbook_profiler.facts.traffic import only_passes
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: what makes a tensor without an input; numbers drawn at random come out otherwise
_FIXED = frozenset("zeros ones full arange linspace eye tril_indices".split())
_RANDOM = frozenset("randn rand randint randperm normal".split())
_FILLS = frozenset("random_ to _to_copy".split())
_CASTS = frozenset("to bool float half double long int type bfloat16".split())
_LOOKS = frozenset("view reshape unsqueeze expand detach".split())
#: what an operator does to a tensor of the host, by name
_MAKES, _BEGINS, _FILLED, _LOOKS_AT, _OTHER = range(5)
_COPIES = frozenset("aten::to aten::copy_ aten::_to_copy".split())
#: of the bare run, below which nobody looks for it
_LEAST_SHARE = 0.03
#: a window with more is judged by these
_MOST_COPIES = 5_000


def made_on_host(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to make them on the GPU."""
    chip, flow = evidence.chip, ValueFlow(evidence.code)
    made = [call.node for call in evidence.code.calls(*_FIXED, *_RANDOM)]
    made = [call for call in made if not _names_device(call)]
    moved = [call for call in made if _moves(flow, call)]
    if chip is None or (made and not moved):
        return
    operators, gpu, calls = evidence.operators, evidence.gpu, evidence.calls
    copies, fills = _found(evidence)
    if not len(copies):
        return
    table, ways = operators.table, Ways(evidence)
    spent_ns = int(table.duration_ns[fills].sum()) + evidence.time_ns(copies)
    if spent_ns < _LEAST_SHARE * evidence.bare_run.profiled_ns:
        return
    launches = calls.launch[copies]
    for copy in copies.tolist():
        passed = chip.pass_over(float(gpu.size_bytes[copy]))
        ways.resize(np.array([copy]), passed)
    ways.drop_calls(np.append(launches, evidence.waits_within(operators.outer[copies])))
    ways.add_host(launches, evidence.takes("launch"))
    # what comes before the copy's call is slow where much of the host's memory is read
    by = np.unique(operators.outer[copies])
    first = np.sort(calls.api.start_ns[launches])[: len(by)]
    ways.drop_host(int(table.track[by[0]]), table.start_ns[by], first)
    thread = int(table.track[fills[0]])
    ways.drop_host(thread, table.start_ns[fills], table.end_ns[fills], in_worst=True)
    _drop_freeing(evidence, ways, np.append(fills, operators.outer[copies]))
    names = sorted({operators.name(at).removeprefix("aten::") for at in fills.tolist()})
    yield Proposal(
        name="make-on-gpu",
        title=(
            "Create these tensors on the GPU: pass device= to the function that "
            "creates them."
        ),
        evidence=(
            f"The CPU fills tensors ({', '.join(names[:4])}) and copies them to the "
            f"GPU {len(copies):,} time{'s' if len(copies) > 1 else ''}, "
            f"{size(int(gpu.size_bytes[copies].sum()))} in "
            f"{duration_ns(spent_ns)} of the profile."
        ),
        ways=ways,
        reason="Random numbers then differ from those of the CPU."
        if any(_is_random(name) for name in names)
        else "",
        operator=operators.name(int(fills[-1])),
        line=moved[0].lineno
        if moved
        else evidence.line_at(int(table.start_ns[fills[0]])),
        code=_edited(evidence.code, flow, moved),
    )


def _drop_freeing(evidence: Evidence, ways: Ways, made: Int64s) -> None:
    """Take away what follows these operators, as memory of the host is given back."""
    operators = evidence.operators
    outer = np.flatnonzero(operators.outermost)
    made = np.unique(made)
    place = np.searchsorted(outer, made) + 1
    made, place = made[place < len(outer)], place[place < len(outer)]
    table = operators.table
    start_ns, end_ns = table.end_ns[made], table.start_ns[outer[place]]
    ways.drop_host(int(table.track[made[0]]), start_ns, np.maximum(start_ns, end_ns))
    for edit in (ways.best, ways.usual):
        edit.drop_tail()


def _found(evidence: Evidence) -> tuple[Int64s, Int64s]:
    """Return copies to the GPU of what was just filled, and who filled it."""
    operators, gpu = evidence.operators, evidence.gpu
    to_gpu = named(gpu, TO_GPU)
    copies = np.flatnonzero(to_gpu & gpu.is_in(Category.COPY))
    copy_of = dict(zip(operators.outer[copies].tolist(), copies.tolist(), strict=True))
    launches = np.zeros(len(operators.table) + 1, np.bool_)
    launches[operators.outer] = True
    names = operators.table.names
    role = np.array([_role(name) for name in names] or [_OTHER], np.int8)
    moves = np.array([name in _COPIES for name in names] or [False])
    outer = np.flatnonzero(operators.outermost)
    has_copy = np.zeros(len(launches), np.bool_)
    has_copy[operators.outer[copies]] = True
    is_copy = has_copy[outer] & moves[operators.table.name[outer]]
    of_host = is_copy | ~launches[outer]
    outer, is_copy = outer[of_host], is_copy[of_host]
    roles = role[operators.table.name[outer]]
    found, fills = list[int](), list[int]()
    # tensors that were filled and are not copied yet; the newest comes last
    filled: list[list[int]] = []
    begun: list[int] = []
    for at, is_moved, does in zip(
        outer.tolist(), is_copy.tolist(), roles.tolist(), strict=True
    ):
        if is_moved:
            if filled and len(found) < _MOST_COPIES:
                found.append(copy_of[at])
                fills += filled.pop()
        elif does == _MAKES:
            filled.append([at])
        elif does == _BEGINS:
            begun = [at]
        elif does == _FILLED and (begun or filled):
            filled = [*filled, begun] if begun else filled
            filled[-1].append(at)
            begun = []
        elif does != _LOOKS_AT:
            # who else computes on the host may take what was filled
            filled, begun = [], []
    return np.array(found, np.int64), np.unique(np.array(fills, np.int64))


def _role(name: str) -> int:
    """Return what an operator does to a tensor of the host."""
    base = name.removeprefix("aten::")
    if base in _FIXED | _RANDOM:
        return _MAKES
    if base == "empty":
        return _BEGINS
    if base in _FILLS or only_passes(f"aten::{base}"):
        return _FILLED
    return _LOOKS_AT if base in _LOOKS else _OTHER


def _is_random(name: str) -> bool:
    return name in _RANDOM or name in ("normal_", "uniform_", "random_", "bernoulli_")


def _names_device(call: ast.Call) -> bool:
    return any(one.arg in ("device", "generator") for one in call.keywords)


def _moves(flow: ValueFlow, made: ast.expr) -> list[ast.Call]:
    """Return the calls that move a value to the GPU, if that is all its use.

    Passes over it may come before: `torch.ones(n, n).tril().to(device)`.
    """
    moves = []
    for use in flow.uses(made) or [made]:
        above = flow.parent(use)
        called = flow.parent(above) if isinstance(above, ast.Attribute) else above
        if isinstance(called, ast.Call) and _is_move(above):
            # of several, the first ones may be casts
            if _device(flow, called) and not _is_move(flow.parent(called)):
                moves.append(called)
                continue
        passed = list[ast.Call]()
        if isinstance(called, ast.expr) and _passes(called, use):
            passed = _moves(flow, called)
        if not passed:
            return []
        moves += passed
    return moves


def _is_move(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("to", "cuda")


def _passes(node: ast.AST | None, value: ast.expr) -> bool:
    """Tell whether an expression is a pass over one value, and no other tensor."""
    match node:
        case ast.BinOp(left=left, right=right):
            return is_number(right if left is value else left)
        case ast.UnaryOp():
            return True
        case ast.Call(func=ast.Attribute(attr=name), args=arguments):
            others = [one for one in arguments if one is not value]
            is_pass = name in _CASTS or only_passes(f"aten::{name}")
            return is_pass and all(map(is_number, others))
    return False


def _device(flow: ValueFlow, move: ast.Call) -> str:
    """Return the device that `.to(…)` names; empty where that may be another thing."""
    if isinstance(move.func, ast.Attribute) and move.func.attr == "cuda":
        return "'cuda'" if not move.args else ""
    others = [one.arg for one in move.keywords if one.arg != "non_blocking"]
    if len(move.args) != 1 or others:
        return ""
    given = move.args[0]
    value = flow.value(given)
    match value:
        case ast.Constant(value=str(name)) if name.startswith("cuda"):
            return ast.unparse(given)
        case ast.Attribute(attr="device"):
            return ast.unparse(given)
        case ast.Name(id=name) if not flow.is_set(name) or flow.is_argument(name):
            return ast.unparse(given)
        case ast.Call(func=ast.Attribute(attr="device")):
            return ast.unparse(given)
    return ""


def _edited(code: CellCode, flow: ValueFlow, made: list[ast.Call]) -> str:
    """Write `device=` into the functions whose numbers are the same on the GPU."""
    edit = SourceEdit(code)
    moves = {call: _moves(flow, call) for call in made}
    devices = {_device(flow, move) for several in moves.values() for move in several}
    if len(devices) != 1:
        # one of the names may be a dtype's
        return ""
    (device,) = devices
    for call, several in moves.items():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in _FIXED:
            continue
        if not all(_is_known(flow, call, move, device) for move in several):
            return ""
        edit.arguments(call, {"device": device})
    return edit.source()


def _is_known(flow: ValueFlow, made: ast.Call, move: ast.Call, device: str) -> bool:
    """Tell whether a device's names are set where a tensor is made that moves there."""
    is_near = flow.function(made) is flow.function(move)
    names = names_in(ast.parse(device))
    return is_near and all(flow.is_same(name, made, move) for name in names)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("make-on-gpu",),
            what="tensors that the CPU fills and that are then copied to the GPU",
            time="predicted",
            lab="host-device-copies",
        ),
    ),
    rule=made_on_host,
    untried=BY_EDIT,
)
