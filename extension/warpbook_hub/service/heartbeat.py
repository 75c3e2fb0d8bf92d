"""Notes that people reach the service, and notices when they could not.

Each second it asks as they do: through the proxy where it is known, and JupyterHub's
log-in; and it writes. What fails or is slow for one of these is so for everybody.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from warpbook_hub.clock import HubClock
from warpbook_hub.errors import HubError
from warpbook_hub.outages import note_answered, note_return
from warpbook_hub.rules.lateness import UNSEEN_MS
from warpbook_hub.service.login import LogInAway, hub_login

if TYPE_CHECKING:
    from warpbook_hub.service.service import Service

#: where the hub's proxy listens, and the address of the service's pages behind it
PROXY, PAGES = "WARPBOOK_HUB_PROXY", "WARPBOOK_HUB_PAGES"
_EACH_S, _LEAST_PAUSE_S = 1.0, 0.2
_WAIT_S, _SETTLE_S = 5.0, 30.0
_LOG = logging.getLogger("warpbook_hub")


class Heartbeat:
    """Since when the service is reached, and what it has not answered yet."""

    def __init__(self, clock: HubClock) -> None:
        self._clock = clock
        #: when the last beat that came through was sent
        self._sent_ms = clock.now_ms()
        self._beat = asyncio.Event()
        #: the times of arrival of requests that change something
        self.unanswered: dict[object, int] = {}

    async def run(self, service: Service, prefix: str) -> None:
        """Ask for the path of the service, and note it, until it is cancelled."""
        while True:
            sent_ms = self._clock.now_ms()
            try:
                await asyncio.wait_for(_ask_as_people(prefix), _WAIT_S)
                await self.note_arrival(service)
                answered_ms = min((sent_ms, *self.unanswered.values()))
                await service.write(
                    partial(note_answered, time_ms=answered_ms), tells_pages=False
                )
                self._sent_ms = max(self._sent_ms, sent_ms)
                self._beat.set()
                self._beat = asyncio.Event()
            except Exception as problem:  # noqa: BLE001 - it is what is looked for
                _LOG.debug("people do not reach the service: %r", problem)
            took_s = (self._clock.now_ms() - sent_ms) / 1000
            await asyncio.sleep(max(_LEAST_PAUSE_S, _EACH_S - took_s))

    async def note_arrival(self, service: Service) -> None:
        """Note that something came through: it ends an outage, if there is one."""
        before_ms, now_ms = self._sent_ms, self._clock.now_ms()
        if now_ms - before_ms <= UNSEEN_MS:
            return
        # what comes meanwhile is written after this
        self._sent_ms = now_ms
        try:
            outage = await service.write(partial(note_return, now_ms=now_ms))
        except HubError:
            self._sent_ms = before_ms
            raise
        if outage is not None:
            # it moves dates
            service.live.note_course_change()
            length_s = (outage.to_ms - outage.from_ms) / 1000
            _LOG.warning("people could not hand in for %.0f s", length_s)

    async def settle(self) -> None:
        """Wait for a beat: an outage that goes on now is noted then."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._beat.wait(), _SETTLE_S)


async def _ask_as_people(prefix: str) -> None:
    login = hub_login()
    if await login.user_for_token(login.api_token, use_cache=False, sync=False) is None:
        raise LogInAway("The hub does not know its course service.")
    if PROXY in os.environ:
        host = urlsplit(os.environ[PAGES]).netloc
        url = f"{os.environ[PROXY]}{prefix}health"
        # a certificate is not for the address that is asked here
        request = HTTPRequest(url, headers={"Host": host}, validate_cert=False)
        await AsyncHTTPClient().fetch(request)
