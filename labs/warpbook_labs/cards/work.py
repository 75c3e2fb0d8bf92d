"""Of a card: which lines of a source cost most, and what an SM holds of each kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from warpbook_labs.cards.failure import location
from warpbook_labs.cards.model import (
    BytesCell,
    CardSection,
    CardTable,
    Cell,
    CodeCell,
    LocationCell,
    NumberCell,
    RatioCell,
    TextCell,
)
from warpbook_labs.cards.words import limited
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.findings import Counts
from warpbook_labs.results.occupancy import KernelOccupancy

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
