"""Keeps pages of other sites from using a person's cookie.

A page that a person opens elsewhere can have their browser send a request here, with
the cookie: by a link, an image, a form, a fetch. A browser says where a request comes
from; whoever knows the token is no such page.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from jupyter_server.base.handlers import JupyterHandler
from tornado import web

#: browsers say it to HTTPS and to this machine; to others they say none of it
_SITE = "Sec-Fetch-Site"
#: of Jupyter's and JupyterHub's tokens
_SCHEME = re.compile(r"(?i)(token|bearer)\s")


def refuse_cross_site(handler: JupyterHandler, may_be_opened: bool) -> None:
    """Refuse what a page of another site, or of another port, had a browser send.

    Args:
        handler: after its user was found.
        may_be_opened: whether a person may open it from the address bar.

    Raises:
        HTTPError: 403.
    """
    if not is_from_here(handler, may_be_opened):
        raise web.HTTPError(
            403,
            "This request comes from another site, or does not say where from. Ask "
            "from JupyterLab, or with a token in the Authorization header.",
        )


def is_from_here(handler: JupyterHandler, may_be_opened: bool) -> bool:
    """Whether a request comes from a page of this server, or from a program."""
    headers = handler.request.headers
    if handler.token_authenticated or _SCHEME.match(headers.get("Authorization", "")):
        # no other site can send it without being asked for leave first; the password
        # for a proxy, which a browser adds by itself, is of another scheme
        return True
    site = headers.get(_SITE)
    if site == "same-origin":
        return True
    if headers.get("Origin"):
        # the server's settings say which others may
        return bool(handler.check_origin())
    if site is not None:
        return site == "none" and may_be_opened
    if headers.get("X-XSRFToken"):
        # JupyterLab's own requests have it, and other sites can't send it either
        return True
    referer = urlsplit(headers.get("Referer", ""))
    if referer.netloc:
        return referer.netloc.lower() == handler.request.host.lower()
    # nothing told: a program that needs no credential where nobody needs any
    return not handler.identity_provider.auth_enabled
