"""Of a card: where the warps of a timed size wait, beside what was counted there."""

from __future__ import annotations

from collections import Counter
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
from warpbook_profiler.model.stall_reasons import leading, stall_reason

_MOST_LINES = 8
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
    by_line: dict[int, Counter[str]] = {}
    for kernel in stalls.kernels:
        for of in kernel.lines:
            by_line.setdefault(of.line, Counter()).update(of.reasons)
    total = sum(kernel.samples for kernel in stalls.kernels)
    if not by_line:
        note = CardText(limited(stalls.note, _MOST_WORDS), "quiet")
        yield CardSection(_TITLE, (note,), "closed")
        return
    costly = sorted(by_line.items(), key=lambda pair: -pair[1].total())
    counts = case.lines if case is not None else {}
    # of Triton's blocks only the sectors are counted
    shown = len(_HEADS) if any(of.warp_instructions for of in counts.values()) else -1
    shown = shown if counts else -3
    rows = tuple(
        _row(code, line, reasons, total, counts)[:shown]
        for line, reasons in costly[:_MOST_LINES]
    )
    parts: list[Part] = [CardTable(_HEADS[:shown], rows), *_advice(*costly[0])]
    said = f"{total:,} samples of one more call, which was neither timed nor judged"
    if device.speed is not None:
        said += f" ({sizes_text(device.speed.sizes)})"
    if case is not None and counts:
        said += f"; sectors and conflicts are those of {limited(case.about, 120)}"
    parts.append(CardText(limited(f"{said}.", _MOST_WORDS), "quiet"))
    yield CardSection(_TITLE, tuple(parts), "open")


def _row(
    code: Sequence[str],
    line: int,
    reasons: Counter[str],
    total: int,
    counts: Mapping[int, Counts],
) -> tuple[Cell, ...]:
    quoted = location(code, line) or (LocationCell(line, ""),)
    samples = reasons.total()
    named = [
        f"{stall_reason(reason).words} ({units.share(count / samples)})"
        for reason, count in reasons.most_common(_MOST_REASONS)
        if count >= _LEAST_SHARE * samples
    ]
    of = counts.get(line)
    # a line that the interpreter never came to, or the compiler moved work to
    counted: tuple[Cell, ...] = (TextCell("-"),) * 3
    if of is not None:
        of_line = of.global_sectors, of.least_global_sectors, of.bank_conflicts
        counted = tuple(map(NumberCell, of_line))
    return (
        LocationCell(line, quoted[0].code.strip()),
        RatioCell(samples / total, "percent"),
        TextCell(limited(", ".join(named), _MOST_WORDS)),
        *counted,
    )


def _advice(line: int, reasons: Counter[str]) -> Iterator[CardText]:
    reason = leading(reasons)
    if reason is None:
        return
    known = stall_reason(reason)
    lab = f" Lab: {known.lab}." if known.lab else ""
    words = f"At line {line} a warp {known.words}. {known.advice}{lab}"
    yield CardText(limited(words, _MOST_WORDS))
