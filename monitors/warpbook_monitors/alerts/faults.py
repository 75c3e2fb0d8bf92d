"""Rules about what is wrong: errors, heat, GPUs that are gone, the monitor itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from warpbook_monitors import units
from warpbook_monitors.alerts.rule import Finding, Rule, Seconds, is_above
from warpbook_monitors.alerts.situation import Seen, Situation
from warpbook_monitors.verdicts.health import REASONS

Celsius = Annotated[float, Meta(ge=0, le=200)]


class Xid(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The driver told an XID error; each number on each GPU is one alert."""

    for_s: Seconds = 0.0
    #: how long after the last one it is told as something that holds
    clear_s: Seconds = 300.0

    def look(self, now: Situation) -> Iterable[Finding]:
        """Find each error that is more than news."""
        for event in now.events:
            if event.kind == "xid" and event.severity != "normal":
                yield Finding(
                    f"{event.device}/{event.code}",
                    True,
                    event.severity,
                    event.device,
                    f"{now.label(event.device)}, XID {event.code}: {event.title}",
                    f"{event.meaning} {event.remedy}".strip(),
                )


class UncorrectedEcc(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Memory held something wrong that ECC could not correct, or can't be repaired."""

    for_s: Seconds = 0.0
    #: how long an error is told as something that holds
    window_s: Seconds = 3600.0

    def look(self, now: Situation) -> Iterable[Finding]:
        """Find errors of the window, and rows that could not be replaced."""
        faulty = {
            event.device for event in now.events if event.kind == "ecc_double_bit"
        }
        for gpu in now.gpus():
            device = gpu.device.id
            grew = now.counters.growth(
                now.time_ms, device, "ecc_uncorrected_count", self.window_s
            )
            yield Finding(
                device,
                True if device in faulty else None if grew is None else grew > 0,
                "fault",
                device,
                f"{gpu.label}: uncorrectable memory error",
                "ECC found errors that it could not correct: results computed with "
                "this memory may be wrong. Run it again from the last checkpoint. If "
                "it happens again, reset the GPU (nvidia-smi --gpu-reset) or have it "
                "replaced.",
            )
            yield Finding(
                f"{device}/failed",
                _is_up(gpu, "remapped_rows_failed"),
                "fault",
                device,
                f"{gpu.label}: faulty memory can't be replaced",
                "A row of memory is bad and no spare row could take its place. Use "
                "another GPU and have this one serviced.",
            )


class CorrectedEcc(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """ECC corrects many errors, or memory waits for a reset to be repaired."""

    for_s: Seconds = 0.0
    clear_s: Seconds = 0.0
    #: so many within the window are a burst
    burst_count: Annotated[int, Meta(ge=1)] = 50
    window_s: Seconds = 600.0

    def look(self, now: Situation) -> Iterable[Finding]:
        """Find bursts, and rows or pages that wait to be replaced."""
        for gpu in now.gpus():
            device = gpu.device.id
            grew = now.counters.growth(
                now.time_ms, device, "ecc_corrected_count", self.window_s
            )
            yield Finding(
                device,
                None if grew is None else grew >= self.burst_count,
                "warning",
                device,
                f"{gpu.label}: many memory errors",
                f"ECC corrected {grew or 0:.0f} errors within "
                f"{units.duration_about(self.window_s)}. Results are correct, but the "
                "memory may be failing: keep checkpoints, and tell the administrator "
                "of the machine.",
            )
            waits = _is_up(gpu, "remapped_rows_pending") or _is_up(
                gpu, "retired_pages_pending"
            )
            yield Finding(
                f"{device}/pending",
                waits,
                "warning",
                device,
                f"{gpu.label}: memory waits to be repaired",
                "A part of the memory had errors and is replaced when the GPU is "
                "reset. Finish your work on this GPU, then have it reset (nvidia-smi "
                "--gpu-reset) or the machine restarted.",
            )


class Temperature(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The GPU is about to slow itself down, or hotter than a set figure."""

    for_s: Seconds = 5.0
    #: so far below the slowdown threshold, where the driver tells one
    margin_celsius: Celsius = 3.0
    #: in the place of that; None is 87 where the driver tells no threshold
    above_celsius: Celsius | None = None
    #: it ends so far below
    clear_celsius: Celsius = 5.0

    def look(self, now: Situation) -> Iterable[Finding]:
        """Hold the temperature of each GPU against its limit."""
        for gpu in now.gpus():
            hottest = gpu.most("temperature_celsius")
            slowdown = gpu.fact("temperature_slowdown_celsius")
            limit = self.above_celsius
            if limit is None:
                limit = 87.0 if slowdown is None else slowdown - self.margin_celsius
            why = "" if slowdown is None else f" It slows down at {slowdown:.0f} °C."
            yield Finding(
                gpu.device.id,
                is_above(hottest, limit, limit - self.clear_celsius),
                "warning",
                gpu.device.id,
                f"{gpu.label} is hot",
                f"{hottest or 0:.0f} °C.{why} Check fans and airflow; a lower power "
                "limit (nvidia-smi -pl) also cools it.",
            )


class Throttling(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Heat or the power supply slows a GPU; being at its power limit is no fault."""

    for_s: Seconds = 10.0

    def look(self, now: Situation) -> Iterable[Finding]:
        """Find each harmful reason that NVML tells."""
        for gpu in now.gpus():
            bits = gpu.bits("clocks_event_reasons")
            for reason in REASONS:
                if reason.severity != "normal":
                    yield Finding(
                        f"{gpu.device.id}/{reason.name}",
                        None if bits is None else bool(bits & reason.bit),
                        reason.severity,
                        gpu.device.id,
                        f"{gpu.label}: {reason.name}",
                        f"{reason.words[0].upper()}{reason.words[1:]}.",
                    )


class GpuLost(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A GPU stopped answering for good."""

    for_s: Seconds = 2.0
    clear_s: Seconds = 5.0

    def look(self, now: Situation) -> Iterable[Finding]:
        for gpu in now.gpus():
            newest = gpu.newest
            # an instance is mostly destroyed on purpose
            is_gpu = gpu.device.kind == "gpu"
            beyond = (
                "; if the GPU does not come back, restart the machine" if is_gpu else ""
            )
            yield Finding(
                gpu.device.id,
                None if newest is None else newest.state == "lost",
                "fault" if is_gpu else "warning",
                gpu.device.id,
                f"{gpu.label} is lost",
                f"{newest.why if newest else ''} Programs on it have failed. Restart "
                f"their kernels{beyond}.".strip(),
            )


class GpuStale(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A GPU can't be read although it should be there."""

    for_s: Seconds = 30.0

    def look(self, now: Situation) -> Iterable[Finding]:
        for gpu in now.gpus():
            newest = gpu.newest
            yield Finding(
                gpu.device.id,
                None if newest is None else newest.state in ("stale", "unavailable"),
                "warning",
                gpu.device.id,
                f"{gpu.label} gives no readings",
                f"{newest.why if newest else ''} Its driver may hang: check whether "
                "nvidia-smi answers.".strip(),
            )


class Monitor(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The monitor itself fails: what it does not see, it can't tell."""

    clear_s: Seconds = 5.0
    #: of the server's event loop, as the worst of a second
    lag_ms: Annotated[float, Meta(ge=10)] = 1000.0

    def look(self, now: Situation) -> Iterable[Finding]:
        """Find troubles that were told, and a server that is late."""
        for trouble in now.troubles:
            yield Finding(
                trouble.name, True, "warning", None, trouble.title, trouble.text
            )
        for seen in now.seen:
            lag_ms = seen.most("loop_lag_ms")
            if seen.device.kind == "monitor" and lag_ms is not None:
                yield Finding(
                    "lag",
                    lag_ms >= self.lag_ms,
                    "warning",
                    None,
                    "The Jupyter server is slow to answer",
                    f"Its event loop was late by {lag_ms:.0f} ms, so readings come "
                    "late. Another extension or a busy disk may block it.",
                )


def _is_up(gpu: Seen, metric: str) -> bool | None:
    """Whether a flag of 0 or 1 is up; None if it was not read in this second."""
    value = gpu.most(metric)
    return None if value is None else value > 0
