"""What the last seconds mean, in words: once a second, and when a verdict changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpbook.protocol import Condition, Device, Frame, Health, Verdict, Verdicts
from warpbook_monitors.sampling.own_cost import Costs
from warpbook_monitors.verdicts.health import Minute
from warpbook_monitors.verdicts.window import Window

PERIOD_MS = 1000.0
#: verdicts are looked at so often
LOOK_MS = 250.0


class Insight:
    """Follows the stream of frames; for the event loop."""

    def __init__(self, costs: Costs) -> None:
        """Nothing was seen yet; `costs` say whether the monitor itself backs off."""
        self._costs = costs
        self._window = Window()
        self._minute = Minute()
        self._told_ms = 0.0
        self._looked_ms = 0.0
        self._kinds: Mapping[str, tuple[str, str | None, bool]] = {}

    def take(
        self, frame: Frame, devices: Sequence[Device]
    ) -> tuple[Verdicts | Health, ...]:
        """Take a frame; give what is to be told now, which is often nothing."""
        self._window.append(frame, devices)
        self._minute.append(frame, devices)
        # absolute, because the clock may be set back
        is_due = abs(frame.time_ms - self._told_ms) >= PERIOD_MS
        if not is_due and abs(frame.time_ms - self._looked_ms) < LOOK_MS:
            return ()
        self._looked_ms = frame.time_ms
        verdicts = self._window.judge(devices)
        kinds = {
            device: (verdict.kind, verdict.unit, verdict.is_changing)
            for device, verdict in verdicts.items()
        }
        if not is_due and kinds == self._kinds:
            return ()
        self._kinds = kinds
        judged = Verdicts(frame.time_ms, self._window.seconds, verdicts)
        if not is_due:
            return (judged,)
        self._told_ms = frame.time_ms
        conditions = self._conditions(devices)
        return judged, Health(frame.time_ms, self._minute.seconds, conditions)

    def _conditions(
        self, devices: Sequence[Device]
    ) -> dict[str, tuple[Condition, ...]]:
        conditions_of = self._minute.conditions(devices)
        if self._costs.back_off:
            slower = Condition("backing off", "warning", 1.0, self._costs.back_off)
            conditions_of |= {
                device.id: (slower,) for device in devices if device.kind == "monitor"
            }
        return conditions_of

    def verdicts(self, devices: Sequence[Device]) -> dict[str, Verdict]:
        """Judge what was seen so far."""
        return self._window.judge(devices)
