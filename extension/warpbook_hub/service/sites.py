"""Keeps pages of other sites from using a person's cookie."""

from __future__ import annotations

from urllib.parse import urlsplit

from tornado.httputil import HTTPServerRequest

from warpbook_hub.errors import Forbidden

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
