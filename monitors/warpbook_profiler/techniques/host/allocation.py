"""Memory that is taken from the driver, or given back, while the cell runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.cell_code import CellCode, blocks
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, distinct
from warpbook_profiler.facts.calls import named
from warpbook_profiler.techniques.technique import ChangeKind, Technique

#: in a stream's order they are cheap
_TAKES = re.compile(r"(cuda|hip)Malloc(?!.*(Async|Host|FromPool))|cuMem(Create|Map$)")
_GIVES_BACK = re.compile(r"(cuda|hip)Free(?!.*(Async|Host))|cuMem(Release|Unmap)")
#: what the allocator asks before either
_ASKS = re.compile(r"(cuda|hip)(StreamIsCapturing|MemGetInfo|EventQuery)")
#: of the profiled run, below which nobody looks for it
_LEAST_SHARE = 0.03
#: set to anything but these, each tensor has an allocation of its own
_NO_CACHING, _OFF = "PYTORCH_NO_CUDA_MEMORY_CACHING", ("", "0")
#: a longer pause after a call is other work
_MOST_PAUSE_NS = 100_000
#: one of each is no storm
_LEAST_BACK = 2


class _Calls(NamedTuple):
    """Positions in `Calls.api` of the calls within the window."""

    takes: Int64s
    gives_back: Int64s


def allocation(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to leave memory where it is."""
    calls = _calls(evidence)
    emptied = next(iter(evidence.code.calls("empty_cache")), None)
    off = _turned_off(evidence.code)
    if off is not None and min(map(len, calls)) >= _LEAST_BACK:
        yield from _proposal(
            evidence,
            np.sort(np.concatenate([calls.gives_back, calls.takes])),
            name="caching-allocator",
            title="Leave the caching allocator on.",
            what=(
                "The caching allocator is off: memory is allocated from the driver "
                f"{len(calls.takes):,} times and freed {len(calls.gives_back):,} "
                "times, which waits for the GPU"
            ),
            line=off.line,
            code=off.code,
        )
    elif len(calls.gives_back) and (
        emptied is not None or _is_asked_for(evidence, calls)
    ):
        # the cell before it may have emptied the cache, too: all is taken anew
        again = calls.takes
        yield from _proposal(
            evidence,
            np.sort(np.concatenate([calls.gives_back, again])),
            name="empty-cache",
            title="Remove torch.cuda.empty_cache().",
            what=(
                f"empty_cache() frees memory {len(calls.gives_back):,} times, which "
                f"waits for the GPU, and it is allocated again {len(again):,} times"
            ),
            line=None if emptied is None else emptied.line,
            code="" if emptied is None else _without(evidence.code, "empty_cache"),
        )
    elif _is_torch(evidence) and min(map(len, calls)) >= _LEAST_BACK:
        yield from _proposal(
            evidence,
            np.sort(np.concatenate([calls.gives_back, calls.takes])),
            name="expandable-segments",
            title="Let the allocator grow its segments: expandable_segments:True.",
            what=(
                f"The allocator runs out of memory: it frees {len(calls.gives_back):,} "
                f"blocks and allocates {len(calls.takes):,}"
            ),
            is_bound=True,
            reason=(
                "This helps where memory is fragmented; where it is full, only smaller "
                "batches or fewer tensors help."
            ),
        )
    elif len(calls.takes):
        yield from _proposal(
            evidence,
            calls.takes,
            name="warm-memory",
            title="Run one step before the timed ones: first allocations are slow.",
            what=f"Memory is allocated from the driver {len(calls.takes):,} times",
        )


def _is_asked_for(evidence: Evidence, calls: _Calls) -> bool:
    """Tell whether a function that is not in sight empties the cache.

    An allocator that runs out frees within the operator that asks for memory.
    """
    if not _is_torch(evidence) or min(map(len, calls)) < _LEAST_BACK:
        return False
    api, operators = evidence.calls.api, evidence.operators
    outermost = operators.table.where(operators.outermost)
    freed, outside = api.rows(calls.gives_back), 0
    for thread in distinct(freed.track).tolist():
        mine = outermost.where(outermost.track == thread)
        at_ns = freed.start_ns[freed.track == thread]
        before = np.searchsorted(mine.start_ns, at_ns, side="right") - 1
        outside += int((np.append(mine.end_ns, 0)[before] <= at_ns).sum())
    return outside > len(freed) / 2


