"""Batches that the host prepares while the GPU waits for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.cell_code import CellCode, bound_names
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.events.columns import Bools, Columns, Int64s, distinct, rows_by
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_PREFIX = "enumerate(DataLoader)#"
_ALONE = f"{_PREFIX}_SingleProcessDataLoaderIter.__next__"
_OF_WORKERS = f"{_PREFIX}_MultiProcessingDataLoaderIter"
_WITH_WORKERS = f"{_OF_WORKERS}.__next__"
#: of the profiled run, below which loading is no cause
_LEAST_SHARE = 0.05
#: a batch that workers start or end at takes so many times the usual one's time
_LONG, _LEAST_START_NS = 4, 3_000_000
#: draws the seed of workers
_DRAWS = "aten::random_"
#: what may give the data itself
_SAME = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Dict)
#: the first batches of workers wait for their start
_FIRST = 1


def loading(evidence: Evidence) -> Iterator[Proposal]:
    """Propose workers, more of them, or to keep those that there are."""
    yield from _kept(evidence)
    yield from _proposal(evidence, _ALONE, has_workers=False)
    yield from _proposal(evidence, _WITH_WORKERS, has_workers=True)


def _kept(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to keep workers that start anew for each pass over the data."""
    spans = _spans(evidence.operators.annotations, _WITH_WORKERS)
    before_ns = _done_before(evidence, spans)
    starts, ends = _restarts(evidence, spans, before_ns)
    call = next(iter(evidence.code.calls("DataLoader")), None)
    is_kept = call is not None and any(
        one.arg == "persistent_workers" for one in call.node.keywords
    )
    if is_kept or not len(starts):
        return
    # the first workers start, too; what the host does then no record is made of
    starts, ends = np.append(0, starts), np.append(ends, len(spans) - 1)
    before_ns = before_ns[starts]
    ways, thread = Ways(evidence), int(spans.track[0])
    ways.drop_host(thread, before_ns, spans.end_ns[starts])
    ways.drop_host(thread, spans.start_ns[ends], spans.end_ns[ends])
    time_ns = int((spans.end_ns[starts] - before_ns).sum())
    time_ns += int(spans.duration_ns[ends].sum())
    yield Proposal(
        name="keep-workers",
        title="Create the DataLoader once, with persistent_workers=True.",
        evidence=(
            f"Worker processes start {len(starts):,} times, once for each pass over "
            f"the data: starting and stopping them takes {duration_ns(time_ns)} of the "
            "profile."
        ),
        ways=ways,
        is_bound=True,
        reason="The workers then start only once, before the first pass.",
        line=call.line if call else evidence.line_at(int(spans.start_ns[0])),
        code=_with_kept(evidence.code),
    )


def _done_before(evidence: Evidence, spans: Columns) -> Int64s:
    """Give when the operators before each of these were done."""
    outer = evidence.operators.table.where(evidence.operators.outermost)
    done_ns = np.append(evidence.run.start_ns, np.maximum.accumulate(outer.end_ns))
    found: Int64s = done_ns[np.searchsorted(outer.start_ns, spans.start_ns)]
    return found


def _restarts(
    evidence: Evidence, spans: Columns, before_ns: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the first batches of later passes, and the ends of those before them.

    Args:
        evidence: the window.
        spans: what the main process waits for its workers in.
        before_ns: when the operators before each were done.
    """
    if not len(spans) or len(distinct(spans.track)) > 1:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    usual_ns = float(np.median(spans.duration_ns))
    is_long = spans.duration_ns > max(_LONG * usual_ns, _LEAST_START_NS)
    is_end = is_long[:-1] & is_long[1:]
    # a pass draws a seed and starts its workers before its first batch
    operators = evidence.operators
    drawn_ns = operators.table.start_ns[operators.named(_DRAWS)]
    until, since = spans.start_ns[1:], spans.end_ns[:-1]
    is_pass = np.searchsorted(drawn_ns, until) > np.searchsorted(drawn_ns, since)
    is_pass &= until - before_ns[1:] > _LEAST_START_NS
    is_end |= is_pass & (spans.duration_ns[:-1] > _LEAST_START_NS)
    ends = np.flatnonzero(is_end)
    return ends + 1, ends


def _with_kept(code: CellCode) -> str:
    """Write the option; empty where the data may be others in a later pass."""
    calls = code.calls("DataLoader", in_loop=False)
    workers = [one for call in calls for one in call.node.keywords]
    if len(calls) != 1 or not any(one.arg == "num_workers" for one in workers):
        return ""
    match calls[0].node.args:
        case [ast.Name(id=data), *_]:
            pass
        case _:
            return ""
    others, parts = _of_data(code, data, calls[0].node)
    for node in ast.walk(code.tree):
        is_again = isinstance(node, ast.For | ast.While | ast.FunctionDef)
        # another name of it, through which a pass may change it
        is_other = isinstance(node, ast.Attribute) and node.attr == "dataset"
        if is_other or (is_again and any(uses(node, name) for name in others)):
            return ""
        if is_again and any(_may_change(node, name) for name in parts):
            return ""
    edit = SourceEdit(code)
    edit.arguments(calls[0].node, {"persistent_workers": "True"})
    return edit.source()


def _of_data(code: CellCode, data: str, loader: ast.Call) -> tuple[set[str], set[str]]:
    """Give all names of a loader's data, and those of what it is made of."""
    names, parts = {data}, set[str]()
    sets = [
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign) and loader not in ast.walk(node)
    ]
    for _ in sets:
        for node in sets:
            targets, read = bound_names(node), _read(node.value)
            if isinstance(node.value, _SAME):
                names |= targets if names & read else set()
            if (names | parts) & targets:
                parts |= read
    return names, parts - names


