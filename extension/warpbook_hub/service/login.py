"""Who asks, as the hub says; nothing here waits for the hub on the event loop."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from urllib.parse import urlsplit

from jupyterhub.services.auth import HubOAuth, HubOAuthenticated
from tornado.httputil import HTTPServerRequest
from tornado.web import HTTPError, RequestHandler

from warpbook_hub.errors import Forbidden, HubError
from warpbook_hub.scopes import SCOPES
from warpbook_hub.service.access import Identity, identity_of

#: a token that was revoked is believed so long
CACHE_S = 10
_WAIT_S = 15.0


class LogInAway(HubError):
    """The hub can't be asked who somebody is."""

    http_status = 503


def hub_login() -> HubOAuth:
    """Give the one client of the hub's log-in."""
    return cast(HubOAuth, HubOAuth.instance(cache_max_age=CACHE_S))


class KnowsWhoAsks(HubOAuthenticated, RequestHandler):  # type: ignore[misc]
    """A handler that asks the hub who sent a request."""

    hub_scopes = set(SCOPES)

    async def who_asks(self) -> Identity | None:
        """Give who asks; None where nobody says so.

        Raises:
            LogInAway: the hub does not answer.
            Forbidden: it opens nothing here.
        """
        return await self._identity(self.hub_auth.get_user(self, sync=False))

    async def who_has_token(self) -> Identity | None:
        """The same by a token alone, whatever the cookies say."""
        token = self.hub_auth.get_token(self, in_cookie=False)
        if not token:
            return None
        return await self._identity(self.hub_auth.user_for_token(token, sync=False))

    @property
    def has_token(self) -> bool:
        """Whether a token, and no cookie, said who asks."""
        return bool(getattr(self, "_token_authenticated", False))

    async def _identity(self, model_of_user: Any) -> Identity | None:
        try:
            model = await asyncio.wait_for(model_of_user, _WAIT_S)
        except (HTTPError, asyncio.TimeoutError):
            raise LogInAway(
                "The hub's log-in does not answer now. Try again in a moment; what was "
                "acknowledged is kept."
            ) from None
        if not model:
            return None
        who = identity_of(model)
        if who is None:
            raise Forbidden(
                "This account, or this token, is not for the course service. A token "
                "needs the scope `custom:warpbook:submit`."
            )
        return who


_SITE = "Sec-Fetch-Site"
_REFUSED = (
    "This request comes from another site. Ask from the course's own pages, or with a "
    "token in the Authorization header."
)


def refuse_foreign(request: HTTPServerRequest, may_be_opened: bool) -> None:
    """Refuse what a page of another site had a browser send with a cookie.

    Args:
        request: that a cookie stands for.
        may_be_opened: a person may follow a link to it from anywhere.

    Raises:
        Forbidden: it is of another site.
    """
    site = request.headers.get(_SITE)
    if site not in (None, "same-origin", "none"):
        is_link = request.headers.get("Sec-Fetch-Mode") == "navigate"
        if not (may_be_opened and is_link):
            raise Forbidden(_REFUSED)
    if not is_of_host(request) and not may_be_opened:
        raise Forbidden(_REFUSED)


def is_of_host(request: HTTPServerRequest) -> bool:
    """Whether the page that asks is of this host; programs tell of no page."""
    origin = request.headers.get("Origin")
    if origin is None:
        return True
    return urlsplit(origin).netloc.lower() == request.host.lower()
