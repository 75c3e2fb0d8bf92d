"""The tornado application: every path, in one list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyterhub.services.auth import HubOAuthCallbackHandler
from sqlalchemy import select
from tornado.web import Application, HTTPError, StaticFileHandler

from warpbook.hub_protocol import GRADERS, KEEPER, LEARNERS
from warpbook_hub.errors import Forbidden, NotFound
from warpbook_hub.service.access import admit
from warpbook_hub.service.api.routes import API_ROUTES
from warpbook_hub.service.handler import PlainHandler, ServiceHandler, log_request
from warpbook_hub.service.handlers.api_handler import ApiHandler, TicketHandler
from warpbook_hub.service.handlers.live_socket import LiveSocket
from warpbook_hub.service.handlers.lti_handlers import (
    ENTER,
    KEY_SET,
    LAUNCH,
    Enter,
    KeySet,
    LaunchNote,
)
from warpbook_hub.service.handlers.machine_handlers import GraderHandler, KeeperHandler
from warpbook_hub.service.lab_texts import picture
from warpbook_hub.service.login import KnowsWhoAsks, refuse_foreign
from warpbook_hub.service.page_handler import PageHandler
from warpbook_hub.service.pages.routes import PAGE_ROUTES
from warpbook_hub.service.route import ApiRoute, pattern
from warpbook_hub.service.service import Service
from warpbook_labs.cards.html import STYLE

if TYPE_CHECKING:
    from warpbook_hub.service.score_sender import PlatformLink

STATIC = Path(__file__).with_name("static")
_MOST_SOCKET_BYTES = 1 << 10
#: a name is held against it as it was sent, before anything in it is decoded
_FILE = "[A-Za-z0-9_.-]{1,70}"


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


class StaticFile(PlainHandler, StaticFileHandler):
    """A script or a style of the pages."""

    def set_extra_headers(self, path: str) -> None:
        """Have browsers ask whether it has changed."""
        self.set_header("Cache-Control", "no-cache")


class LogInCallback(PlainHandler, HubOAuthCallbackHandler):  # type: ignore[misc]
    """Where the hub's log-in sends people back to."""


class NoSuchPath(ServiceHandler):
    """Of a path that is not there."""

    async def get(self) -> None:
        raise HTTPError(404)

    async def post(self) -> None:
        raise HTTPError(404)


def application(
    service: Service, prefix: str, hub_prefix: str, link: PlatformLink | None = None
) -> Application:
    """Make the application.

    Args:
        service: what its handlers share.
        prefix: of all paths, with a slash at both ends.
        hub_prefix: of the hub's own pages.
        link: to the platform that the hub belongs to.
    """
    by_path: dict[str, dict[str, ApiRoute]] = {}
    for route in API_ROUTES:
        by_path.setdefault(route.path, {})[route.method] = route
    handlers: list[Any] = [
        (f"{prefix}health", Health),
        (f"{prefix}oauth_callback", LogInCallback),
        (f"{prefix}{GRADERS}([a-z]{{1,20}})", GraderHandler),
        (f"{prefix}{KEEPER}([a-z]{{1,20}})", KeeperHandler),
        (f"{prefix}live", LiveSocket),
        (f"{prefix}{LEARNERS}ticket", TicketHandler),
        (f"{prefix}static/card.css", CardStyle),
        (f"{prefix}static/({_FILE})", StaticFile, {"path": str(STATIC)}),
        (
            prefix
            + pattern("courses/{course}/labs/{lab}/pictures/")
            + f"(?P<file>{_FILE})",
            LabPicture,
        ),
    ]
    if link is not None:
        handlers += [
            (prefix + KEY_SET, KeySet, {"key_set": link.key.key_set}),
            (prefix + LAUNCH, LaunchNote),
            (prefix + ENTER, Enter),
        ]
    handlers += [
        (f"{prefix}{LEARNERS}{pattern(path)}", ApiHandler, {"routes": routes})
        for path, routes in by_path.items()
    ]
    for page in PAGE_ROUTES:
        # the address of the service may be asked without its last slash
        path = f"{prefix}?" if not page.path else prefix + pattern(page.path)
        handlers.append((path, PageHandler, {"route": page}))
    return Application(
        handlers,
        service=service,
        prefix=prefix,
        hub_prefix=hub_prefix,
        cookie_secret=service.cookie_secret,
        # the hub's log-in does it itself; tornado's would refuse tokens
        xsrf_cookies=False,
        log_function=log_request,
        default_handler_class=NoSuchPath,
        websocket_ping_interval=30,
        websocket_ping_timeout=20,
        websocket_max_message_size=_MOST_SOCKET_BYTES,
    )
