"""Work on the CPU in the middle: a copy to the host, and back again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import duration_ns, size
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.host_flow import (
    RoundTrip,
    passes_between,
    round_trips,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import opaque_calls
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.numpy_code import without_numpy
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Bools, Int64s
from warpbook_profiler.facts.calls import TO_GPU, named
from warpbook_profiler.facts.traffic import only_passes
from warpbook_profiler.techniques.host.waits import HOST_WAITS
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_TO_HOST = re.compile(r"Memcpy DtoH|CopyDeviceToHost")
#: numbers and labels come and go for reasons of their own
_LEAST_BYTES = 1_024
#: methods that copy, in a cell that does it itself
_MOVES = ("cpu", "numpy", "tolist", "item", "asnumpy", "to", "cuda", "copy_")
#: bytes per ns that one thread passes over at most, about
_HOST_RATE = 10.0
#: what the host does for so long between two calls is other work
_PAUSE_NS = 500_000
#: a window with more is judged by these
_MOST_COPIES = 20_000
_FLOATS = frozenset(("float", "double"))
_COPIES = frozenset(("aten::to", "aten::_to_copy", "aten::copy_"))
#: operators that compute nothing
_LOOKS = _COPIES | frozenset(
    f"aten::{name}"
    for name in "select slice narrow view reshape as_strided detach empty unsqueeze "
    "empty_strided empty_like resolve_conj resolve_neg lift_fresh expand permute t "
    "transpose squeeze unbind resize_ is_pinned _pin_memory pin_memory".split()
)


class _Pair(NamedTuple):
    """A copy to the host and the one back, among the events on the GPU."""

    out: int
    back: int
    size_bytes: int
    #: operators that the CPU computes with in between, and all of the host's there
    computing: Int64s
    between: Int64s
    is_alone: bool


def round_trip(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to stay on the GPU."""
    trips = round_trips(evidence.code)
    is_hidden = evidence.code.is_known and not trips
    if is_hidden and evidence.code.calls(*_MOVES):
        return
    codes = [evidence.code]
    if is_hidden:
        codes = list(map(CellCode, evidence.run.called.values()))
    in_code = [(code, trip) for code in codes for trip in round_trips(code)]
    uses_numpy = is_hidden or any(trip.out.is_numpy for trip in trips)
    pairs = list(_pairs(evidence))
    if is_hidden and not _are_trips(evidence, pairs):
        return
    if not pairs and uses_numpy:
        # as counts or a mean of it come back
        pairs = list(_pairs(evidence, is_less=True))
    pairs = [pair for pair in pairs if len(pair.computing) or uses_numpy]
    if not pairs:
        return
    operators, gpu, calls = evidence.operators, evidence.gpu, evidence.calls
    names = {operators.name(at) for pair in pairs for at in pair.computing.tolist()}
    by_numpy = [passes_between(*one) for one in in_code if uses_numpy]
    is_simple = None not in by_numpy and all(map(only_passes, names))
    is_simple &= bool(in_code) or not is_hidden
    is_predicted = is_simple and evidence.chip is not None
    passes = max(filter(None, by_numpy), default=0)
    ways = Ways(evidence)
    # what is left there is mostly memory of the host that is given back
    for edit in (ways.best, ways.usual):
        edit.drop_tail()
    seen = set[int]()
    outs = [calls.launch[pair.out] for pair in pairs]
    out_calls = np.sort(evidence.host_position(np.array(outs, np.int64)))
    for pair in pairs:
        # what is computed of several that leave is counted once
        counted = 1 if pair.back in seen else len(pair.computing) + passes
        _stay(evidence, ways, pair, is_predicted, max(counted, 1))
        _warm(evidence, ways, pair, out_calls)
        seen.add(pair.back)
    api = calls.api
    started = api.start_ns[calls.launch[[pair.out for pair in pairs]]]
    ended = api.end_ns[calls.launch[[pair.back for pair in pairs]]]
    # of several that come back as one, the first begins
    _, first_of = np.unique([pair.back for pair in pairs], return_index=True)
    time_ns = int(np.maximum(ended - started, 0)[first_of].sum())
    total = sum(pair.size_bytes for pair in pairs)
    copies = {copy for pair in pairs for copy in (pair.out, pair.back)}
    copied_ns = int(gpu.duration_ns[sorted(copies)].sum())
    shown = sorted(name.removeprefix("aten::") for name in names)[:4]
    trip = trips[0] if trips else None
    first = int(operators.direct[pairs[0].out])
    yield Proposal(
        name="stay-on-gpu",
        title="Compute on the GPU: remove the copies to the host and back.",
        evidence=(
            f"{size(total)} go to the host and back in {len(copies):,} copies, "
            f"{duration_ns(copied_ns)} on the GPU"
            + (f"; in between the CPU computes {', '.join(shown)}" if shown else "")
            + f". From first call to last: {duration_ns(time_ns)} in the profile."
        ),
        ways=ways,
        is_bound=not is_predicted,
        reason=""
        if is_predicted
        else "The trace does not show how long the GPU would take.",
        operator=None if first == NONE else operators.name(first),
        line=trip.out.node.lineno if trip else evidence.line_at(int(started[0])),
        code=_without_copy(evidence.code, trips)
        or (without_numpy(evidence.code) if _are_floats(evidence, pairs) else ""),
    )


