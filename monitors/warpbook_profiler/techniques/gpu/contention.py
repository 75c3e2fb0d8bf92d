"""Additions at indices that take far longer than what they move.

Many additions at one address come one after the other. Whether many indices are the
same is in no trace; that memory was hardly used is.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import sorted_additions
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, Operands
from warpbook_profiler.facts.roofline import Called
from warpbook_profiler.facts.traffic import ITEM_BYTES, tensor_sizes
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_ADDS = frozenset(
    "scatter_add scatter_reduce index_add index_reduce bincount histc _histc histogram "
    "embedding_dense_backward _embedding_bag_dense_backward".split()
)
_INDEX_PUT = frozenset("index_put _index_put_impl".split())
#: kernels of other libraries, whose threads add one number each
_KERNEL = re.compile(r"cupyx?_(scatter_add|bincount|histogram)\w*$")
_LEAST_THREAD_BYTES = 8
#: of the ceiling of memory: what adds at random addresses reaches several times that
_MOST_OF_CEILING = 0.03
#: of the bare run, and of one call: less is nothing to care for
_LEAST_SHARE, _LEAST_CALL_NS = 0.05, 30_000

#: those that an edit spreads, with indices along the first axis
_SPREAD = ("scatter_add", "index_add")
#: places for each of the target's rows, and the most elements of all of them
_LANES, _MOST_ELEMENTS = 512, 1 << 22
#: bytes of an index: what finds places for all of them passes over so many
_FINDING_BYTES = 48
#: passes over memory that an addition at a random address takes as long as, in bytes
#: of each sector of 32: 120 of a sector on an H200, where one run was measured
_OF_SECTOR = (32.0, 100.0, 320.0)
_SPREADING = '''\
def {spread}(name, total, index, values):
    """Add values to rows of a tensor, through many copies of each row."""
    is_tensor = isinstance(total, {torch}.Tensor) and total.dim() > 0
    lanes = min({lanes}, {most} // max(total.numel(), 1)) if is_tensor else 0
    is_by_row = lanes > 1 and index.dim() == 1 and len(index) == len(values)
    if not is_by_row or total.dtype == {torch}.bool:
        return getattr(total, name)(0, index, values)
    place = {torch}.arange(len(index), device=index.device).remainder_(lanes)
    place.add_(index, alpha=lanes)
    copies = total.new_zeros(len(total) * lanes, *total.shape[1:])
    copies.index_add_(0, place, values)
    summed = copies.view(len(total), lanes, *total.shape[1:]).sum(1, dtype=total.dtype)
    return total.add_(summed) if name.endswith("_") else total + summed

'''


class _Slow(NamedTuple):
    """Calls that take far longer than what they move."""

    time_ns: float
    name: str
    calls: int
    moved_bytes: float
    operands: Operands | None = None


def contention(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to add up what goes to one address before it is written."""
    chip = evidence.chip
    # where indices are sorted, nothing is atomic
    if chip is None or len(sorted_additions(evidence.operators)):
        return
    groups, _ = evidence.trace.called
    slow = [
        _Slow(group.time_ns, group.name, max(group.calls, 1), moved, group.operands)
        for group in groups
        if _adds(group) and (moved := sum(tensor_sizes(group.operands) or ()))
    ]
    slow += _of_kernels(evidence, np.flatnonzero(evidence.is_kernel))
    # what one pass takes at the ceiling, far below what these take
    slow = [
        one
        for one in slow
        if one.time_ns >= _LEAST_CALL_NS * one.calls
        and chip.least_ns(one.moved_bytes * one.calls) < _MOST_OF_CEILING * one.time_ns
    ]
    time_ns = sum(one.time_ns for one in slow)
    if not slow or evidence.share(time_ns) < _LEAST_SHARE:
        return
    longest = max(slow, key=lambda one: one.time_ns)
    of_ceiling = chip.least_ns(longest.moved_bytes * longest.calls) / longest.time_ns
    ways = Ways(evidence)
    is_spread = all([_spread(evidence, ways, chip, one) for one in slow])
    yield Proposal(
        name="contention",
        title=(
            f"Add to {_LANES} copies of each row, and sum these."
            if is_spread
            else "Sort by index first, or sum within each block, before adding to "
            "memory."
        ),
        evidence=(
            f"{longest.name} takes {units.share(evidence.share(longest.time_ns))} of "
            f"the bare run and moves its data at {units.share(of_ceiling)} of the "
            "memory's ceiling, which is typical of atomic additions to few addresses."
        ),
        ways=ways if is_spread else None,
        events=_launched_by(evidence, longest.name),
        reason=""
        if is_spread
        else "The trace does not show how many indices are the same.",
        operator=longest.name,
        line=evidence.code.first_line(
            longest.name.removeprefix("aten::"),
            longest.name.removeprefix("aten::").rstrip("_"),
        ),
        code=_spread_out(evidence.code) if is_spread else "",
    )


