"""Judges the alert rules once a second, and tells every page what changed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from warpbook.alert_rules_protocol import AlertRuleChange, AlertRules
from warpbook.protocol import Alert, Alerts, Event, Frame, Holders
from warpbook.server.alerts.rules_file import change_rule
from warpbook.server.records.record_forms import alert_record, decode_alert
from warpbook.server.records.records import Records
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.demand import ALERT_RULES, PAGES
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors.alerts.engine import KEPT_MS, MOST_ENDED, Engine
from warpbook_monitors.alerts.rules import Rules, read_rules
from warpbook_monitors.alerts.situation import Counters, Situation, Trouble, look_at
from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_monitors.errors import RulesError
from warpbook_monitors.sampling.sampler import OPEN_TIMEOUT_S, Message
from warpbook_monitors.wall_clock import WallClock

_log = logging.getLogger(__name__)

PERIOD_S = 1.0
#: how often the rules file is looked at
REREAD_S = 5
#: a sampler that is awake and says nothing for so long has failed
SILENCE_S = 5.0


class Alerting(StreamPart):
    """The alerts of one server; for the event loop."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        rules_file: Path,
        watch: str,
        holders: Callable[[], Holders | None] = lambda: None,
        records: Records | None = None,
    ) -> None:
        """Take the path of the rules file, which need not be there.

        Args:
            broadcaster: who tells what is read, and sends alerts.
            rules_file: in TOML.
            watch: when devices are read for the rules' sake: "connected" is while a
                page is open, "watched" never, "always" from now on.
            holders: who holds memory, as far as that is known.
            records: where alerts are kept.
        """
        self._records = records or Records()
        #: as the pages are told them: each is on disk before
        self._shown: tuple[Alert, ...] = ()
        self._unkept: set[Alert] = set()
        self._showing = asyncio.Lock()
        self._changing = asyncio.Lock()
        self._broadcaster = broadcaster
        self._rules_file = rules_file
        self._watch = watch
        self._holders = holders
        self._rules = Rules()
        self._file_state: object = None
        self._troubles: dict[str, Trouble] = {}
        self._engine = Engine()
        self._counters = Counters()
        self._frames: list[Frame] = []
        self._events: list[Event] = []
        self._clock = WallClock()
        self._judged_ms = self._clock.now_ms
        #: since when the sampler has been awake without a frame
        self._silent_since_s: float | None = None
        self._heard = False
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        demand = broadcaster.demand
        self._always = demand.lease(ALERT_RULES, "slow")
        self._with_a_page = demand.lease(ALERT_RULES, "slow", only_with=PAGES)
        broadcaster.attach(self)

    def start(self) -> None:
        """Begin to judge; needs a running event loop."""
        self._apply()
        # two tasks: a home on a disk that hangs must not hold up the judging
        self._tasks = (
            asyncio.create_task(self._keep_judging()),
            asyncio.create_task(self._keep_rereading()),
        )

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def alerts(self) -> Alerts:
        """All alerts, as they were judged last."""
        return Alerts(self._judged_ms, self._shown)

    @property
    def rules_file(self) -> Path:
        """Where the rules are, which need not be there."""
        return self._rules_file

    async def change_rule(self, change: AlertRuleChange) -> AlertRules:
        """Write one rule into the file, and judge by it from now on.

        Raises:
            RulesConflict: the file was changed meanwhile, or can't be changed.
            RulesError: the rule would be refused.
        """
        async with self._changing:
            rules = await asyncio.to_thread(change_rule, self._rules_file, change)
        await self._reread()
        return rules

    def severities(self) -> Iterator[tuple[str, str, str]]:
        """Give rule, severity and device of each alert that holds."""
        for alert in self._shown:
            if alert.until_ms is None:
                yield alert.rule, alert.severity, alert.device or ""

    async def _keep_judging(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await self._judge()
            except Exception:  # noqa: BLE001 - one bad second must not be the last
                _log.exception("Judging the alert rules failed.")

    async def _keep_rereading(self) -> None:
        while True:
            await self._reread()
            await asyncio.sleep(REREAD_S)

    def follow(self, message: Message) -> None:
        if isinstance(message, Frame):
            self._frames.append(message)
        elif isinstance(message, Event):
            self._events.append(message)

    def greeting(self) -> Iterable[bytes]:
        """Give the alerts that hold now."""
        return [encode(self.alerts())]

    async def load(self) -> list[bytes]:
        """Take those on disk that ended lately; tell the pages if there are any.

        Raises:
            ArchiveError: they can't be read.
        """
        ended = []
        for message in await self._records.newest("alert", MOST_ENDED):
            try:
                ended.append(decode_alert(message))
            except UNREADABLE:
                # another version of warpbook may have written it
                continue
        oldest_ms = time.time() * 1000 - KEPT_MS
        known = {alert.id for alert in self._engine.alerts}
        news = [
            alert
            for alert in ended
            if (alert.until_ms or 0.0) > oldest_ms and alert.id not in known
        ]
        if not news:
            return []
        async with self._showing:
            self._engine.restore(news)
            self._shown = (*self._shown, *reversed(news))
        return [encode(self.alerts())]

    async def _show(self) -> None:
        """Put on disk what began, changed or ended, then tell every page."""
        recorded = {
            device.id
            for device in self._broadcaster.devices
            if device.origin == "replay"
        }
        alerts = tuple(
            replace(alert, is_replay=True) if alert.device in recorded else alert
            for alert in self._engine.alerts
        )
        # what was not kept is news to the disk until it is
        news = (set(alerts) - set(self._shown)) | (self._unkept & set(alerts))
        unkept = await self._records.keep(
            *((alert_record(alert), encode(alert)) for alert in news)
        )
        self._unkept = news if unkept else set()
        if alerts != self._shown:
            self._shown = alerts
            self._broadcaster.viewers.send_everyone(encode(self.alerts()))

    async def _judge(self) -> None:
        frames, self._frames = self._frames, []
        events, self._events = self._events, []
        self._listen_for_silence(bool(frames))
        if not self._broadcaster.demand.is_awake:
            # nobody can tell: what held is told as it was
            return
        if set_ms := self._clock.set_ms():
            self._engine.follow_clock(set_ms)
            self._counters.follow_clock(set_ms)
        now_ms = self._judged_ms = self._clock.now_ms
        seen = look_at(self._broadcaster.devices, frames)
        self._counters.follow(now_ms, seen)
        holders = self._holders()
        situation = Situation(
            now_ms,
            seen,
            tuple(events),
            holders.devices if holders else {},
            self._counters,
            tuple(self._troubles.values()),
        )
        if self._engine.judge(self._rules, situation) or self._unkept:
            async with self._showing:
                await self._show()

    def _listen_for_silence(self, heard: bool) -> None:
        now_s = time.monotonic()
        if heard or not self._broadcaster.demand.is_awake:
            self._heard = heard
            self._silent_since_s = None
        elif self._silent_since_s is None:
            self._silent_since_s = now_s
        # sources that do not open take their time before the first frame
        patience_s = SILENCE_S if self._heard else SILENCE_S + OPEN_TIMEOUT_S
        since_s = self._silent_since_s
        if since_s is not None and now_s - since_s > patience_s:
            self._troubles["silence"] = Trouble(
                "silence",
                "The monitor gives no readings",
                "It should read the devices and has gone silent, so other alerts "
                "can't be judged. See the server's log and restart the server.",
            )
        else:
            self._troubles.pop("silence", None)

    async def _reread(self) -> None:
        """Take the rules file if it changed; a home may be on a slow disk."""
        state = await asyncio.to_thread(_file_state, self._rules_file)
        if state != self._file_state:
            self._file_state = state
            try:
                self._rules = await asyncio.to_thread(read_rules, self._rules_file)
                self._troubles.pop("rules_file", None)
            except RulesError as error:
                _log.warning("The alert rules are refused: %s", error)
                self._troubles["rules_file"] = Trouble(
                    "rules_file",
                    "The alert rules are refused",
                    # what is wrong comes first: a notification is cut off
                    f"{error.reason}, in {self._rules_file}. Until it is mended, the "
                    "rules before hold, or those built in. It is read again as soon "
                    "as it is saved.",
                )
            self._apply()

    def _apply(self) -> None:
        """Have the devices read for the sake of the rules in force."""
        wanted = any(True for _ in self._rules.enabled())
        if wanted and (self._watch == "always" or self._rules.always):
            self._always.begin()
            self._with_a_page.end()
        elif wanted and self._watch == "connected":
            self._with_a_page.begin()
            self._always.end()
        else:
            self._always.end()
            self._with_a_page.end()


def _file_state(path: Path) -> object:
    """What changes when the file does; None while it is not there."""
    try:
        stat = path.stat()
    except OSError as error:
        return error.errno
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
