"""Operators that do much at once: what limits them, and what would change it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.events.columns import NONE, Columns, groups
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.flops import is_modelled, model
from warpbook_profiler.facts.traffic import least_bytes, only_passes
from warpbook_profiler.model.cause import Cause
from warpbook_profiler.model.use import CpuTime, CpuUse
from warpbook_profiler.verdict.cpu.split import Split
from warpbook_profiler.verdict.leading_cause import SHARE

#: products and convolutions, whichever library makes them
_COMPUTES = re.compile(r"aten::(mkldnn_|_?fft_|_?scaled_dot|.*conv|.*mm$|.*lstm|.*gru)")
_KINDS: tuple[Kind, ...] = ("compute-bound", "memory-bound", "operator-bound")
#: of all threads' CPU time to the one thread's: below it they had nothing to do
_SERIAL_RATIO = 1.2


def operator_causes(split: Split) -> Iterator[Cause]:
    """Give a cause for each kind of operator that took time."""
    large = split.calls.where(~split.small)
    if not split.time.operators_ns or not len(large):
        return
    inside = Coverage(large.start_ns, large.end_ns).holds(split.operators.start_ns)
    operators, self_ns = split.operators.where(inside), split.self_ns[inside]
    own_ns = np.bincount(operators.name, self_ns, minlength=len(operators.names))
    kinds = np.array([_kind_of(name) for name in operators.names])
    for kind in _KINDS:
        of_kind = kinds == kind
        total_ns = int(own_ns[of_kind].sum())
        if total_ns:
            name = operators.names[int(np.where(of_kind, own_ns, -1).argmax())]
            # an operator that only calls another counts once
            own = self_ns * 2 >= operators.duration_ns
            chosen = operators.where(of_kind[operators.name] & own)
            yield _cause(split, kind, total_ns, name, chosen)


def _kind_of(name: str) -> Kind:
    if is_modelled(name) or _COMPUTES.match(name):
        return "compute-bound"
    return "memory-bound" if only_passes(name) else "operator-bound"


def _cause(
    split: Split, kind: Kind, total_ns: int, name: str, operators: Columns
) -> Cause:
    most = f"{SHARE} of the time, mostly {name} ({_calls(operators, name)})"
    if kind == "compute-bound":
        what = f"Products and convolutions took {most}{_flop_rate(operators)}."
    elif kind == "memory-bound":
        what = f"Operators that pass over memory took {most}{_byte_rate(operators)}."
    else:
        what = f"Large operators took {most}."
    use = split.time.use
    if use is not None:
        if split.workers_lack_cores:
            return _crowded(split.time, use, total_ns, name, what)
        of_threads = _of_threads(use, total_ns, name, what)
        if of_threads is not None:
            return of_threads
    else:
        what += " It is not known how many threads it used."
    if kind == "compute-bound":
        return Cause(
            kind,
            total_ns,
            what,
            "smaller-products",
            "Compute less: smaller shapes, or bf16 where the CPU has instructions for "
            "it (AMX, AVX512-BF16); else this is work for a GPU.",
            None,
            operator=name,
        )
    if kind == "memory-bound":
        return Cause(
            kind,
            total_ns,
            f"{what} The bandwidth of this machine's memory is not known.",
            "fuse",
            "Move fewer bytes: torch.compile fuses consecutive operators into one "
            "pass; in-place forms and smaller dtypes also help.",
            _shortest_pass_ns(operators),
            "One pass over the data is left.",
            operator=name,
        )
    return Cause(
        "operator-bound",
        total_ns,
        what,
        "other-operator",
        f"Call {name} less often or on less data, or compute the result another way.",
        0,
        operator=name,
    )


def beside_workers(time: CpuTime, use: CpuUse) -> str:
    """Say how long the thread had no core, because workers and threads share them."""
    return (
        f"{units.share(time.queued_share)} of the time the thread had no core: the "
        f"DataLoader's workers and torch's {_count(use.threads, 'thread')} share "
        f"{_count(use.cores, 'core')}."
    )


def _crowded(time: CpuTime, use: CpuUse, total_ns: int, name: str, what: str) -> Cause:
    """Say that a DataLoader's workers take the cores from the operators."""
    return Cause(
        "thread-bound",
        total_ns,
        f"{what} {beside_workers(time, use)}",
        "threads",
        "Leave cores to the workers (torch.set_num_threads(1)), or use fewer workers.",
        0,
        operator=name,
        setting="set_num_threads(1)",
    )


