"""How fast the GPUs themselves ran in both runs, as the server's history has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from warpbook_monitors.history.span import DeviceSpan

#: a clock that differs by more is named
_CLOCK_SHARE = 0.03


class Clocks(Struct, frozen=True):
    """What the server's history says of a GPU while a code ran."""

    sm_clock_mhz: float | None
    temperature_celsius: float | None
    #: what slowed its clocks
    slowed_by: tuple[str, ...]
    #: by heat or the power supply; the power limit is no fault
    is_throttled: bool


#: of both runs, where they are known
BothClocks = tuple[Clocks | None, Clocks | None]


def clocks_of(spans: Iterable[DeviceSpan], devices: Sequence[str]) -> Clocks | None:
    """Find the slowest of some GPUs in a span; None where nothing was read of them."""
    chosen = [span for span in spans if span.device in devices]
    mhz = _means(chosen, "sm_clock_mhz")
    celsius = _means(chosen, "temperature_celsius")
    if not mhz and not celsius:
        return None
    reasons = [condition for span in chosen for condition in span.conditions]
    return Clocks(
        min(mhz, default=None),
        max(celsius, default=None),
        tuple(sorted({reason.name for reason in reasons})),
        any(reason.severity != "normal" for reason in reasons),
    )


def _means(spans: Iterable[DeviceSpan], metric: str) -> list[float]:
    means = [span.metrics[metric].mean for span in spans if metric in span.metrics]
    return [mean for mean in means if mean is not None]


def clock_notes(clocks: BothClocks) -> Iterator[str]:
    """Say how both runs' GPUs were, or that nobody read them."""
    was, now = clocks
    if was is None or now is None:
        yield (
            "Clocks and temperatures can't be compared: the server did not read the "
            "GPUs during both runs."
        )
        return
    parts = []
    if was.temperature_celsius is not None and now.temperature_celsius is not None:
        parts.append(f"{now.temperature_celsius:.0f} °C, {was.temperature_celsius:.0f}")
    if was.sm_clock_mhz and now.sm_clock_mhz:
        parts.append(f"SM clock {now.sm_clock_mhz:,.0f} MHz, {was.sm_clock_mhz:,.0f}")
    parts = parts or ["clocks and temperature are not known"]
    slowed = ", ".join(now.slowed_by) or "nothing"
    slowed_before = ", ".join(was.slowed_by) or "nothing"
    yield (
        f"Now and before: {'; '.join(parts)}; slowed by {slowed}, by {slowed_before}."
    )


def clock_cautions(change: float, clocks: BothClocks) -> Iterator[str]:
    """Say where the GPU itself may explain a change.

    Args:
        change: of the time, above 0 where it is longer now.
        clocks: of both runs.
    """
    was, now = clocks
    if was is None or now is None:
        return
    share = 0.0
    if was.sm_clock_mhz and now.sm_clock_mhz:
        share = now.sm_clock_mhz / was.sm_clock_mhz - 1
    fell = share < -_CLOCK_SHARE or now.is_throttled > was.is_throttled
    rose = share > _CLOCK_SHARE or was.is_throttled > now.is_throttled
    if change > 0 and fell:
        yield (
            f"The GPU itself ran slower ({_clock(was, now)}): the code may not have "
            "changed in speed."
        )
    elif change < 0 and rose:
        yield (
            f"The GPU itself ran faster ({_clock(was, now)}): the code may not have "
            "changed in speed."
        )


def _clock(was: Clocks, now: Clocks) -> str:
    if now.is_throttled != was.is_throttled:
        slow = now if now.is_throttled else was
        return ", ".join(slow.slowed_by)
    return f"SM clock {now.sm_clock_mhz:,.0f} instead of {was.sm_clock_mhz:,.0f} MHz"
