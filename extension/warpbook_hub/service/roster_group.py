"""Names of a group of the hub, asked of the hub's API with the service's own token."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from tornado.httpclient import AsyncHTTPClient, HTTPClientError

from warpbook_hub.errors import NotFound
from warpbook_hub.service.login import LogInAway, hub_login
from warpbook_hub.service.parameters import RosterGroup

_WAIT_S = 15.0
#: names that are asked for at a time
_PAGE = 200
_MOST_PAGES = 100


class NamesOfGroup(Struct, frozen=True):
    """A group of the hub, with those who are in it."""

    names: tuple[str, ...]
    section: str
    is_preview: bool


async def ask_group(_service: Any, given: RosterGroup) -> NamesOfGroup:
    """Ask the hub who is in a group.

    Raises:
        NotFound: nobody is.
        LogInAway: the hub does not answer.
    """
    names: list[str] = []
    for page in range(_MOST_PAGES):
        people = await _people(page * _PAGE)
        names += [
            str(person["name"])
            for person in people
            if given.group in (person.get("groups") or ())
        ]
        if len(people) < _PAGE:
            break
    if not names:
        raise NotFound(f"Nobody of the hub is in a group `{given.group}`.")
    return NamesOfGroup(tuple(names), given.section, given.is_preview)


async def _people(offset: int) -> list[dict[str, Any]]:
    login = hub_login()
    url = f"{login.api_url}/users?offset={quote(str(offset))}&limit={_PAGE}"
    try:
        response = await AsyncHTTPClient().fetch(
            url,
            headers={"Authorization": f"token {login.api_token}"},
            request_timeout=_WAIT_S,
        )
        people: list[dict[str, Any]] = json.loads(response.body)
    except (HTTPClientError, OSError, ValueError):
        raise LogInAway("The hub does not tell who is in its groups now.") from None
    return people