def _read(value: ast.expr) -> set[str]:
    """Give the names that an expression takes, not the functions that it calls."""
    called = {one.func for one in ast.walk(value) if isinstance(one, ast.Call)}
    return {
        one.id
        for one in ast.walk(value)
        if isinstance(one, ast.Name) and one not in called
    }


def _may_change(tree: ast.AST, name: str) -> bool:
    """Tell whether code calls a method of what a name holds, or sets a part of it."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=one))):
                pass
            case (
                ast.Subscript(value=ast.Name(id=one), ctx=ast.Store() | ast.Del())
                | ast.Attribute(value=ast.Name(id=one), ctx=ast.Store() | ast.Del())
                | ast.AugAssign(target=ast.Name(id=one))
            ):
                pass
            case _:
                continue
        if one == name:
            return True
    return False


def _proposal(
    evidence: Evidence, name: str, *, has_workers: bool
) -> Iterator[Proposal]:
    spans = _spans(evidence.operators.annotations, name)
    if has_workers:
        # more of them don't start or end any faster
        before_ns = _done_before(evidence, spans)
        restarts = np.concatenate(_restarts(evidence, spans, before_ns))
        place = np.arange(len(spans))
        spans = spans.where((place >= _FIRST) & ~np.isin(place, restarts))
    time_ns = int(spans.duration_ns.sum())
    profiled_ns = max(evidence.bare_run.profiled_ns, 1)
    if len(spans) < 2 or time_ns < _LEAST_SHARE * profiled_ns:
        return
    ways = Ways(evidence)
    for rows in rows_by(spans.track):
        ways.drop_host(
            int(spans.track[rows[0]]), spans.start_ns[rows], spans.end_ns[rows]
        )
    took = f"{duration_ns(time_ns)} of {duration_ns(profiled_ns)} profiled"
    call = next(iter(evidence.code.calls("DataLoader")), None)
    yield Proposal(
        name="more-workers" if has_workers else "workers",
        title=(
            "Give the DataLoader more workers, or a higher prefetch_factor."
            if has_workers
            else "Load in worker processes: DataLoader(..., num_workers=4)."
        ),
        evidence=(
            f"The main process waits for its workers' batches {len(spans):,} times, "
            f"{took}."
            if has_workers
            else f"The main process prepares {len(spans):,} batches itself, {took}, "
            "and launches nothing meanwhile."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "The main process still waits for workers that load more slowly than the "
            "GPU computes, and starting them takes time once."
        ),
        line=call.line if call else evidence.line_at(int(spans.start_ns[0])),
        code=with_workers(evidence.code, 8 if has_workers else 4),
    )


def with_workers(code: CellCode, workers: int) -> str:
    """Return the cell whose own DataLoader has workers; empty where it has none."""
    calls = code.calls("DataLoader")
    if len(calls) != 1:
        return ""
    edit = SourceEdit(code)
    given = {"num_workers": str(workers), "persistent_workers": "True"}
    edit.arguments(calls[0].node, given)
    return edit.source()


def _spans(annotations: Columns, name: str) -> Columns:
    chosen = np.array([text == name for text in annotations.names] or [False])
    are_spans: Bools = chosen[annotations.name]
    return annotations.where(are_spans)


def _judge(facts: Facts) -> Judgement:
    advised = facts.advised(LOADER_WORKERS)
    if advised is not None:
        return advised
    loading = facts.annotations(_PREFIX)
    if not loading:
        return Judgement("not applicable", "No DataLoader runs in this window.")
    time_ns = sum(row.host_ns for row in loading)
    batches = sum(row.times for row in loading)
    share = time_ns / max(facts.profile.wall_ns, 1)
    evidence = (
        f"The main process spends {duration_ns(time_ns)} on {batches:,} batches, "
        f"{percent(share)} of the window."
    )
    if any(row.name.startswith(_OF_WORKERS) for row in loading):
        return Judgement("yes", f"Worker processes load the batches. {evidence}")
    if share < _LEAST_SHARE:
        return Judgement("not applicable", evidence)
    return facts.without_gain(evidence)


LOADER_WORKERS = Question(
    name="loader-workers",
    text="Do worker processes prepare the batches?",
    judge=_judge,
    no_where="the main process prepares batches, or waits for workers",
    lab="copy-compute-overlap",
    is_of_gpu=False,
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("workers", "more-workers", "fewer-workers", "keep-workers"),
            what=(
                "a `DataLoader` in the main process, or one whose workers are too slow "
                "or are restarted; fewer workers, where they and torch have too few "
                "cores"
            ),
            time="a bound",
            answers=LOADER_WORKERS,
        ),
    ),
    rule=loading,
    questions=(LOADER_WORKERS,),
    untried="Worker processes can't be part of a run on copies.",
)
