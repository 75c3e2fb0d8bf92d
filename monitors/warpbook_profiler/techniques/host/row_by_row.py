"""Rows of a tensor that a loop of Python takes one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.loops import RowLoop, row_loops
from warpbook_profiler.advice.code.row_code import of_all_rows
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import (
    Repeat,
    repeats,
    rows_from,
    taking_apart,
)
from warpbook_profiler.advice.translation.batched_loop import batched
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, Operands, distinct
from warpbook_profiler.facts.traffic import least_bytes, reduces
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: fewer rows are no loop worth a word
_LEAST_ROWS = 8
#: a window with more loops is judged by the longest
_MOST_FOUND = 1_000
#: a kernel of a whole row takes no longer, or the row is large work by itself
_MOST_MEAN_NS = 10_000
_TAKES_ROW = "aten::select"
_SLICES = "aten::slice"
_WRITES = "aten::copy_"
#: of torch.linalg, what takes a row and not a matrix
_NORM = "aten::linalg_vector_norm"
#: items of a list, one by one
_COPIES = "aten::to"
#: they call other operators of the same purpose
_PRODUCTS = (
    "aten::matmul",
    "aten::linear",
    "aten::mm",
    "aten::mv",
    "aten::addmm",
    "aten::bmm",
    "aten::dot",
)
#: a stack of layers takes parts of tensors, too
_OF_LAYERS = frozenset(
    f"aten::{name}"
    for name in "layer_norm rms_norm batch_norm group_norm conv1d conv2d conv3d "
    "embedding scaled_dot_product_attention".split()
)
#: what takes a matrix and not a row, beside torch.linalg's
_FACTORS = frozenset(
    f"aten::{name}" for name in "inverse det logdet cholesky svd qr pinverse".split()
)


def row_by_row(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one operation over the whole tensor."""
    loops = list(row_loops(evidence.code))
    if evidence.code.is_known and not loops:
        return
    apart = taking_apart(evidence.operators)
    by_row = [
        repeat
        for repeat in repeats(evidence.operators, _LEAST_ROWS)
        if _takes_rows(evidence, repeat, apart) and _is_small(evidence, repeat)
    ]
    by_row = sorted(by_row, key=lambda repeat: -len(repeat.operators))[:_MOST_FOUND]
    if not by_row:
        return
    operators = evidence.operators
    ways, rows, kernels = Ways(evidence), 0, 0
    for repeat in by_row:
        _widen(evidence, ways, repeat)
        rows += repeat.turns
        kernels += len(_launched(evidence, repeat.operators))
    for thread in {repeat.thread for repeat in by_row}:
        mine = [repeat for repeat in by_row if repeat.thread == thread]
        spans = np.array(sorted(_span(evidence, repeat, apart) for repeat in mine))
        ways.drop_host(thread, spans[:, 0], spans[:, 1])
    longest = max(by_row, key=lambda repeat: len(repeat.operators))
    start_ns, end_ns = _span(evidence, longest, apart)
    line = evidence.line_at(start_ns)
    loop = _loop_at(loops, line)
    names = [operators.name(at).removeprefix("aten::") for at in longest.one.tolist()]
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    yield Proposal(
        name="whole-tensor",
        title="Compute all rows in one operation over the whole tensor.",
        evidence=(
            f"A loop processes {rows:,} rows one by one ({shown} each): {kernels:,} "
            f"kernels of {duration_ns(_mean_ns(evidence, longest))} on average, in "
            f"{duration_ns(end_ns - start_ns)} of the profiled run."
        ),
        ways=ways,
        is_bound=True,
        reason="The time of the one operation depends on how it is written.",
        operator=names and f"aten::{names[-1]}" or None,
        line=line if loop is None else loop.line,
        code=""
        if loop is None or loop.is_counted
        else _whole(evidence, loop, longest) or batched(evidence, loop),
    )


def _takes_rows(evidence: Evidence, repeat: Repeat, apart: Int64s) -> bool:
    operators = evidence.operators
    names = {operators.name(at) for at in repeat.one.tolist()}
    factors = {name for name in names if "linalg_" in name} - {_NORM}
    if names & (_OF_LAYERS | _FACTORS) or factors:
        return False
    is_known = evidence.code.is_known
    if is_known and names == {_COPIES}:
        return True
    if names & {_TAKES_ROW} or (is_known and _SLICES in names):
        return is_known or _is_simple(evidence, repeat)
    has_rows = rows_from(operators, repeat, apart) is not None
    return has_rows and (is_known or _is_simple(evidence, repeat))


def _launched(evidence: Evidence, positions: Int64s) -> Int64s:
    operators = evidence.operators
    return operators.launched_from(int(positions[0]), int(positions[-1]))


