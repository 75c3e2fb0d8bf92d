"""What the last seconds mean, in words: verdicts and health, once a second."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook.protocol import Condition, Device, Frame, Health, Verdict, Verdicts
from warpbook_monitors.health import Minute
from warpbook_monitors.own_cost import Costs
from warpbook_monitors.verdict import Window

PERIOD_MS = 1000.0


class Insight:
    """Follows the stream of frames; for the event loop."""

    def __init__(self, costs: Costs) -> None:
        """Nothing was seen yet; `costs` say whether the monitor itself backs off."""
        self._costs = costs
        self._window = Window()
        self._minute = Minute()
        self._told_ms = 0.0

    def take(
        self, frame: Frame, devices: Sequence[Device]
    ) -> tuple[Verdicts, Health] | None:
        """Take a frame; give what is to be told if a second has passed."""
        self._window.append(frame)
        self._minute.append(frame, devices)
        # absolute, because the clock may be set back
        if abs(frame.time_ms - self._told_ms) < PERIOD_MS:
            return None
        self._told_ms = frame.time_ms
        return (
            Verdicts(frame.time_ms, self._window.seconds, self._window.judge(devices)),
            Health(frame.time_ms, self._minute.seconds, self._conditions(devices)),
        )

    def _conditions(
        self, devices: Sequence[Device]
    ) -> dict[str, tuple[Condition, ...]]:
        told = self._minute.conditions(devices)
        if self._costs.back_off:
            slower = Condition("backing off", "warning", 1.0, self._costs.back_off)
            told |= {each.id: (slower,) for each in devices if each.kind == "monitor"}
        return told

    def verdicts(self, devices: Sequence[Device]) -> dict[str, Verdict]:
        """Judge what was seen so far."""
        return self._window.judge(devices)