def _of_threads(use: CpuUse, total_ns: int, name: str, what: str) -> Cause | None:
    """Tell whether the number of threads is what holds the operators back."""
    cores, threads = _count(use.cores, "core"), _count(use.threads, "thread")
    setting = f"set_num_threads({use.cores})"
    if use.threads * 2 <= use.cores:
        return Cause(
            "thread-bound",
            total_ns,
            f"{what} torch used {threads} of {cores}.",
            "threads",
            f"Let torch use the cores: torch.{setting}.",
            round(total_ns * use.threads / use.cores),
            f"{cores} share these operators.",
            operator=name,
            setting=setting,
        )
    if use.threads >= 2 * use.cores:
        return Cause(
            "thread-bound",
            total_ns,
            f"{what} torch divides each among {threads}, and there are {cores}: "
            "threads wait for one another.",
            "threads",
            f"As many threads as cores: torch.{setting}.",
            0,
            operator=name,
            setting=setting,
        )
    usable = min(use.threads, use.cores)
    if usable > 1 and use.process_ns < _SERIAL_RATIO * use.thread_ns:
        return Cause(
            "thread-bound",
            total_ns,
            f"{what} They ran on one core, although torch may use {threads}: they are "
            "too small to be divided, or of a kind that torch does not divide.",
            "divide",
            "Give each more work (a larger batch), or divide the work among processes.",
            round(total_ns / usable),
            f"{_count(usable, 'core')} share these operators.",
            operator=name,
        )
    return None


def _flop_rate(operators: Columns) -> str:
    """Write how fast the products are whose shapes are known."""
    flops = time_ns = 0
    for name, row, count, duration_ns in _alike(operators):
        work = model(name, operators.operands[operators.operand[row]])
        if work is not None:
            flops += work.flops * count
            time_ns += duration_ns
    if not flops or not time_ns:
        return ""
    return f", {units.rate(flops / time_ns * 1e9, 'FLOP')}"


def _byte_rate(operators: Columns) -> str:
    """Write how fast bytes move in the operators whose shapes are known."""
    size_bytes = time_ns = 0
    for name, row, count, duration_ns in _alike(operators):
        least = least_bytes(name, operators.operands[operators.operand[row]])
        if least is not None:
            size_bytes += least * count
            time_ns += duration_ns
    if not size_bytes or not time_ns:
        return ", at an unknown rate (no shapes)"
    return f", at least {units.rate(size_bytes / time_ns * 1e9, 'B')}"


def _alike(operators: Columns) -> Iterator[tuple[str, int, int, int]]:
    """Group calls of one operator with the same operands.

    Yields:
        the name, the row of one of them, how many there are, their time together.
    """
    known = operators.where(operators.operand != NONE)
    first, group = groups(known.name, known.operand)
    counts = np.bincount(group, minlength=len(first))
    times_ns = np.bincount(group, known.duration_ns, minlength=len(first))
    rows = np.flatnonzero(operators.operand != NONE)
    for at, row in enumerate(first.tolist()):
        name = known.names[known.name[row]]
        yield name, int(rows[row]), int(counts[at]), int(times_ns[at])


def _shortest_pass_ns(operators: Columns) -> int:
    """Give the shortest of the longest operator's calls: one pass is what is left."""
    if not len(operators):
        return 0
    time_ns = np.bincount(operators.name, operators.duration_ns)
    longest = operators.name == int(time_ns.argmax())
    return int(operators.duration_ns[longest].min())


def _calls(operators: Columns, name: str) -> str:
    return _count(int((operators.name == operators.names.index(name)).sum()), "call")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"
