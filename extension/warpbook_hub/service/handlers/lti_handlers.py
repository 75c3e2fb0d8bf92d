"""What a platform and the hub's log-in ask of the course service."""

from __future__ import annotations

import hmac
import re
from typing import Any
from urllib.parse import urlsplit

from warpbook.hub_protocol import LTI
from warpbook_hub.errors import Forbidden
from warpbook_hub.lti.links import record_launch
from warpbook_hub.lti.platform import Launch, LaunchedPerson
from warpbook_hub.service.handler import ServiceHandler
from warpbook_hub.service.login import hub_login
from warpbook_hub.service.parameters import read_body

#: below the prefix of the service
KEY_SET, LAUNCH, ENTER = f"{LTI}jwks.json", f"{LTI}launch", f"{LTI}enter"
_MOST_LAUNCH_BYTES = 64 << 10
_URL = re.compile(r"(/(?![/\\])|https?://(?!/))[\x21-\x5b\x5d-\x7e]*")


class KeySet(ServiceHandler):
    """The public key with which the platform checks what we sign."""

    def initialize(self, key_set: dict[str, Any]) -> None:  # type: ignore[override]
        super().initialize()
        self._key_set = key_set

    async def get(self) -> None:
        self.refuse()
        self.finish_json(self._key_set)


class LaunchNote(ServiceHandler):
    """A launch, from the hub's log-in, before it lets somebody in."""

    async def let_in(self) -> None:
        """Believe the hub alone: it has the token that the service has at it."""
        self.bound_body(_MOST_LAUNCH_BYTES)
        given = self.request.headers.get("Authorization", "")
        wanted = f"Bearer {hub_login().api_token}"
        if not hmac.compare_digest(given.encode(), wanted.encode()):
            raise Forbidden("Only the hub's log-in sends launches.")

    async def post(self) -> None:
        """Note it; give the user name with which the person is logged in."""
        self.refuse()
        launch = read_body(self.body, Launch)
        name = await self.service.write(
            lambda c: record_launch(c, self.arrived_ms, launch)
        )
        self.finish_json(LaunchedPerson(name))


class Enter(ServiceHandler):
    """The way from a launch to its page, which forgets who used the browser before."""

    async def get(self) -> None:
        """Have the page ask the hub again who this is."""
        self.refuse()
        login = hub_login()
        self.clear_cookie(login.cookie_name, path=login.cookie_path)
        self.redirect(self._own_url(self.get_query_argument("next", "")))

    def _own_url(self, url: str) -> str:
        """Give the address of a page here or of the hub; else of the courses."""
        hub_host = hub_login().hub_host
        if _URL.fullmatch(url) and url.startswith("/"):
            return f"{hub_host}{url}"
        own_hosts = (self.request.host, urlsplit(hub_host).netloc)
        if _URL.fullmatch(url) and url.split("/")[2] in own_hosts:
            return url
        return str(self.settings["prefix"])
