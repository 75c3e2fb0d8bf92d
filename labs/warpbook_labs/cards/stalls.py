"""Of a card: where the warps of a timed size wait, beside what was counted there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warpbook_labs.cards.failure import location
from warpbook_labs.cards.model import (
    CardSection,
    CardTable,
    CardText,
    Cell,
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
from warpbook_monitors import units
from warpbook_profiler.model.stalls import KernelStalls, LineStalls
from warpbook_profiler.stalls.reasons import leading, stall_reason

_MOST_KERNELS, _MOST_LINES = 4, 8
_MOST_WORDS = 600
#: of a line's samples: reasons with less are not named
_LEAST_SHARE = 0.1
_MOST_REASONS = 3
_HEADS: tuple[str, ...] = (
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
    shown = len(_HEADS) if any(of.warp_instructions for of in counts.values()) else -1
    shown = shown if counts else -3
    rows = tuple(
        _row(line, kernel.samples, counts, code)[:shown]
        for line in kernel.lines[:_MOST_LINES]
    )
    if rows:
        yield CardTable(_HEADS[:shown], rows)
        yield from _advice(f"At line {kernel.lines[0].line}", kernel.lines[0].reasons)
    else:
        yield from _advice("In no known line", kernel.reasons)


def _row(
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