def _without_copy(code: CellCode, trips: Sequence[RoundTrip]) -> str:
    """Write that what goes to the host stays; its way back has nothing to copy then.

    Returns:
        Nothing where other code than torch's sees it, or changes it in place.
    """
    origins = {trip.out.node for trip in trips}
    if len(origins) != 1 or opaque_calls(code.tree):
        return ""
    (out,) = origins
    function = out.func
    if any(trip.out.is_numpy for trip in trips) or _changes_in_place(code):
        return ""
    if not isinstance(function, ast.Attribute) or function.attr not in ("cpu", "to"):
        return ""
    edit = SourceEdit(code)
    edit.replace(out, edit.operand(function.value))
    return edit.source()


def _are_floats(evidence: Evidence, pairs: list[_Pair]) -> bool:
    """Tell whether what leaves the GPU is of one dtype that NumPy and torch keep.

    A number that is read alone is no array.
    """
    operators, gpu = evidence.operators, evidence.gpu
    found = set[str]()
    outs = {pair.out for pair in pairs}
    left = named(gpu, _TO_HOST) & (evidence.calls.launch != NONE)
    for out in outs.union(np.flatnonzero(left)[:_MOST_COPIES].tolist()):
        at = int(operators.direct[out])
        if out not in outs and (at == NONE or operators.name(at) not in _COPIES):
            continue
        while at != NONE and not operators.operands(at).dtypes:
            at = int(operators.parent[at])
        if at == NONE or operators.operands(at).dtypes[0] not in _FLOATS:
            return False
        found.add(operators.operands(at).dtypes[0])
    return len(found) == 1


def _changes_in_place(code: CellCode) -> bool:
    return any(
        isinstance(node, ast.AugAssign)
        or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.Attribute) and node.attr.endswith("_"))
        or (isinstance(node, ast.keyword) and node.arg in ("out", "inplace"))
        or (isinstance(node, ast.Attribute) and node.attr in ("numpy", "tolist"))
        for node in ast.walk(code.tree)
    )


