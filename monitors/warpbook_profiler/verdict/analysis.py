"""What a cell's events add up to: a function of columns, nothing else.

Nothing here walks events one by one in Python: 100,000 of them take some ten
milliseconds.
"""

from __future__ import annotations

import numpy as np
from msgspec import structs

from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Category,
    Columns,
    Int64s,
    groups,
    rows_by,
)
from warpbook_profiler.events.intervals import nesting, union_ns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.call_tree import CallTree
from warpbook_profiler.facts.memory_curves import memory_curves
from warpbook_profiler.facts.paths import steps_as_one
from warpbook_profiler.facts.roofline import roofline, roofs
from warpbook_profiler.facts.steps import step_rows
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model import progress
from warpbook_profiler.model.cell_profile import (
    CellProfile,
    CopyRow,
    OperatorRow,
    PathRow,
)
from warpbook_profiler.model.figures import CellVerdict, Finding, Metrics
from warpbook_profiler.verdict.annotations import annotated_parts
from warpbook_profiler.verdict.bare_judging import judge_bare
from warpbook_profiler.verdict.completeness import examine, profiler_cost, saw_nothing
from warpbook_profiler.verdict.cpu.judging import judge_cpu
from warpbook_profiler.verdict.findings import find, judge
from warpbook_profiler.verdict.kernel_rows import kernel_rows
from warpbook_profiler.verdict.lanes import LaneEvents, make_lanes
from warpbook_profiler.verdict.metrics import measure
from warpbook_profiler.verdict.totals import MAX_ROWS, totals
from warpbook_profiler.verdict.work import work_of

_OF_TORCH = "aten::"
#: numbers of a file may be any; no program makes as many
_MOST_NODES = 2**53


def autograd_nodes(trace: Trace) -> int | None:
    """Count the nodes that were made between the operators.

    Returns:
        None where no operator of torch is in the window, or too few to tell.
    """
    in_time = trace.operators.start_ns < trace.run.end_ns
    operators = trace.operators.where(~trace.operators.annotates & in_time)
    is_of_torch = [name.startswith(_OF_TORCH) for name in operators.names]
    if not np.array([*is_of_torch, False])[operators.name].any():
        return None
    numbered = operators.where(operators.sequence != NONE)
    if not len(numbered):
        return 0
    nodes, is_known = 0, False
    for rows in rows_by(numbered.track):
        sequence = numbered.sequence[rows]
        nodes += int(sequence.max() - sequence.min())
        # the node of a call shows in the number of the next call alone
        first, last = rows[0], rows[-1]
        is_known |= bool(numbered.start_ns[last] >= numbered.end_ns[first])
    return min(nodes, _MOST_NODES) if nodes or is_known else None


_PATH_STEP = " > "
#: deep recursion is cut
_MAX_PATH_LENGTH = 600


def analyse(events: Columns, run: Run) -> CellProfile:
    return profile(Trace(events, run))


def profile(trace: Trace) -> CellProfile:
    progress.tell("Computing causes")
    events, run, on_gpu, calls = trace.events, trace.run, trace.on_gpu, trace.calls
    copies = events.only(Category.COPY, Category.MEMSET)
    launches = int(calls.launches.sum())
    blind = saw_nothing(trace)
    whole = examine(trace)
    whole = structs.replace(whole, warnings=(*whole.warnings, *run.notes))
    seen = _gpu_was_recorded(trace)
    metrics = measure(trace) if seen else None
    findings: tuple[Finding, ...] = ()
    judged = None
    if metrics is not None and not whole.refusal and run.gpu_name is not None:
        if len(on_gpu) and run.is_torch:
            judged = judge_bare(trace, metrics)
        findings = find(metrics, run.gpus) if judged is None else judged.findings
    on_cpu = None
    if not len(on_gpu) and not launches and not blind and not run.other_device:
        on_cpu = judge_cpu(events, run)
        findings = on_cpu.findings
        warnings = (*whole.warnings, *on_cpu.warnings)
        whole = structs.replace(whole, warnings=warnings)
    bare = None if judged is None else judged.bare
    measured_ns = None if run.bare is None else run.bare.median_ns
    bare_ns = measured_ns if bare is None else bare.time_ns
    cost = profiler_cost(run, bare_ns)
    whole = structs.replace(whole, warnings=(*whole.warnings, *cost))
    concluded = on_cpu if judged is None else judged
    operators, outermost = _operators(trace)
    recorded = seen and not blind
    tree = CallTree(trace, gpu_recorded=recorded)
    names, lanes, omitted = make_lanes(
        LaneEvents(on_gpu, calls.api.where(calls.launches | calls.waits), outermost),
        run.start_ns,
    )
    return CellProfile(
        verdict=_verdict(metrics, findings, whole.refusal, run)
        if concluded is None
        else concluded.verdict,
        findings=findings,
        metrics=metrics,
        wall_ns=run.end_ns - run.start_ns,
        profiler_ns=run.profiler_ns,
        first_start_ns=None if run.set_up is None else run.set_up.start_ns,
        set_up=run.set_up,
        gpu_name=run.gpu_name,
        gpu_busy_ns=union_ns(on_gpu.start_ns, on_gpu.end_ns) if seen else None,
        kernel_calls=len(trace.kernels) if seen else None,
        kernel_time_ns=int(trace.kernels.duration_ns.sum()) if seen else None,
        copy_time_ns=int(copies.duration_ns.sum()) if seen else None,
        launches=None if blind else launches,
        launch_api_ns=None
        if blind
        else _total_ns(calls.api, calls.launches & ~calls.waits),
        synchronizations=None if blind else int(calls.waits.sum()),
        synchronization_ns=None if blind else _total_ns(calls.api, calls.waits),
        peak_allocated_bytes=run.peak_allocated_bytes,
        peak_reserved_bytes=run.peak_reserved_bytes,
        kernels=kernel_rows(trace),
        copies=_copy_rows(trace),
        operators=operators,
        names=names,
        lanes=lanes,
        completeness=structs.replace(whole, lanes_omitted=omitted),
        memory=run.memory,
        paths=_path_rows(trace),
        roofline=roofline(events, run, trace.called[0]),
        roofs=roofs(events, run),
        memory_curves=memory_curves(run),
        bare=bare,
        call_tree=tree.nodes(),
        modules=tree.modules(),
        functions=tree.functions(),
        steps=step_rows(trace, gpu_recorded=recorded),
        changes=() if concluded is None else concluded.changes,
        cpu=None if on_cpu is None else on_cpu.time,
        annotations=annotated_parts(trace, recorded),
        autograd_nodes=autograd_nodes(trace),
        work=work_of(trace),
        stalls=run.stalls,
    )


