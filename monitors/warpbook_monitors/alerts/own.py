"""A rule that a person wrote: a metric above or below a threshold."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated

from msgspec import Meta

from warpbook_monitors import metrics
from warpbook_monitors.alerts.rule import Finding, Rule
from warpbook_monitors.alerts.situation import Seen, Situation
from warpbook_monitors.frames import Severity

_KNOWN = {**metrics.NVML, **metrics.GPM, **metrics.HOST, **metrics.MONITOR}

Words = Annotated[str, Meta(max_length=300)]


class OwnRule(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[own.NAME]` of a rules file."""

    #: one of the metrics of the reference
    metric: str
    above: float | None = None
    below: float | None = None
    #: where it ends; the threshold itself if left out
    clear: float | None = None
    severity: Severity | None = "warning"
    title: Annotated[str, Meta(min_length=1, max_length=100)]
    text: Words = ""
    #: a kind ("gpu", "mig", "host", "monitor"), or the id of one device
    device: str = "gpu"

    def __post_init__(self) -> None:
        """Refuse a rule that could never hold, or never end.

        Raises:
            ValueError: with what to write instead.
        """
        if self.metric not in _KNOWN:
            near = get_close_matches(self.metric, _KNOWN, 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"there is no metric `{self.metric[:64]}`{hint}")
        if (self.above is None) == (self.below is None):
            raise ValueError("write either `above` or `below`")
        if self.clear is None:
            return
        if self.above is not None and self.clear > self.above:
            raise ValueError("`clear` must not be higher than `above`")
        if self.below is not None and self.clear < self.below:
            raise ValueError("`clear` must not be lower than `below`")

    def look(self, now: Situation) -> Iterable[Finding]:
        """Hold the newest value of each device against the threshold."""
        for seen in now.seen:
            if self.device in (seen.device.kind, seen.device.id):
                yield Finding(
                    subject=seen.device.id,
                    holds=self._holds(seen),
                    severity="warning",
                    device=seen.device.id,
                    title=f"{seen.label}: {self.title}",
                    text=self.text,
                )

    def _holds(self, seen: Seen) -> bool | None:
        values = seen.values(self.metric)
        if not values:
            return None
        # "below" is "above" upside down
        sign = 1 if self.above is not None else -1
        threshold = self.above if self.above is not None else self.below
        assert threshold is not None
        clear = threshold if self.clear is None else self.clear
        value = values[-1] * sign
        if value > threshold * sign:
            return True
        return None if value > clear * sign else False