def _stay(
    evidence: Evidence, ways: Ways, pair: _Pair, is_predicted: bool, passes: int
) -> None:
    """Take the way to the host and back away, and put passes of the GPU there."""
    operators, calls, chip = evidence.operators, evidence.calls, evidence.chip
    out, back = np.array([pair.out]), np.array([pair.back])
    call, returns = int(calls.launch[pair.out]), int(calls.launch[pair.back])
    thread = int(calls.api.track[call])
    if chip is not None:
        ways.resize(out, chip.pass_over(2.0 * pair.size_bytes).times(passes))
    ways.drop(back)
    after = _waits_within(evidence, pair.back)
    waited = np.array([call, int(calls.read_by[call]), returns], np.int64)
    ways.stop_waiting(np.append(waited[waited != NONE], after))
    ways.drop_calls(np.append(returns, after))
    ways.add_host(np.array([call]), evidence.takes("operator", passes))
    table = operators.table
    if pair.is_alone:
        # the host's memory for it is taken and filled within the operators that copy
        first, last = operators.outer[[pair.out, pair.back]].tolist()
        at_ns = int(calls.api.end_ns[call]), int(calls.api.start_ns[returns])
        begin_ns = at_ns[0] if first == NONE else int(table.start_ns[first])
        until_ns = at_ns[1] if last == NONE else int(table.end_ns[last])
        spans = np.array([begin_ns]), np.array([max(*at_ns, until_ns)])
    else:
        spans = table.start_ns[pair.between], table.end_ns[pair.between]
    ways.drop_host(thread, *spans, in_worst=is_predicted)


def _warm(evidence: Evidence, ways: Ways, pair: _Pair, outs: Int64s) -> None:
    """At best, have the host come to the calls after it as soon as to others.

    What it did before has taken its caches. Later pauses may be other work, and stay.
    """
    host, calls = evidence.bare.program.host, evidence.calls
    returns = int(calls.launch[pair.back])
    last = max([returns, *_waits_within(evidence, pair.back).tolist()])
    first = int(evidence.host_position(np.array([last]))[0]) + 1
    until = np.append(outs, len(host))[np.searchsorted(outs, first)]
    later = np.arange(first, until)
    later = later[host.lane[later] == host.lane[first - 1]]
    # a span that ends where a call begins would take the call, too
    usual_ns = max(float(np.median(host.gap_ns)), 1_000.0)
    is_pause = (later != first) & (host.gap_ns[later] >= _PAUSE_NS)
    later = later[(host.gap_ns[later] > usual_ns) & ~is_pause]
    gap_ns = host.gap_ns[later]
    begin_ns = (host.start_ns[later] - gap_ns).astype(np.int64) + evidence.run.start_ns
    end_ns = begin_ns + (gap_ns - usual_ns).astype(np.int64)
    thread = int(calls.api.track[calls.launch[pair.out]])
    ways.best.drop_host(thread, begin_ns, end_ns)


def _waits_within(evidence: Evidence, copy: int) -> Int64s:
    """Find the calls that wait for a copy before its operator returns."""
    operators, calls = evidence.operators, evidence.calls
    operator, launch = int(operators.direct[copy]), int(calls.launch[copy])
    if operator == NONE:
        return np.empty(0, np.int64)
    api, table = calls.api, operators.table
    until = np.searchsorted(api.start_ns, table.end_ns[operator])
    later = np.arange(launch + 1, int(until))
    on_thread = api.track[later] == api.track[launch]
    waits: Int64s = later[calls.waits[later] & on_thread]
    return waits


