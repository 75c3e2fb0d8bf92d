"""Tensors that the host fills with numbers, only to copy them to the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns, size
from warpbook_profiler.advice.code.cell_code import names_in
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.made_values import (
    COMPUTES,
    FIXED,
    LOOKS,
    RANDOM,
    WINDOWS,
    MadeValues,
    device_of,
)
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Category, Int64s, distinct
from warpbook_profiler.facts.calls import TO_GPU, named
from warpbook_profiler.facts.traffic import only_passes
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_FILLS = frozenset("random_ to _to_copy".split())
_JOINS = frozenset("meshgrid stack cat hstack vstack outer".split())
_LIKE = frozenset("zeros_like ones_like full_like".split())
_ARITHMETIC = frozenset("add sub rsub mul div pow".split())
#: what a last bit decides
_ROUNDS = frozenset("long int bool floor ceil round trunc floor_divide".split())
#: what an operator does to a tensor of the host, by name
_MAKES, _BEGINS, _FILLED, _JOINED, _LOOKS_AT, _OTHER = range(6)
_COPIES = frozenset("aten::to aten::copy_ aten::_to_copy".split())
#: of the bare run, below which nobody looks for it
_LEAST_SHARE = 0.03
#: a window with more is judged by these
_MOST_COPIES = 5_000


def made_on_host(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to make them on the GPU."""
    chip, flow = evidence.chip, ValueFlow(evidence.code)
    values = MadeValues(flow, evidence.code)
    moved = list(values.moves)
    if chip is None or (values.made and not moved):
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
    by = distinct(operators.outer[copies])
    first = np.sort(calls.api.start_ns[launches])[: len(by)]
    ways.drop_host(int(table.track[by[0]]), table.start_ns[by], first)
    thread = int(table.track[fills[0]])
    ways.drop_host(thread, table.start_ns[fills], table.end_ns[fills], in_worst=True)
    _drop_making(evidence, ways, by)
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
        code=_edited(evidence, flow, values, fills),
    )


def _drop_making(evidence: Evidence, ways: Ways, copying: Int64s) -> None:
    """At best, take away all that the CPU computes of a new tensor until its copy."""
    operators = evidence.operators
    names = operators.table.names
    makes = np.array([_role(name) in (_MAKES, _BEGINS) for name in names] or [False])
    copied = np.zeros(len(operators.table), np.bool_)
    copied[copying] = True
    launches = np.zeros(len(operators.table) + 1, np.bool_)
    launches[operators.outer] = True
    of_host = ~launches[:-1] | copied
    ways.drop_run_up(of_host, of_host & makes[operators.table.name], copied)


def _drop_freeing(evidence: Evidence, ways: Ways, made: Int64s) -> None:
    """Take away what follows these operators, as memory of the host is given back."""
    operators = evidence.operators
    outer = np.flatnonzero(operators.outermost)
    made = distinct(made)
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
        elif does == _JOINED and filled:
            filled = [[one for several in filled for one in several] + [at]]
        elif does != _LOOKS_AT:
            # who else computes on the host may take what was filled
            filled, begun = [], []
    return np.array(found, np.int64), distinct(np.array(fills, np.int64))


def _role(name: str) -> int:
    """Return what an operator does to a tensor of the host."""
    base = name.removeprefix("aten::")
    if base in FIXED | RANDOM | WINDOWS | _LIKE:
        return _MAKES
    if base in _JOINS | COMPUTES:
        return _JOINED
    if base == "empty":
        return _BEGINS
    if base in _FILLS or only_passes(f"aten::{base}"):
        return _FILLED
    return _LOOKS_AT if base in LOOKS else _OTHER


def _is_random(name: str) -> bool:
    return name in RANDOM or name in ("normal_", "uniform_", "random_", "bernoulli_")


def _edited(
    evidence: Evidence, flow: ValueFlow, values: MadeValues, fills: Int64s
) -> str:
    """Write `device=` into the functions whose numbers are the same on the GPU."""
    edit, moves = SourceEdit(evidence.code), values.moves
    devices = {device_of(flow, move) for several in moves.values() for move in several}
    is_sure = not values.has_unknown or (
        not values.has_pairs and _are_with_numbers(evidence, fills)
    )
    if len(devices) != 1 or not is_sure:
        # one of the names may be a dtype's, or a tensor's of the host
        return ""
    (device,) = devices
    names = {call: getattr(call.func, "attr", "") for call in values.made}
    rounds = any(
        isinstance(node, ast.Compare) or getattr(node, "attr", "") in _ROUNDS
        for node in ast.walk(evidence.code.tree)
    )
    for call, several in moves.items():
        if not {names[one] for one in values.joined(call)} <= FIXED:
            continue
        # its last bit is another one on the GPU
        is_exact = not rounds or names[call] != "linspace"
        if not is_exact or not all(
            _is_known(flow, call, move, device) for move in several
        ):
            return ""
        edit.arguments(call, {"device": device})
    return edit.source()


def _are_with_numbers(evidence: Evidence, fills: Int64s) -> bool:
    """Tell whether the host's arithmetic is of a tensor and a number.

    torch casts a number to the tensor's dtype, by an operator within.
    """
    operators = evidence.operators
    parents = set(operators.parent.tolist())
    return all(
        at in parents
        for at in fills.tolist()
        if operators.name(at).removeprefix("aten::") in _ARITHMETIC
    )


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