def _is_simple(evidence: Evidence, repeat: Repeat) -> bool:
    """Tell whether a turn can't be a step of a recurrence: one kernel, no product."""
    operators = evidence.operators
    names = [operators.name(at) for at in repeat.one.tolist()]
    launched = _launched(evidence, repeat.one)
    writes = sum(name == _WRITES for name in names)
    return len(launched) - writes == 1 and not set(names) & set(_PRODUCTS)


def _is_small(evidence: Evidence, repeat: Repeat) -> bool:
    kernels = len(_launched(evidence, repeat.operators))
    return kernels >= repeat.turns and _mean_ns(evidence, repeat) <= _MOST_MEAN_NS


def _mean_ns(evidence: Evidence, repeat: Repeat) -> float:
    launched = _launched(evidence, repeat.operators)
    return evidence.time_ns(launched) / max(len(launched), 1)


def _span(evidence: Evidence, repeat: Repeat, apart: Int64s) -> tuple[int, int]:
    """Return when a loop begins, with taking its rows apart, and when it ends."""
    table, (first, last) = evidence.operators.table, repeat.operators[[0, -1]]
    begun = rows_from(evidence.operators, repeat, apart)
    first = int(first) if begun is None else begun
    return int(table.start_ns[first]), int(table.end_ns[last])


def _widen(evidence: Evidence, ways: Ways, repeat: Repeat) -> None:
    """Have the first row's kernels pass over all rows; nothing has to be put back."""
    operators, chip = evidence.operators, evidence.chip
    ways.drop(_launched(evidence, repeat.rest))
    launched = _launched(evidence, repeat.one)
    names = [operators.name(at) for at in operators.outer[launched].tolist()]
    writes = np.array([name == _WRITES for name in names], np.bool_)
    if writes.any() and not writes.all():
        ways.drop(launched[writes])
        launched = launched[~writes]
    for event in launched.tolist():
        by = int(operators.direct[event])
        size_bytes = least_bytes(operators.name(by), operators.operands(by))
        if chip is not None and size_bytes is not None:
            is_reduced = reduces(operators.name(by))
            span = chip.pass_over(size_bytes * repeat.turns, is_reduced)
            ways.resize(np.array([event]), span)


def _loop_at(loops: list[RowLoop], line: int | None) -> RowLoop | None:
    at_line = (
        loop
        for loop in loops
        if line is not None and loop.line <= line <= loop.last_line
    )
    # of several loops nobody can tell which one it was without lines
    return next(at_line, loops[0] if len(loops) == 1 else None)


def _whole(evidence: Evidence, loop: RowLoop, repeat: Repeat) -> str:
    """Write the loop for all rows, where the trace tells how many axes a row has."""
    operators = evidence.operators
    all_names = [operators.name(at) for at in repeat.one.tolist()]
    is_list = set(all_names) == {_COPIES}
    if is_list:
        direct = operators.direct[_launched(evidence, repeat.operators)]
        sizes = {operators.operands(at).dims[:1] for at in distinct(direct).tolist()}
        axes = len(next(iter(sizes))[0]) if len(sizes) == 1 and all(sizes) else None
    else:
        axes = _axes(evidence, repeat)
    if axes is None:
        return ""
    is_mixed = any(
        _is_mixed(operators.operands(at))
        for at in operators.direct[_launched(evidence, repeat.one)].tolist()
    )
    return of_all_rows(evidence.code, loop, axes, is_list, is_mixed)


def _is_mixed(operands: Operands) -> bool:
    """Tell whether a tensor without an axis is beside one that has axes.

    A number of Python has no axis either, but another dtype.
    """
    pairs = [*zip(operands.dims, operands.dtypes, strict=False)]
    sized = {dtype for dims, dtype in pairs if dims}
    return any(not dims and dtype in sized for dims, dtype in pairs)


def _axes(evidence: Evidence, repeat: Repeat) -> int | None:
    """Give the axes of a row; None where operands differ in theirs."""
    operators, axes = evidence.operators, None
    for event in _launched(evidence, repeat.one).tolist():
        by = int(operators.direct[event])
        sizes = [size for size in operators.operands(by).dims if size]
        if operators.name(by) in _PRODUCTS and any(1 in size for size in sizes):
            # a vector comes to these products with an axis of one
            return 1
        if len(set(map(len, sizes))) > 1:
            return None
        axes = len(sizes[0]) if axes is None and sizes else axes
    return axes


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("whole-tensor",),
            what=(
                "rows or items processed one by one in a loop of the cell: one "
                "operation"
            ),
            time="a bound",
        ),
    ),
    rule=row_by_row,
    untried=BY_EDIT,
)