def _spread(evidence: Evidence, ways: Ways, chip: Chip, slow: _Slow) -> bool:
    """Have calls add to several copies of their target; False where they can't.

    What is added then meets as seldom as at random addresses.
    """
    found = _sizes(slow)
    if found is None:
        return False
    count, row_bytes = found
    groups, group = evidence.trace.called
    same = (slow.name, slow.operands)
    mine = [at for at, one in enumerate(groups) if (one.name, one.operands) == same]
    events = np.flatnonzero(evidence.is_kernel)[np.isin(group, mine)]
    finding = chip.pass_over(float(_FINDING_BYTES * count))
    sectors = count * math.ceil(row_bytes / 32)
    adding = Span(*(chip.least_ns(sectors * one) for one in _OF_SECTOR))
    ways.resize(events, finding.plus(*adding).times(slow.calls).at_most(slow.time_ns))
    calls = evidence.calls.launch[events]
    ways.add_host(calls[calls != NONE], evidence.takes("operator", 6))
    return True


def _sizes(slow: _Slow) -> tuple[int, int] | None:
    """Give how many rows are added, and the bytes of one; None for other calls.

    Operands are those of `total.index_add_(0, index, values)`.
    """
    if slow.operands is None or slow.name.rstrip("_")[6:] not in _SPREAD:
        return None
    tensors = [
        (dims, kind)
        for dims, kind in zip(slow.operands.dims, slow.operands.dtypes, strict=False)
        if dims
    ]
    match tensors:
        case [(total, kind), ((count,), _), (values, _)] if total[1:] == values[1:]:
            rooms = _LANES * math.prod(total)
            is_small = rooms <= _MOST_ELEMENTS and slow.operands.scalars[1:2] == ("0",)
            row_bytes = math.prod(total[1:]) * ITEM_BYTES.get(kind, 4)
            return (count, row_bytes) if is_small else None
    return None


def _spread_out(code: CellCode) -> str:
    """Write the cell with additions that go to copies of their rows."""
    edit, is_changed = SourceEdit(code), False
    spread = edit.free_name("spread_add")
    for call in code.calls(*_SPREAD, *(f"{name}_" for name in _SPREAD)):
        function = call.node.func
        given = [*call.node.args]
        if not isinstance(function, ast.Attribute):
            continue
        if ast.unparse(function.value) != "torch":
            given.insert(0, function.value)
        by_name = {one.arg: one.value for one in call.node.keywords}
        order = ("input", "dim", "index", "source" if "source" in by_name else "src")
        given += [by_name.pop(one) for one in order[len(given) :] if one in by_name]
        if len(given) != len(order) or by_name or ast.unparse(given[1]) != "0":
            continue
        total, _, index, values = map(edit.text, given)
        edit.replace(call.node, f'{spread}("{call.name}", {total}, {index}, {values})')
        is_changed = True
    edit.at_start(
        _SPREADING.format(
            spread=spread, lanes=_LANES, most=_MOST_ELEMENTS, torch=edit.torch
        )
    )
    return edit.source() if is_changed else ""


def _adds(by: Called) -> bool:
    name = by.name.removeprefix("aten::").rstrip("_")
    if name in _INDEX_PUT:
        # its last scalars are `accumulate` and, of the inner one, `unsafe`
        return "True" in by.operands.scalars[3:4]
    return name in _ADDS


def _launched_by(evidence: Evidence, name: str) -> Int64s:
    """Return the events of an operator, or of a kernel that no operator called."""
    gpu, (groups, group) = evidence.gpu, evidence.trace.called
    called = [at for at, one in enumerate(groups) if one.name == name]
    if called:
        return np.flatnonzero(evidence.is_kernel)[np.isin(group, called)]
    return np.flatnonzero(gpu.name == gpu.names.index(name))


def _of_kernels(evidence: Evidence, kernels: Int64s) -> Iterator[_Slow]:
    """Give kernels that no operator called, with the bytes that they move at least."""
    gpu = evidence.gpu
    kernels = kernels[gpu.shape[kernels] != NONE]
    for at, name in enumerate(gpu.names):
        if not _KERNEL.match(name):
            continue
        mine = kernels[gpu.name[kernels] == at]
        if not len(mine):
            continue
        shape = gpu.shapes[gpu.shape[mine[0]]]
        threads = shape.blocks * shape.threads_per_block
        moved = threads * _LEAST_THREAD_BYTES
        yield _Slow(float(evidence.time_ns(mine)), name, len(mine), moved)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("contention",),
            what="additions at indices that run below 3 % of the memory's ceiling",
            time="predicted where the target is small; else known only after a trial",
            lab="roofline",
        ),
    ),
    rule=contention,
    untried=BY_EDIT,
)
