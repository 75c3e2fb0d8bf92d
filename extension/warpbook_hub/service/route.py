"""What a route is: declared once, so that a test can walk all of them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from warpbook.hub_protocol import Nothing
from warpbook_hub.service.access import Level
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import MOST_BODY_BYTES

if TYPE_CHECKING:
    from warpbook_hub.service.service import Service

#: as the hub draws ids, and as people name courses
_ID = "[a-z0-9][a-z0-9._-]{0,63}"
_PLACE = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True)
class ApiRoute:
    """A route of the JSON API."""

    method: Literal["GET", "POST"]
    #: below `api/v1/`; ids are in braces
    path: str
    level: Level
    #: in one transaction: of the writer where it is a POST
    function: Callable[[Admitted, Any], Any]
    #: of the query (GET) or the body (POST)
    given: type[Struct] = Nothing
    status: int = 200
    most_body_bytes: int = MOST_BODY_BYTES
    #: done first, once the request is admitted; what it gives is what is taken
    before: Callable[[Service, Any], Awaitable[Any]] | None = None
    #: done last; what it gives is answered
    after: Callable[[Service, Any], Awaitable[Any]] | None = None
    #: it takes a core, or reads all of the database: one at a time
    is_heavy: bool = False
    #: a POST that writes nothing
    only_reads: bool = False
    #: sent again after it failed here, it counts as of when it came first
    keeps_arrival: bool = False


@dataclass(frozen=True)
class PageRoute:
    """A page."""

    path: str
    level: Level
    template: str
    #: gives what the template shows
    function: Callable[[Admitted, Any], dict[str, Any]]
    given: type[Struct] = Nothing
    after: Callable[[Service, Any], Awaitable[Any]] | None = None
    #: that it was looked at is written down
    is_noted: bool = False


def pattern(path: str) -> str:
    """Write a path as a regular expression with a group for each id."""
    return _PLACE.sub(lambda place: f"(?P<{place[1]}>{_ID})", path)


def filled(path: str, ids: dict[str, str]) -> str:
    return _PLACE.sub(lambda place: ids[place[1]], path)
