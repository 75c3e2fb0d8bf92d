"""Sends scores that have changed, and asks for the roster, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from warpbook_hub.errors import HubError
from warpbook_hub.lti import ledger, links
from warpbook_hub.lti.client import PlatformClient, PlatformRefused, ScoreToSend
from warpbook_hub.lti.platform import LtiPlatform
from warpbook_hub.lti.tool_key import ToolKey
from warpbook_hub.service.rounds import tried
from warpbook_hub.service.service import Service

_POLL_S = 3.0
_ROSTER_MS = 3_600_000
_MOST_TOGETHER = 50
Value = TypeVar("Value")


class PlatformLink:
    """The platform of a service: its description, the hub's key, the sender."""

    def __init__(self, platform: LtiPlatform, folder: Path) -> None:
        """Begin; the key is drawn if the folder has none."""
        self.platform = platform
        self.key = ToolKey(folder)
        self.sender = Sender(platform, PlatformClient(platform, self.key))


class Sender:
    """Sends scores and asks for the roster, one request at a time."""

    def __init__(self, platform: LtiPlatform, client: PlatformClient) -> None:
        self._issuer, self._client = platform.issuer, client
        #: how much had changed when marks were looked at last
        self._seen = -1
        #: labs whose line item there may be no more
        self._gone: set[str] = set()

    async def run(self, service: Service) -> None:
        """Go on until it is cancelled; what fails is tried again."""
        while True:
            await tried("the platform", self.round(service))
            await asyncio.sleep(_POLL_S)

    async def round(self, service: Service) -> None:
        """Look once at what is to be done, and do it; no course keeps another back."""
        count, is_seen = service.changes, True
        for context in await service.read(
            lambda connection: links.contexts(connection, self._issuer)
        ):
            course = context.course
            if service.clock.now_ms() - (context.asked_ms or 0) >= _ROSTER_MS:
                roster = self._update_roster(service, context)
                await tried(f"the platform's roster of {course}", roster)
            if count != self._seen:
                changes = self._note_changes(service, context)
                is_seen = (
                    await tried(f"the platform's marks of {course}", changes)
                    and is_seen
                )
            await tried(
                f"the platform's scores of {course}", self._send(service, context)
            )
        if is_seen:
            self._seen = count

    async def _update_roster(self, service: Service, context: links.Context) -> None:
        now_ms = service.clock.now_ms()
        try:
            if not context.memberships_url:
                raise PlatformRefused(
                    "the platform gives no list of this course's members. Allow the "
                    "tool its names and roles service there, and open the course from "
                    "there."
                )
            learners = await self._client.learners(context.memberships_url)
            await _write(
                service,
                context,
                lambda c: links.import_members(c, now_ms, context, learners),
                tells_pages=True,
            )
        except Exception as problem:
            # it waits its hour, whatever it was
            note = "failed: the hub could not take it over; its log says more"
            if isinstance(problem, HubError):
                note = f"failed: {problem}"
            await _write(
                service,
                context,
                lambda c: links.note_asked(c, now_ms, context.course, note),
                tells_pages=True,
            )
            raise

    async def _note_changes(self, service: Service, context: links.Context) -> None:
        now_ms = service.clock.now_ms()
        changed = await service.read(
            lambda c: ledger.changes(c, now_ms, context.course, self._issuer)
        )
        if changed:
            await _write(service, context, lambda c: ledger.add(c, now_ms, changed))

    async def _send(self, service: Service, context: links.Context) -> None:
        now_ms = service.clock.now_ms()
        scores = await service.read(
            lambda connection: ledger.due(
                connection, now_ms, context.course, self._issuer, _MOST_TOGETHER
            )
        )
        for score in scores:
            if not await self._send_one(service, context, score):
                # a platform in trouble is left alone for a while
                return

    async def _send_one(
        self, service: Service, context: links.Context, score: ledger.DueScore
    ) -> bool:
        """Send a score, and write down what came of it; whether to go on."""
        clock = service.clock
        if not await _write(service, context, lambda c: ledger.begin(c, score.id)):
            return True
        try:
            answer = await self._post(service, context, score)
        except PlatformRefused as problem:
            refusal = problem
        else:
            await _write(
                service,
                context,
                lambda c: ledger.note_taken(c, clock.now_ms(), score.id, answer),
            )
            return True
        is_gone = refusal.status in (404, 410)
        if is_gone:
            self._gone.add(score.publication)
        await _write(
            service,
            context,
            lambda c: ledger.note_refused(
                c,
                clock.now_ms(),
                score,
                str(refusal),
                refusal.is_temporary or is_gone,
                refusal.retry_after_s,
            ),
        )
        return not refusal.is_temporary

    async def _post(
        self, service: Service, context: links.Context, score: ledger.DueScore
    ) -> str:
        url = await service.read(
            lambda connection: links.line_item_url(connection, score.publication)
        )
        if not url or score.publication in self._gone:
            if not context.line_items_url:
                raise PlatformRefused(
                    "The platform takes no grades of this course: allow the tool its "
                    "assignment and grade services there, open the course from there "
                    "again, and send again.",
                    is_temporary=False,
                )
            made = await self._client.line_item(
                context.line_items_url,
                score.publication,
                score.title,
                score.most_points,
            )
            await _write(
                service,
                context,
                lambda c: links.put_line_item(c, score.publication, made),
                tells_pages=True,
            )
            self._gone.discard(score.publication)
            url = made
        sent = ScoreToSend(
            score.subject,
            score.points,
            score.most_points,
            score.stamped_ms,
            is_first_try=score.tries == 0,
        )
        return await self._client.post_score(url, sent)


async def _write(
    service: Service,
    context: links.Context,
    change: Callable[[Connection], Value],
    tells_pages: bool = False,
) -> Value:
    """Write what is of a course there; nothing once the course here was untied."""

    def checked(connection: Connection) -> Value:
        links.check_bound(connection, context)
        return change(connection)

    return await service.write(checked, tells_pages, is_machine=True)
