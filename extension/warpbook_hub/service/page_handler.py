"""Pages: drawn here from templates that escape whatever they are given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tornado.template import Loader

from warpbook_hub.notices.inbox import unread
from warpbook_hub.service.access import Identity, admit
from warpbook_hub.service.handler import ServiceHandler, problem_of
from warpbook_hub.service.login import KnowsWhoAsks, refuse_foreign
from warpbook_hub.service.pages import words
from warpbook_hub.service.parameters import read_query
from warpbook_hub.service.route import PageRoute
from warpbook_hub.service.script import has_script

TEMPLATES = Path(__file__).with_name("templates")
_LOADER = Loader(str(TEMPLATES), autoescape="xhtml_escape", whitespace="single")


def drawn(template: str, values: Mapping[str, Any]) -> bytes:
    shown: dict[str, Any] = {
        **dict.fromkeys(("root", "hub", "home", "username", "xsrf"), ""),
        "w": words,
        "has_script": has_script(),
        "page": template.removesuffix(".html"),
        "is_staff": False,
        "is_instructor": False,
        "is_operator": False,
        "unread": 0,
        # whose page it is, where staff look at it
        "seen_as": "",
        **values,
    }
    return _LOADER.load(template).generate(**shown)


class PageHandler(KnowsWhoAsks, ServiceHandler):
    """One page."""

    def initialize(self, route: PageRoute) -> None:  # type: ignore[override]
        super().initialize()
        self._route = route
        self._username = ""
        self._who: Identity | None = None

    async def let_in(self) -> None:
        """Find who asks."""
        self.bound_body(0)
        who = await self.who_asks()
        if who is None:
            return
        if not self.has_token:
            refuse_foreign(self.request, may_be_opened=True)
        self.count(who.username)
        self._who, self._username = who, who.username

    async def get(self, **ids: str) -> None:
        """Draw it; send somebody who is not logged in to the log-in."""
        self.refuse()
        who = self._who
        if who is None:
            self.redirect(self.get_login_url())
            return
        route, service = self._route, self.service
        given: Any = read_query(self.request.query_arguments, route.given)

        def shown(connection: Any) -> dict[str, Any]:
            now_ms = self.arrived_ms
            admitted = admit(connection, now_ms, who, route.level, ids)
            has_course = admitted.given_course is not None
            about = {
                "course": admitted.given_course,
                "is_operator": bool(admitted.operator),
                "is_staff": has_course and admitted.is_staff,
                "is_instructor": has_course and admitted.is_instructor,
                "now_ms": now_ms,
                "ids": ids,
                # of links to what the page's person may see
                "home": f"courses/{ids.get('course', '')}",
                "unread": unread(connection, who.username),
            }
            return {**about, **route.function(admitted, given)}

        if route.is_noted:
            values = await service.write(shown, tells_pages=False)
        else:
            values = await service.read(shown)
        if route.after is not None:
            values = await route.after(service, values)
        if "go" in values:
            self.redirect(self._root + values["go"])
            return
        self._draw(route.template, values)

    def write_error(self, status_code: int, **details: Any) -> None:
        """Draw a page that says what went wrong."""
        _, problem, _ = details.get("exc_info", (None, None, None))
        status, answer = problem_of(problem, status_code)
        self.set_status(status)
        self._draw("error.html", {"message": answer["error"], "course": None})

    @property
    def _root(self) -> str:
        return str(self.settings["prefix"])

    def _draw(self, template: str, values: dict[str, Any]) -> None:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        shown: dict[str, Any] = {
            "root": self._root,
            "hub": self.settings["hub_prefix"],
            "username": self._username,
            # it sets the cookie that goes with it
            "xsrf": self.xsrf_token.decode() if self._username else "",
            **values,
        }
        self.finish(drawn(template, shown))
