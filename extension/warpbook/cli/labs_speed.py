"""Of the card of a lab: what a GPU made of a submission, and how fast it was there."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_labs.device.limit_card import LimitCard
from warpbook_labs.device.quiet import Conditions
from warpbook_labs.device.ratio import Ratio
from warpbook_labs.device.results import DeviceCase, DeviceResult, SpeedResult
from warpbook_monitors import units
from warpbook_monitors.plain_text import bounded, labelled

_MOST_WORDS = 600


def device_lines(device: DeviceResult) -> Iterator[str]:
    """Write what the GPU made of it: cases that fail, speed, limits, flags."""
    failed = [each for each in device.cases if not each.passed]
    right = "all" if device.right == device.of else f"{device.right:,} of"
    yield (
        f"On {bounded(device.gpu)} ({bounded(device.architecture)}) {right} "
        f"{device.of:,} cases are right."
    )
    if failed:
        yield from _failure(failed[0])
    if device.speed is not None:
        yield ""
        yield from _speed(device.speed)
    if device.limit_card is not None:
        yield ""
        yield _limits(device.limit_card)
    for flag in device.flags:
        yield f"! {bounded(flag, _MOST_WORDS)}"


def _failure(case: DeviceCase) -> Iterator[str]:
    kind = "hidden" if case.is_hidden else "shown"
    yield f"  The first that fails there ({kind}): {bounded(case.about)}"
    if case.sizes:
        yield f"  {_sizes(case.sizes)}"
    yield f"  {bounded(case.message, _MOST_WORDS)}"


def _speed(speed: SpeedResult) -> Iterator[str]:
    yield f"Speed: {speed.status}. {bounded(speed.message, _MOST_WORDS)}"
    figures = list(_figures(speed))
    for line in labelled(figures) if figures else ():
        yield f"  {line}"
    for words in speed.conditions.unknown if speed.conditions else ():
        yield f"  {bounded(words, _MOST_WORDS)}"


def _figures(speed: SpeedResult) -> Iterator[tuple[str, str]]:
    if speed.of_baseline is not None:
        asked = speed.wanted_of_baseline
        least = "" if asked is None else f"; {asked:.2f} is asked"
        yield "of the baseline's speed", f"{_times(speed.of_baseline)}{least}"
    if speed.of_limit is not None:
        asked = speed.wanted_of_limit
        least = "" if asked is None else f"; {100 * asked:.0f} % is asked"
        yield "of this GPU's limit", f"{_share(speed.of_limit)}{least}"
    took = [
        f"{what} {units.duration(time_ns / 1e6)}"
        for what, time_ns in (
            ("yours", speed.learner_ns),
            ("baseline", speed.baseline_ns),
            ("limit", speed.limit_ns),
        )
        if time_ns is not None
    ]
    if took:
        yield "one call", ", ".join(took)
        yield "timed with", _sizes(speed.sizes)
    if speed.calls:
        yield (
            "checked",
            f"the output of all {speed.calls:,} timed calls, "
            f"{speed.checked_on_host:,} of them on the processor too",
        )
    if speed.conditions is not None:
        yield "meanwhile", _conditions(speed.conditions)
    if speed.discarded:
        yield "measured", f"{speed.discarded + 1:,} times: what is disturbed is no mark"


def _times(ratio: Ratio) -> str:
    return (
        f"{ratio.median:.3f} (95 %: {ratio.low:.3f} to {ratio.high:.3f}, "
        f"{ratio.pairs:,} pairs)"
    )


def _share(ratio: Ratio) -> str:
    return (
        f"{100 * ratio.median:.1f} % (95 %: {100 * ratio.low:.1f} to "
        f"{100 * ratio.high:.1f} %)"
    )


def _conditions(found: Conditions) -> str:
    said = []
    if found.sm_clock_mhz is not None:
        low, high = found.sm_clock_mhz
        span = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        said.append(f"clock at {span} MHz")
    if found.temperature_celsius is not None:
        said.append(f"{found.temperature_celsius:.0f} °C at most")
    return ", ".join([*said, *found.reasons]) or "not known"


def _limits(card: LimitCard) -> str:
    reached = [
        f"copies {units.rate(card.copy_bytes_per_s, 'B')}",
        *(
            [f"reads {units.rate(card.read_bytes_per_s, 'B')}"]
            if card.read_bytes_per_s
            else ()
        ),
        f"from the host {units.rate(card.host_to_device_bytes_per_s, 'B')}",
        f"to it {units.rate(card.device_to_host_bytes_per_s, 'B')}",
        f"a launch {units.duration(card.launch_latency_ns / 1e6)}",
        *(
            f"{bounded(name)} {units.rate(flops, 'FLOP')}"
            for name, flops in sorted(card.flops_per_s.items())
        ),
    ]
    notes = [
        f"driver {bounded(card.driver)}" if card.driver else "",
        f"{card.sm_clock_mhz:,.0f} MHz" if card.sm_clock_mhz else "",
        f"at most {card.power_limit_watts:,.0f} W" if card.power_limit_watts else "",
        "ECC" if card.has_ecc else "",
        bounded(card.flops_unknown, _MOST_WORDS),
    ]
    return (
        f"This GPU was measured to reach: {', '.join(reached)} "
        f"({', '.join(each for each in notes if each) or 'no more is known'})."
    )


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} = {size:,}" for name, size in sizes.items())