def _verdict(
    metrics: Metrics | None, findings: tuple[Finding, ...], refusal: str, run: Run
) -> CellVerdict | None:
    if run.gpu_name is None:
        return None
    if refusal:
        return CellVerdict("unknown", refusal)
    if metrics is None:
        return CellVerdict(
            "unknown", "The profiler recorded nothing of the GPU: no conclusion."
        )
    return judge(metrics, findings, run.gpu_name)


def _total_ns(events: Columns, chosen: Bools) -> int:
    return int(events.duration_ns[chosen].sum())


def _gpu_was_recorded(trace: Trace) -> bool:
    """Tell "the GPU did nothing" from "the profiler saw nothing of it"."""
    if trace.run.gpu_name is None:
        return False
    if len(trace.on_gpu):
        return True
    traced = bool(trace.events.is_in(Category.API).any())
    return not trace.calls.launches.any() and (traced or not trace.run.cuda_used)


def _copy_rows(trace: Trace) -> tuple[CopyRow, ...]:
    copies = trace.events.only(Category.COPY, Category.MEMSET)
    return tuple(
        CopyRow(
            group.name.removeprefix("Memcpy "),
            group.calls,
            group.size_bytes,
            group.time_ns,
            trace.parts.get(group.name, ()),
        )
        for group in totals(copies, copies.duration_ns)
    )


def _path_rows(trace: Trace) -> tuple[PathRow, ...]:
    paths, calls = trace.paths, trace.calls
    known = np.flatnonzero(calls.launch != NONE)
    row = calls.launch[known]
    path = paths.at(calls.api.track[row], calls.api.start_ns[row])
    first, group = groups(path)
    count = np.bincount(group, minlength=len(first))
    time_ns = np.bincount(group, trace.on_gpu.duration_ns[known], minlength=len(first))
    names = [_PATH_STEP.join(paths.names(int(number))) for number in path[first]]
    rows = [
        PathRow(name[:_MAX_PATH_LENGTH] or "(no operator)", int(calls), round(time))
        for name, calls, time in zip(names, count, time_ns, strict=True)
    ]
    rows.sort(key=lambda path_row: (-path_row.time_ns, path_row.path))
    if len(rows) > MAX_ROWS:
        rest = rows[MAX_ROWS - 1 :]
        rows[MAX_ROWS - 1 :] = [
            PathRow(
                f"({len(rest):,} others)",
                sum(path_row.calls for path_row in rest),
                sum(path_row.time_ns for path_row in rest),
            )
        ]
    return tuple(rows)


def _operators(trace: Trace) -> tuple[tuple[OperatorRow, ...], Columns]:
    """Give the operators' rows, and those operators that no other encloses."""
    events, run = trace.events, trace.run
    is_operator = events.is_in(Category.OPERATOR)
    is_host = is_operator | events.is_in(Category.OVERHEAD)
    rows = np.flatnonzero(is_host & (events.start_ns < run.code_end_ns))
    start_ns, end_ns = events.start_ns[rows], events.end_ns[rows]
    is_operator = is_operator[rows]
    thread = events.track[rows]
    thread[~is_operator] = _threads_calling_at(events, end_ns[~is_operator])
    self_ns = np.zeros(len(rows), np.int64)
    outermost = np.zeros(len(rows), np.bool_)
    for mine in rows_by(thread):
        self_ns[mine], outermost[mine] = nesting(start_ns[mine], end_ns[mine])
    operators = trace.operators.where(trace.operators.start_ns < run.code_end_ns)
    named = steps_as_one(operators)
    operator_rows = tuple(
        OperatorRow(group.name, group.calls, group.time_ns)
        for group in totals(named, self_ns[is_operator])
    )
    return operator_rows, operators.where(outermost[is_operator])


def _threads_calling_at(events: Columns, at_ns: Int64s) -> Int64s | int:
    """Say whose time the profiler took: the thread that makes the next CUDA call.

    The profiler works inside that call's callback and doesn't name the thread.
    """
    api = events.only(Category.API)
    if not len(api):
        return NONE
    following = np.searchsorted(api.start_ns, at_ns)
    return api.track[np.minimum(following, len(api) - 1)]
