"""Copies from pinned memory: what waits for them, and what could run beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns, size
from warpbook_profiler.advice.code.cell_code import Call
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.pinned_memory import copies_to_host
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, distinct
from warpbook_profiler.techniques.host.transfers import PINNED_INPUT
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_FROM_PINNED = "HtoD (Pinned"
_METHODS = ("to", "cuda", "copy_")
#: a host that writes to what is copied: it must be done first
_WRITES = tuple(
    f"aten::{name}_" for name in "copy fill zero normal uniform random".split()
)
_LEAST_COPIES = 2
#: of a window with more, the operators that are looked at
_MOST_COPIES = 10_000
#: of a source with more, the calls that are looked at
_MOST_CALLS = 200


def pinned_copies(evidence: Evidence) -> Int64s:
    """Return the copies from pinned memory to the GPU, in their launches' order."""
    gpu, launch = evidence.gpu, evidence.calls.launch
    is_theirs = np.array([_FROM_PINNED in name for name in gpu.names] or [False])
    copies = np.flatnonzero(
        is_theirs[gpu.name] & (gpu.size_bytes > 0) & (launch != NONE)
    )
    ordered: Int64s = copies[np.argsort(launch[copies], kind="stable")][:_MOST_COPIES]
    return ordered


def pinned_waits(evidence: Evidence) -> Iterator[Proposal]:
    """Propose non_blocking=True."""
    operators, gpu, code = evidence.operators, evidence.gpu, evidence.code
    copies = pinned_copies(evidence)
    outer = operators.outer[copies]
    copies, outer = copies[outer != NONE], outer[outer != NONE]
    waits = evidence.waits_within(distinct(outer))
    if len(waits) < _LEAST_COPIES or _is_filled_between(evidence, outer):
        return
    calls = [call for call in code.calls(*_METHODS) if not _is_told(call)]
    reads = [call for call in calls if _is_to_gpu(call)][:_MOST_CALLS]
    flow = ValueFlow(code)
    if any(_is_written(flow, call) for call in reads):
        return
    waited_ns = int(evidence.calls.api.duration_ns[waits].sum())
    ways = Ways(evidence)
    ways.drop_calls(waits)
    yield Proposal(
        name="non-blocking",
        title="Copy with non_blocking=True: the memory is already pinned.",
        evidence=(
            f"{len(copies):,} copies carry {size(int(gpu.size_bytes[copies].sum()))} "
            f"from pinned memory, and the host waits for each: "
            f"{duration_ns(waited_ns)} in the profile."
        ),
        ways=ways,
        reason="The memory must not be overwritten before the copy is done.",
        operator=operators.name(int(outer[0])),
        line=reads[0].line
        if reads
        else evidence.line_at(int(operators.table.start_ns[outer[0]])),
        code=_edited(evidence, reads),
        is_shown_without_gain=bool(reads),
    )


def _is_filled_between(evidence: Evidence, outer: Int64s) -> bool:
    """Tell whether the CPU writes to tensors between the copies."""
    operators = evidence.operators
    launches = np.zeros(len(operators.table) + 1, np.bool_)
    launches[operators.outer] = True
    writes = operators.named(*_WRITES) & operators.outermost & ~launches[:-1]
    between = np.flatnonzero(writes)
    if not len(outer):
        return False
    return bool(((between > outer.min()) & (between < outer.max())).any())


def _is_told(call: Call) -> bool:
    return any(one.arg == "non_blocking" for one in call.node.keywords)


def _is_to_gpu(call: Call) -> bool:
    given = [ast.unparse(one) for one in call.node.args]
    named = [ast.unparse(one.value) for one in call.node.keywords]
    if any("cpu" in text for text in (*given, *named)):
        return False
    if call.name == "cuda":
        return True
    if call.name == "copy_":
        return len(given) == 1
    is_dtype = any(text.startswith("torch.") for text in given)
    return bool(given or named) and not is_dtype


def _is_written(flow: ValueFlow, call: Call) -> bool:
    """Tell whether the loop around a copy writes to what is copied."""
    loop = flow.loop(call.node)
    copied = call.node.args[0] if call.name == "copy_" else call.node.func
    name = ast.unparse(copied).removesuffix(f".{call.name}")
    if loop is None:
        return False
    for part in ast.walk(loop):
        match part:
            case ast.Call(func=ast.Attribute(attr=method, value=value)):
                if method.endswith("_") and ast.unparse(value) == name:
                    return True
            case ast.Subscript(value=value, ctx=ast.Store()):
                if ast.unparse(value) == name:
                    return True
    return False


def _edited(evidence: Evidence, calls: list[Call]) -> str:
    """Write the option into the only copy; empty where one may go to the host."""
    if len(calls) != 1 or not calls[0].in_loop or copies_to_host(evidence):
        return ""
    if evidence.is_own_method(calls[0].name):
        return ""
    edit = SourceEdit(evidence.code)
    edit.arguments(calls[0].node, {"non_blocking": "True"})
    return edit.source()


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("non-blocking",),
            what="copies from pinned memory that the host waits for",
            time="predicted, also that it gains nothing",
            answers=PINNED_INPUT,
            lab="copy-compute-overlap",
        ),
    ),
    rule=pinned_waits,
    untried="The cell's code would have to change; the trial of `pinned` covers both.",
)
