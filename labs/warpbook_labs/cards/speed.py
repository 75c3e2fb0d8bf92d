"""Of a card: how fast a submission was on the GPU, and what this GPU can reach."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

from warpbook_labs.cards.model import (
    CardFact,
    CardFacts,
    CardSection,
    CardText,
    DurationCell,
    NumberCell,
    Part,
    RateCell,
    RatioCell,
    TextCell,
)
from warpbook_labs.cards.words import counted, limited, sizes_text
from warpbook_labs.results.device import DeviceResult, SpeedResult
from warpbook_labs.results.measurements import Conditions, LimitCard, Ratio

_MOST_WORDS = 600
_MOST_NAME = 100
_MOST_NOTES = 8


def speed_sections(device: DeviceResult) -> Iterator[CardSection]:
    """Tell the speed, and the limits that it was held against."""
    speed, limits = device.speed, device.limit_card
    if speed is not None:
        notes = speed.conditions.unknown if speed.conditions else ()
        parts: list[Part] = [CardText(limited(speed.message, _MOST_WORDS))]
        parts.append(CardFacts(tuple(_facts(speed))))
        for note in notes[:_MOST_NOTES]:
            parts.append(CardText(limited(note, _MOST_WORDS), "quiet"))
        yield CardSection(f"Speed: {speed.status}", tuple(parts))
    if limits is not None:
        facts = CardFacts(tuple(_limits(limits)))
        yield CardSection("Measured limits of this GPU", (facts,), "closed")


def _facts(speed: SpeedResult) -> Iterator[CardFact]:
    yield CardFact("timed with", (TextCell(limited(sizes_text(speed.sizes), 400)),))
    if speed.of_baseline is not None:
        cell = _ratio(speed.of_baseline, "times", speed.wanted_of_baseline)
        yield CardFact("speedup over the baseline", (cell,))
    if speed.of_limit is not None:
        cell = _ratio(speed.of_limit, "percent", speed.wanted_of_limit)
        yield CardFact("share of the measured limit", (cell,))
    for label, time_ns in (
        ("time per call", speed.learner_ns),
        ("baseline", speed.baseline_ns),
        ("at the limit", speed.limit_ns),
    ):
        if time_ns is not None:
            yield CardFact(label, (DurationCell(time_ns),))
    if speed.calls:
        calls = counted(speed.calls, "timed call", "timed calls")
        cells = [NumberCell(speed.calls, calls)]
        if speed.checked_on_host:
            cells.append(NumberCell(speed.checked_on_host, "also on the CPU"))
        yield CardFact("outputs checked", tuple(cells))
    if speed.conditions is not None:
        yield from _conditions(speed.conditions)
    if speed.discarded:
        words = TextCell("Runs disturbed by other GPU work are discarded.")
        runs = NumberCell(speed.discarded + 1, "runs")
        yield CardFact("measured", (runs, words))


def _ratio(
    ratio: Ratio, style: Literal["times", "percent"], required: float | None
) -> RatioCell:
    return RatioCell(
        ratio.median,
        style,
        low=ratio.low,
        high=ratio.high,
        pairs=ratio.pairs,
        required=required,
    )


def _conditions(conditions: Conditions) -> Iterator[CardFact]:
    if conditions.sm_clock_mhz is not None:
        low, high = conditions.sm_clock_mhz
        span = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        yield CardFact("SM clock", (TextCell(f"{span} MHz"),))
    if conditions.temperature_celsius is not None:
        cell = NumberCell(round(conditions.temperature_celsius), "°C")
        yield CardFact("highest temperature", (cell,))
    if conditions.reasons:
        names = limited(", ".join(conditions.reasons), 400)
        yield CardFact("clocks lowered by", (TextCell(names),))


def _limits(card: LimitCard) -> Iterator[CardFact]:
    rates: list[tuple[str, float | None]] = [
        ("copy bandwidth", card.copy_bytes_per_s),
        ("read bandwidth", card.read_bytes_per_s),
        ("host to device", card.host_to_device_bytes_per_s),
        ("device to host", card.device_to_host_bytes_per_s),
    ]
    for label, bytes_per_s in rates:
        if bytes_per_s is not None:
            yield CardFact(label, (RateCell(bytes_per_s, "B"),))
    yield CardFact("launch latency", (DurationCell(card.launch_latency_ns),))
    for name, flops in sorted(card.flops_per_s.items()):
        label = f"matrix products in {limited(name, _MOST_NAME)}"
        yield CardFact(label, (RateCell(flops, "FLOP"),))
    if card.flops_unknown:
        words = TextCell(limited(card.flops_unknown, _MOST_WORDS))
        yield CardFact("matrix products", (words,))
    for label, value, unit in (
        ("SM clock", card.sm_clock_mhz, "MHz"),
        ("memory clock", card.memory_clock_mhz, "MHz"),
        ("power limit", card.power_limit_watts, "W"),
    ):
        if value is not None:
            yield CardFact(label, (NumberCell(round(value), unit),))
    for label, has in (("ECC", card.has_ecc), ("MIG", card.has_mig)):
        if has is not None:
            yield CardFact(label, (TextCell("on" if has else "off"),))
    if card.driver:
        yield CardFact("driver", (TextCell(limited(card.driver, _MOST_NAME)),))
    measured = time.strftime("%F %H:%M", time.localtime(card.measured_ms / 1e3))
    yield CardFact("measured", (TextCell(measured),))
