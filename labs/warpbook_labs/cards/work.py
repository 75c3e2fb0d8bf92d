"""Of a card: which lines of a source cost most, and at which its warps wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from warpbook_labs.cards.failure import location
from warpbook_labs.cards.model import (
    BytesCell,
    CardSection,
    CardTable,
    CardText,
    Cell,
    CodeCell,
    LocationCell,
    NumberCell,
    Part,
    RatioCell,
    TextCell,
)
from warpbook_labs.cards.words import limited, sizes_text
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.results.findings import Counts
from warpbook_labs.results.occupancy import KernelOccupancy
from warpbook_monitors import units
from warpbook_profiler.model.stalls import KernelStalls, LineStalls
from warpbook_profiler.stalls.reasons import leading, stall_reason

_T = TypeVar("_T")

_MOST_LINES = 5
_HEADS: tuple[str, ...] = (
    "line",
    "warp instructions",
    "sectors",
    "ideal sectors",
    "bank conflicts",
)


def work_sections(
    case: CaseResult | None, code: Sequence[str]
) -> Iterator[CardSection]:
    """Tell the lines of the source that cost most in a case."""
    if case is None or not case.lines:
        return
    costly = sorted(
        case.lines.items(),
        key=lambda pair: (-pair[1].warp_instructions, -pair[1].global_sectors),
    )
    rows = tuple(_row(code, line, counts) for line, counts in costly[:_MOST_LINES])
    heads = _HEADS
    if not any(counts.warp_instructions for _, counts in costly):
        # of Triton's blocks only the sectors are counted
        heads, rows = _without(heads), tuple(map(_without, rows))
    yield CardSection(
        f"Most work by line ({limited(case.about, 120)})",
        (CardTable(heads, rows),),
        "open" if case.passed else "closed",
    )


def resource_sections(held: Sequence[KernelOccupancy]) -> Iterator[CardSection]:
    """Tell what a multiprocessor holds of each kernel, by a real compile."""
    if not held:
        return
    heads = ("kernel", "threads", "registers", "spilled", "shared", "blocks")
    architecture = limited(held[0].resources.architecture, 20)
    table = CardTable(
        (*heads, "occupancy", "limited by"), tuple(map(_held, held[:_MOST_LINES]))
    )
    title = f"Occupancy of a multiprocessor ({architecture})"
    yield CardSection(title, (table,), "closed")


def effort(case: CaseResult) -> int:
    """Say how much work a case was, to choose the one whose work is told."""
    if case.host_counts is not None:
        # of hidden cases there is no timeline
        return 0 if case.is_hidden else case.host_counts.total_ns
    return case.counts.warp_instructions if case.counts else 0


def _row(code: Sequence[str], line: int, counts: Counts) -> tuple[Cell, ...]:
    quoted = location(code, line) or (LocationCell(line, ""),)
    return (
        LocationCell(line, quoted[0].code.strip()),
        NumberCell(counts.warp_instructions),
        NumberCell(counts.global_sectors),
        NumberCell(counts.least_global_sectors),
        NumberCell(counts.bank_conflicts),
    )


def _without(columns: tuple[_T, ...]) -> tuple[_T, ...]:
    first, _, *sectors, _ = columns
    return (first, *sectors)


def _held(held: KernelOccupancy) -> tuple[Cell, ...]:
    of = held.resources
    return (
        CodeCell(limited(of.kernel, 60)),
        NumberCell(held.threads_per_block),
        NumberCell(of.registers),
        BytesCell(of.spill_store_bytes + of.spill_load_bytes),
        BytesCell(of.shared_bytes + held.dynamic_shared_bytes),
        NumberCell(held.blocks),
        RatioCell(held.occupancy, "percent"),
        TextCell(", ".join(held.limited_by) or "no block fits"),
    )


_MOST_KERNELS, _MOST_SAMPLED = 4, 8
_MOST_WORDS = 600
#: of a line's samples: reasons with less are not named
_LEAST_SHARE = 0.1
_MOST_REASONS = 3
_STALL_HEADS: tuple[str, ...] = (
    "line",
    "samples",
    "what warps do there",
    "sectors",
    "ideal sectors",
    "bank conflicts",
)
_TITLE = "Where warps wait, by line"


def stall_sections(
    device: DeviceResult, case: CaseResult | None, code: Sequence[str]
) -> Iterator[CardSection]:
    """Tell the lines at which warps were sampled, or why none were.

    Args:
        case: whose counts without a GPU stand beside the samples.
    """
    stalls = device.stalls
    if stalls is None:
        return
    if not stalls.kernels:
        note = CardText(limited(stalls.note, _MOST_WORDS), "quiet")
        yield CardSection(_TITLE, (note,), "closed")
        return
    said = "One more call was sampled, which was neither timed nor judged"
    if device.speed is not None:
        said += f" ({sizes_text(device.speed.sizes)})"
    if case is not None and case.lines:
        said += f"; sectors and conflicts are those of {limited(case.about, 120)}"
    conditions = CardText(limited(f"{said}.", _MOST_WORDS), "quiet")
    for at, kernel in enumerate(stalls.kernels[:_MOST_KERNELS]):
        name = f": {limited(kernel.name, 100)}" if len(stalls.kernels) > 1 else ""
        title = f"{_TITLE}{name} ({kernel.samples:,} samples)"
        parts = _kernel(kernel, {} if case is None else case.lines, code)
        yield CardSection(title, (*parts, conditions), "closed" if at else "open")


def _kernel(
    kernel: KernelStalls, counts: Mapping[int, Counts], code: Sequence[str]
) -> Iterator[Part]:
    # of Triton's blocks only the sectors are counted
    shown = (
        len(_STALL_HEADS) if any(of.warp_instructions for of in counts.values()) else -1
    )
    shown = shown if counts else -3
    rows = tuple(
        _sampled_row(line, kernel.samples, counts, code)[:shown]
        for line in kernel.lines[:_MOST_SAMPLED]
    )
    if rows:
        yield CardTable(_STALL_HEADS[:shown], rows)
        yield from _advice(f"At line {kernel.lines[0].line}", kernel.lines[0].reasons)
    else:
        yield from _advice("In no known line", kernel.reasons)


def _sampled_row(
    line: LineStalls, total: int, counts: Mapping[int, Counts], code: Sequence[str]
) -> tuple[Cell, ...]:
    quoted = location(code, line.line) or (LocationCell(line.line, ""),)
    reasons = line.reasons
    shares = units.parts_of_one([count / line.samples for count in reasons.values()])
    named = [
        f"{stall_reason(reason).words} ({units.share(share)})"
        for (reason, count), share in list(zip(reasons.items(), shares, strict=True))[
            :_MOST_REASONS
        ]
        if count >= _LEAST_SHARE * line.samples
    ]
    of = counts.get(line.line)
    # a line that the interpreter never came to, or the compiler moved work to
    counted: tuple[Cell, ...] = (TextCell("-"),) * 3
    if of is not None:
        of_line = of.global_sectors, of.least_global_sectors, of.bank_conflicts
        counted = tuple(map(NumberCell, of_line))
    return (
        LocationCell(line.line, quoted[0].code.strip()),
        RatioCell(line.samples / total, "percent"),
        TextCell(limited(", ".join(named), _MOST_WORDS)),
        *counted,
    )


def _advice(place: str, reasons: Mapping[str, int]) -> Iterator[CardText]:
    reason = leading(reasons)
    if reason is None:
        return
    known = stall_reason(reason)
    lab = f" Lab: {known.lab}." if known.lab else ""
    words = f"{place} a warp {known.words}. {known.advice}{lab}"
    yield CardText(limited(words, _MOST_WORDS))
