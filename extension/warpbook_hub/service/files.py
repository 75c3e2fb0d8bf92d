"""Small things that are served beside pages."""

from __future__ import annotations

from sqlalchemy import select

from warpbook_hub.errors import Forbidden, NotFound
from warpbook_hub.service.access import admit
from warpbook_hub.service.handler import ServiceHandler
from warpbook_hub.service.lab_texts import picture
from warpbook_hub.service.login import KnowsWhoAsks
from warpbook_hub.service.sites import refuse_foreign
from warpbook_labs.cards.html import STYLE


class Health(ServiceHandler):
    """`GET health`: whether the service answers, for whoever watches it."""

    async def get(self) -> None:
        """Say so once the database answers, and how far the clock was set."""
        await self.service.read(lambda connection: connection.execute(select(1)))
        jump_ms = self.service.clock.jump_ms()
        self.finish_json({"ok": True, "clock_jump_ms": jump_ms})


class CardStyle(ServiceHandler):
    """`GET static/card.css`: how cards of results look."""

    async def get(self) -> None:
        """Give the style of cards."""
        self.set_header("Content-Type", "text/css; charset=utf-8")
        self.set_header("Cache-Control", "max-age=3600")
        self.finish(STYLE)


class LabPicture(KnowsWhoAsks, ServiceHandler):
    """A picture of a lab's text."""

    async def get(self, file: str, **ids: str) -> None:
        """Give it to who may see the lab."""
        who = await self.who_asks()
        if who is None:
            raise Forbidden("Log in to the hub first.")
        if not self.has_token:
            refuse_foreign(self.request, may_be_opened=True)
        self.count(who.username)
        service = self.service
        lab = await service.read(
            lambda c: admit(c, self.arrived_ms, who, "member", ids).lab.lab
        )
        image = await service.apart(lambda: picture(lab, file))
        if image is None:
            raise NotFound("There is no such picture.")
        self.set_header("Content-Type", image.content_type)
        # an SVG that is opened by itself runs nothing
        policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
        self.set_header("Content-Security-Policy", policy)
        self.set_header("Cache-Control", "private, max-age=3600")
        self.finish(image.content)