def _pairs(evidence: Evidence, is_less: bool = False) -> Iterator[_Pair]:
    """Give the ways to the host and back.

    Args:
        evidence: of the cell.
        is_less: what comes back is smaller, and of all that left just before it.
    """
    gpu, calls = evidence.gpu, evidence.calls
    known = (calls.launch != NONE) & (gpu.size_bytes >= _LEAST_BYTES)
    to_host, to_gpu = named(gpu, _TO_HOST) & known, named(gpu, TO_GPU) & known
    if not (to_host.any() and to_gpu.any()):
        return
    copies = np.flatnonzero(to_host | to_gpu)
    copies = copies[np.argsort(calls.launch[copies], kind="stable")][:_MOST_COPIES]
    launches = _launching(evidence)
    # more that leaves is no work of the GPU's
    works = np.sort(calls.launch[~named(gpu, _TO_HOST)])
    open_copies: dict[tuple[int, int], list[int]] = {}
    left: list[int] = []
    for copy in copies.tolist():
        size_bytes = int(gpu.size_bytes[copy])
        key = int(calls.api.track[calls.launch[copy]]), size_bytes
        if to_host[copy]:
            open_copies.setdefault(key, []).append(copy)
            left.append(copy)
        elif is_less:
            larger = [one for one in left if gpu.size_bytes[one] > size_bytes]
            left.clear()
            for out in larger:
                yield _pair(
                    evidence, out, copy, int(gpu.size_bytes[out]), launches, works
                )
        elif key in open_copies:
            *others, last = open_copies.pop(key)
            for out in others:
                pair = _pair(evidence, out, copy, size_bytes, launches, works)
                # it left for the same, before the GPU got other work
                if pair.is_alone:
                    yield pair
            yield _pair(evidence, last, copy, size_bytes, launches, works)


def _pair(
    evidence: Evidence,
    out: int,
    back: int,
    size_bytes: int,
    launches: Bools,
    works: Int64s,
) -> _Pair:
    operators, calls = evidence.operators, evidence.calls
    table, api = operators.table, calls.api
    thread = int(api.track[calls.launch[out]])
    begin_ns = int(api.end_ns[calls.launch[out]])
    end_ns = int(api.start_ns[calls.launch[back]])
    edges = np.searchsorted(table.start_ns, [begin_ns, end_ns])
    inside = np.arange(edges[0], edges[1])
    inside = inside[table.track[inside] == thread]
    on_host = inside[~launches[inside]]
    names = [operators.name(at) for at in on_host.tolist()]
    outer = np.array([name not in _LOOKS for name in names], np.bool_)
    outer &= operators.outermost[on_host]
    since, until = np.searchsorted(works, calls.launch[[out, back]])
    is_alone = not (api.track[works[since:until]] == thread).any()
    return _Pair(
        out,
        back,
        size_bytes,
        on_host[outer],
        on_host[operators.outermost[on_host]],
        is_alone,
    )


def _are_trips(evidence: Evidence, pairs: list[_Pair]) -> bool:
    """Tell whether a function that is not in sight computes on the host.

    All that leaves comes back before the GPU gets other work, and the host takes long
    enough in between to have passed over it.
    """
    gpu, calls = evidence.gpu, evidence.calls
    copies = (named(gpu, _TO_HOST) | named(gpu, TO_GPU)) & (calls.launch != NONE)
    copies &= gpu.size_bytes >= _LEAST_BYTES
    if np.count_nonzero(copies) != 2 * len(pairs):
        return False
    for pair in pairs:
        back_ns = calls.api.start_ns[calls.launch[pair.back]]
        between_ns = int(back_ns - gpu.end_ns[pair.out])
        if not pair.is_alone or between_ns < pair.size_bytes / _HOST_RATE:
            return False
    return True


def _launching(evidence: Evidence) -> Bools:
    """Choose the operators that put work on the GPU, or enclose one that does."""
    operators = evidence.operators
    chosen: Bools = np.zeros(len(operators.table) + 1, np.bool_)
    position = operators.launching
    while len(position):
        chosen[position] = True
        above: Bools = np.zeros(len(operators.table) + 1, np.bool_)
        above[operators.parent[position]] = True
        position = np.flatnonzero(above[:-1])
    return chosen[:-1]


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("stay-on-gpu",),
            what="a result that is copied to the CPU, processed there, and copied back",
            time=(
                "predicted where the CPU's work is elementwise, in NumPy too; "
                "otherwise a bound"
            ),
            answers=HOST_WAITS,
        ),
    ),
    rule=round_trip,
    untried=BY_EDIT,
)
