"""Sends notices by mail, tells JupyterHub how many there are, and watches graders."""

from __future__ import annotations

import asyncio

import msgspec

from warpbook_hub.notices import inbox, outbox, smtp
from warpbook_hub.notices.notes import SILENT_MS, note_silent_graders, silent_graders
from warpbook_hub.notices.smtp import MailServer, NotSent
from warpbook_hub.service.rounds import tried
from warpbook_hub.service.service import Service

#: in the folder of the database, for JupyterHub's own pages: counts by user name
UNREAD = "unread.json"
_POLL_S = 2.0
_MOST_TOGETHER = 20


class NoticeRounds:
    """What is done about notices while the service runs."""

    def __init__(self, server: MailServer | None, pages: str) -> None:
        """Take the mail server, if there is one, and the address of the pages."""
        self._server, self._pages = server, pages
        self._told: dict[str, int] | None = None

    async def run(self, service: Service) -> None:
        """Go on until it is cancelled; what fails is tried again."""
        begun_ms = service.clock.now_ms()
        while True:
            # while the service was away none was heard of: each has time to come back
            if service.clock.now_ms() - begun_ms > SILENT_MS:
                await tried("notices of graders", self._watch_graders(service))
            await tried("counts of notices", self._tell_counts(service))
            if self._server is not None:
                await tried("mails", self._send_all(service, self._server))
            await asyncio.sleep(_POLL_S)

    async def _watch_graders(self, service: Service) -> None:
        now_ms = service.clock.now_ms()
        if await service.read(lambda c: silent_graders(c, now_ms)):
            await service.write(lambda c: note_silent_graders(c, now_ms))

    async def _tell_counts(self, service: Service) -> None:
        counts = await service.read(inbox.unread_of_all)
        if counts == self._told:
            return
        file = service.folder / UNREAD
        unfinished = file.with_suffix(".new")
        unfinished.write_bytes(msgspec.json.encode(counts))
        unfinished.chmod(0o600)
        unfinished.replace(file)
        self._told = counts

    async def _send_all(self, service: Service, server: MailServer) -> None:
        now_ms = service.clock.now_ms()
        if await service.read(lambda c: outbox.waits(c, now_ms)):
            await service.write(
                lambda c: outbox.gather(c, now_ms), tells_pages=False, is_machine=True
            )
        for mail in await service.read(lambda c: outbox.due(c, now_ms, _MOST_TOGETHER)):
            if not await self._send(service, server, mail):
                # a server in trouble is left alone for a round
                return

    async def _send(
        self, service: Service, server: MailServer, mail: outbox.DueMail
    ) -> bool:
        """Send a mail, and write down what came of it; whether to go on."""
        now_ms, about = service.clock.now_ms, (mail.id, mail.address, mail.notices)
        try:
            text = smtp.mail_of(server, self._pages, *about)
            # on a thread of its own: a slow server keeps no reader of the database
            answer = await asyncio.to_thread(smtp.send, server, text)
        except NotSent as problem:
            words, is_final = str(problem), problem.is_final
            await service.write(
                lambda c: outbox.note_refused(c, now_ms(), mail, words, is_final),
                tells_pages=False,
                is_machine=True,
            )
            return is_final
        await service.write(
            lambda c: outbox.note_sent(c, mail.id, answer),
            tells_pages=False,
            is_machine=True,
        )
        return True
