"""Results that a loop copies to the host turn by turn, each of which it waits for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns, rate, size
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import Call, CellCode
from warpbook_profiler.advice.code.copied_code import (
    TAILS,
    copied_after,
    copied_before,
    copied_result,
)
from warpbook_profiler.advice.code.host_flow import round_trips
from warpbook_profiler.advice.code.landing_code import landed
from warpbook_profiler.advice.code.torch_code import opaque_calls
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Bools, Category, Int64s, distinct
from warpbook_profiler.techniques.host.waits import HOST_WAITS
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: operators that copy a tensor to the host; others read a value in passing
_COPIES = ("aten::to", "aten::_to_copy", "aten::copy_")
_PAGEABLE = "DtoH (Device -> Pageable"
_TO_GPU = "HtoD"
#: fewer are no loop
_LEAST_COPIES = 4
#: of smaller ones the wait takes longer than the bytes
_LARGE_BYTES = 256 << 10
#: of the bare run, below which copies are left alone
_LEAST_SHARE = 0.03
_METHODS = ("cpu", "to", "numpy", "tolist", "copy_")


def read_back(evidence: Evidence) -> Iterator[Proposal]:
    """Propose pinned memory for large results, and one copy of many small ones."""
    copies = _copies(evidence)
    read = _reading_call(evidence.code)
    reads = distinct(evidence.operators.outer[copies])
    if len(reads) < _LEAST_COPIES:
        return
    line = read.line if read else _line(evidence, copies)
    if np.median(evidence.gpu.size_bytes[copies]) >= _LARGE_BYTES:
        yield from _pinned(evidence, copies, read, line)
    else:
        yield _stacked(evidence, copies, read, line)


def _pinned(
    evidence: Evidence, copies: Int64s, read: Call | None, line: int | None
) -> Iterator[Proposal]:
    time_ns = evidence.time_ns(copies)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    size_bytes = int(evidence.gpu.size_bytes[copies].sum())
    span = (
        None
        if evidence.chip is None
        else evidence.chip.copy(size_bytes, "to_host", calls=len(copies))
    )
    ways = Ways(evidence)
    # a copy takes time whatever memory it is to
    ways.resize(copies, (span or Span(0.0, 0.0, 0.0)).at_most(time_ns))
    reads = distinct(evidence.operators.outer[copies])
    ways.stop_waiting(evidence.waits_within(reads))
    yield Proposal(
        name="pinned-results",
        title="Copy the results to pinned memory with non_blocking=True.",
        evidence=(
            f"{len(copies):,} copies to the host carry {size(size_bytes)} to pageable "
            f"memory at {rate(size_bytes / max(time_ns, 1) * 1e9, 'B')}, and the host "
            f"waits for each: {duration_ns(time_ns)} in the profile."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "Pin the memory once, before the run: pinning takes longer than the copies."
        ),
        operator=evidence.operators.name(int(reads[0])),
        line=line,
        code=_without_waits(evidence.code, read),
    )


def _stacked(
    evidence: Evidence, copies: Int64s, read: Call | None, line: int | None
) -> Proposal:
    operators = evidence.operators
    reads = distinct(operators.outer[copies])
    # one is left, for all of them in the end
    removed = reads[:-1]
    ways = Ways(evidence)
    ways.drop_operators(removed)
    ways.stop_waiting(evidence.waits_within(removed))
    waits = evidence.waits_within(reads)
    waited_ns = int(evidence.calls.api.duration_ns[waits].sum())
    sizes = distinct(evidence.gpu.size_bytes[copies])
    carried_bytes = int(evidence.gpu.size_bytes[copies].sum())
    return Proposal(
        name="stack-results",
        title="Keep the results on the GPU, and copy them all together after the loop.",
        evidence=(
            f"{len(copies):,} copies to the host carry {size(carried_bytes)}, "
            f"and the host waits for the GPU each time: {duration_ns(waited_ns)} in "
            "the profile."
        ),
        ways=ways,
        operator=operators.name(int(removed[0])),
        line=line,
        code=copied_before(evidence.code, read)
        or copied_after(evidence.code, read, len(sizes)),
    )


def _copies(evidence: Evidence) -> Int64s:
    """Give the copies to pageable memory that don't come back to the GPU."""
    gpu, operators = evidence.gpu, evidence.operators
    code, nothing = evidence.code, np.empty(0, np.int64)
    is_hidden = _reading_call(code) is None
    if round_trips(code) or (
        code.is_known and is_hidden and not opaque_calls(code.tree)
    ):
        return nothing
    is_copy, is_sized = gpu.is_in(Category.COPY), gpu.size_bytes > 0
    to_host = is_copy & is_sized & _names_with(evidence, _PAGEABLE)
    copies_tensor = np.append(operators.named(*_COPIES) & operators.outermost, False)
    to_host &= copies_tensor[operators.outer]
    if is_hidden:
        back = is_copy & is_sized & _names_with(evidence, _TO_GPU)
        to_host &= ~np.isin(gpu.size_bytes, gpu.size_bytes[back])
    return np.flatnonzero(to_host)


def _names_with(evidence: Evidence, text: str) -> Bools:
    gpu = evidence.gpu
    fits = np.array([text in name for name in gpu.names] or [False])
    chosen: Bools = fits[gpu.name]
    return chosen


def _line(evidence: Evidence, copies: Int64s) -> int | None:
    launch = int(evidence.calls.launch[copies[0]])
    return evidence.line_at(int(evidence.calls.api.start_ns[launch]))


def _reading_call(code: CellCode) -> Call | None:
    """Give the call that copies to the host, one in a loop first."""
    reads = [call for call in code.calls(*_METHODS) if _is_read(call)]
    # of `x.cpu().numpy()` it is the inner one that copies
    reads.sort(key=lambda call: (not call.in_loop, _METHODS.index(call.name)))
    return next(iter(reads), None)


def _is_read(call: Call) -> bool:
    if call.name == "copy_":
        return bool(call.node.args)
    given = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
    names_cpu = any("cpu" in ast.unparse(value) for value in given)
    return bool(call.receiver) and (call.name != "to" or names_cpu)


def _without_waits(code: CellCode, read: Call | None) -> str:
    """Write that results go to memory that torch pins, and are waited for at once."""
    if read is not None and read.name == "copy_":
        (result, *_) = read.node.args
        return landed(code, result, result, read.node)
    copied = copied_result(code, read)
    if read is None or copied is None or copied.tail not in TAILS:
        return ""
    return landed(code, copied.result, copied.whole, read.node)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("pinned-results",),
            what=(
                "copies of 256 KiB or more to pageable memory of the host, four times "
                "or more"
            ),
            time="a bound",
            lab="host-device-copies",
        ),
        ChangeKind(
            names=("stack-results",),
            what=(
                "smaller tensors copied to the host in a loop, four times or more, by "
                "`.cpu()` and the like: `torch.stack` and one copy"
            ),
            time="predicted",
            answers=HOST_WAITS,
            lab="read-the-trace",
        ),
    ),
    rule=read_back,
    untried=BY_EDIT,
)