class _Switch(NamedTuple):
    """Where a cell turns the caching allocator off."""

    line: int
    #: the cell without it
    code: str


def _turned_off(code: CellCode) -> _Switch | None:
    for call in code.calls("caching_allocator_enable"):
        values = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
        if any(isinstance(value, ast.Constant) and not value.value for value in values):
            return _Switch(call.line, _without(code, call.name, False))
    for constant in code.constants():
        if _NO_CACHING in constant.target and constant.value not in _OFF:
            return _Switch(constant.line, "")
    return None


def _without(code: CellCode, name: str, *arguments: object) -> str:
    """Write the cell without statements that only call this, with these arguments."""
    edit = SourceEdit(code)
    for block in blocks(code.tree):
        for statement in block.statements:
            match statement:
                case ast.Expr(value=ast.Call(func=function, args=given)) if ast.unparse(
                    function
                ).split(".")[-1] == name and [
                    getattr(one, "value", one) for one in given
                ] == list(arguments):
                    edit.delete(statement)
    return edit.source()


def _proposal(
    evidence: Evidence,
    calls: Int64s,
    *,
    name: str,
    title: str,
    what: str,
    code: str = "",
    is_bound: bool = False,
    reason: str = "",
    line: int | None = None,
) -> Iterator[Proposal]:
    """Propose that these calls are gone."""
    api = evidence.calls.api
    time_ns = int(api.duration_ns[calls].sum())
    if time_ns < _LEAST_SHARE * evidence.bare_run.profiled_ns or not len(calls):
        return
    ways = Ways(evidence)
    ways.drop_calls(calls)
    _drop_allocator(evidence, ways, calls)
    names = sorted({api.names[at] for at in api.name[calls].tolist()})
    yield Proposal(
        name=name,
        title=title,
        evidence=(
            f"{what}: {' and '.join(names[:3])} take {duration_ns(time_ns)} of the "
            "host's time."
        ),
        ways=ways,
        is_bound=is_bound,
        reason=reason,
        line=line or evidence.line_at(int(api.start_ns[calls[0]])),
        code=code,
    )


def _calls(evidence: Evidence) -> _Calls:
    api = evidence.calls.api
    inside = api.start_ns >= evidence.run.start_ns
    return _Calls(
        *(
            np.flatnonzero(inside & named(api, pattern))
            for pattern in (_TAKES, _GIVES_BACK)
        )
    )


def _is_torch(evidence: Evidence) -> bool:
    names = evidence.operators.table.names
    return any(name.startswith("aten::") for name in names)


def _drop_allocator(evidence: Evidence, ways: Ways, calls: Int64s) -> None:
    """Take away what the allocator does around its calls: its questions, its pauses."""
    api, table = evidence.calls.api, evidence.operators.table
    before = np.maximum(calls - 1, 0)
    asks = before[named(api, _ASKS)[before] & (before < calls)]
    ways.drop_calls(asks)
    mine = distinct(np.concatenate([calls, asks]))
    edges = [api.start_ns, api.end_ns, table.start_ns, table.end_ns]
    edges_ns = np.sort(np.concatenate([*edges, [evidence.run.code_end_ns]]))
    place = np.searchsorted(edges_ns, api.end_ns[mine], side="right")
    until_ns = edges_ns[np.minimum(place, len(edges_ns) - 1)]
    is_pause = until_ns - api.end_ns[mine] < _MOST_PAUSE_NS
    for thread in distinct(api.track[mine]).tolist():
        chosen = is_pause & (api.track[mine] == thread)
        ways.drop_host(int(thread), api.end_ns[mine[chosen]], until_ns[chosen])


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=(
                "empty-cache",
                "caching-allocator",
                "warm-memory",
                "expandable-segments",
            ),
            what=(
                "`empty_cache()` in the cell or in what it calls, a caching allocator "
                "that the cell turns off, first allocations, blocks that are freed and "
                "allocated again"
            ),
            time="predicted; for the last one a bound",
        ),
    ),
    rule=allocation,
    untried=(
        "The allocator belongs to the process: it can't be switched for one run of the "
        "cell."
    ),
)
