"""Makes alerts of findings: what lasts begins one, what is over for a while ends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from warpbook_monitors.alerts.alert import Alert
from warpbook_monitors.alerts.rule import Finding, Rule
from warpbook_monitors.alerts.rules import Rules
from warpbook_monitors.alerts.situation import Situation
from warpbook_monitors.plain_text import bounded

#: how long an alert that ended is still told
KEPT_MS = 15 * 60_000.0
#: what lasts begins anew if nobody could see it for so long before it was an alert
_BLIND_MS = 10_000.0
#: more would be a flood that nobody reads; those that hold are always told
MOST_ENDED = 100

#: a rule's name, and what its finding is about
_Key = tuple[str, str]


@dataclass
class _Condition:
    """Something that was found to hold, on its way to an alert or to its end."""

    since_ms: float
    #: when it was last seen to hold
    seen_ms: float
    #: None until it has lasted as long as its rule wants
    alert: Alert | None = None
    #: since when it is over; None while it holds
    over_ms: float | None = None


class Engine:
    """Follows every finding of every rule; asks nobody for the time."""

    def __init__(self) -> None:
        self._standing: dict[_Key, _Condition] = {}
        #: each with its end by a clock that may have been set since
        self._ended: list[tuple[float, Alert]] = []

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """All alerts that hold, then those that ended lately, the newest first."""
        hold = [
            standing.alert for standing in self._standing.values() if standing.alert
        ]
        ended = [alert for _, alert in reversed(self._ended)]
        return tuple(sorted(hold, key=lambda alert: -alert.since_ms) + ended)

    def restore(self, ended: Iterable[Alert]) -> None:
        """Take alerts that ended before now, the oldest first."""
        before = [(alert.until_ms or 0.0, alert) for alert in ended]
        self._ended = [*before, *self._ended][-MOST_ENDED:]

    def follow_clock(self, set_ms: float) -> None:
        """Have nothing seem older or younger because the clock was set by so much."""
        for standing in self._standing.values():
            standing.since_ms += set_ms
            standing.seen_ms += set_ms
            if standing.over_ms is not None:
                standing.over_ms += set_ms
        self._ended = [(until_ms + set_ms, alert) for until_ms, alert in self._ended]

    def judge(self, rules: Rules, now: Situation) -> bool:
        """Look at the situation; whether an alert began, changed, ended or went."""
        before = self.alerts
        enabled = dict(rules.enabled())
        held: set[_Key] = set()
        for name, rule in enabled.items():
            for finding in _bounded(rule.look(now)):
                key = (name, finding.subject)
                held.add(key)
                self._follow(key, rule, finding, now.time_ms)
        for key in self._standing.keys() - held:
            gone = enabled.get(key[0])
            # of a rule that was switched off, nothing is left
            self._subside(key, gone.clear_s if gone else 0.0, now.time_ms)
        self._ended = [
            (until_ms, alert)
            for until_ms, alert in self._ended[-MOST_ENDED:]
            if until_ms > now.time_ms - KEPT_MS
        ]
        return self.alerts != before

    def _follow(self, key: _Key, rule: Rule, finding: Finding, now_ms: float) -> None:
        if finding.holds is False:
            self._subside(key, rule.clear_s, now_ms)
            return
        if finding.holds is None:
            self._grow_old(key, now_ms)
            return
        before = self._standing.get(key)
        if before is not None and before.over_ms is None:
            # nobody looked for a while: that it lasted meanwhile is not known
            self._grow_old(key, now_ms)
        standing = self._standing.setdefault(key, _Condition(now_ms, now_ms))
        standing.over_ms = None
        standing.seen_ms = now_ms
        # a clock that was put back must not make it wait the longer
        standing.since_ms = min(standing.since_ms, now_ms)
        severity = rule.severity or finding.severity
        if standing.alert is None:
            if now_ms - standing.since_ms < rule.for_s * 1000:
                return
            standing.alert = Alert(
                id=f"{key[0]}/{key[1]}/{standing.since_ms:.0f}",
                rule=key[0],
                severity=severity,
                device=finding.device,
                title=finding.title,
                text=finding.text,
                since_ms=standing.since_ms,
                kernel_id=finding.kernel_id,
            )
        elif (standing.alert.title, standing.alert.severity) != (
            finding.title,
            severity,
        ):
            # figures in the text alone are no news
            standing.alert = msgspec.structs.replace(
                standing.alert,
                severity=severity,
                title=finding.title,
                text=finding.text,
            )

    def _grow_old(self, key: _Key, now_ms: float) -> None:
        """Forget what nobody has been able to see for long."""
        standing = self._standing.get(key)
        if standing is None:
            return
        unseen_ms = now_ms - standing.seen_ms
        if standing.alert is None and unseen_ms > _BLIND_MS:
            del self._standing[key]
        elif standing.alert is not None and unseen_ms > KEPT_MS:
            self._end(key, standing.alert, standing.seen_ms)

    def _end(self, key: _Key, alert: Alert, until_ms: float) -> None:
        del self._standing[key]
        ended = msgspec.structs.replace(alert, until_ms=until_ms)
        self._ended.append((until_ms, ended))

    def _subside(self, key: _Key, clear_s: float, now_ms: float) -> None:
        standing = self._standing.get(key)
        if standing is None:
            return
        if standing.over_ms is None:
            standing.over_ms = now_ms
        standing.over_ms = min(standing.over_ms, now_ms)
        if standing.alert is None:
            # it did not last: the next time begins anew
            del self._standing[key]
        elif now_ms - standing.over_ms >= clear_s * 1000:
            self._end(key, standing.alert, standing.over_ms)


def _bounded(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Names come from other programs: keep what is told readable and short."""
    for finding in findings:
        yield finding._replace(
            title=bounded(_in_one_line(finding.title), 120),
            text=bounded(_in_one_line(finding.text), 600),
        )


def _in_one_line(text: str) -> str:
    # a rule of one's own may be written over several lines
    return " ".join(text.split())
