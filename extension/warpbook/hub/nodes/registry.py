"""Nodes as the hub knows them: a name and a token."""

from __future__ import annotations

import re

from msgspec import Struct
from sqlalchemy import Connection, func, insert, select, update

from warpbook.hub import audit
from warpbook.hub.database import settings
from warpbook.hub.database.node_tables import NODES
from warpbook.hub.errors import BadRequest, Conflict, Forbidden
from warpbook.hub.ids import new_id
from warpbook.hub.tokens import new_token, token_digest

MOST_NODES = 500
#: for how many weeks hours are kept
WEEKS = "node_weeks"
USUAL_WEEKS = 8
MOST_WEEKS = 104
#: an agent reports once a minute at least
HEARD_MS = 150_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class NodeInfo(Struct, frozen=True):
    """A node, for instructors."""

    id: str
    name: str
    #: None: its agent was never heard of
    seen_ms: int | None
    is_heard: bool
    #: intervals that its agent had to drop before the hub took them
    dropped: int


def register(connection: Connection, now_ms: int, actor: str, name: str) -> str:
    """Make a node known, or give it another token; the old one is void then.

    Returns:
        Its token, which is kept nowhere.

    Raises:
        BadRequest: the name can't be used.
        Conflict: there are too many nodes.
    """
    if _NAME.fullmatch(name) is None:
        raise BadRequest("The name of a node has 1 to 63 letters, digits and . _ -.")
    token = new_token()
    query = select(NODES.c.id).where(NODES.c.name == name)
    node = connection.execute(query).scalar()
    if node is None:
        active = select(func.count(NODES.c.id)).where(NODES.c.state == "active")
        if connection.execute(active).scalar_one() >= MOST_NODES:
            raise Conflict(f"A hub has up to {MOST_NODES} nodes.")
        node = new_id()
        connection.execute(
            insert(NODES).values(
                id=node,
                name=name,
                token_digest=token_digest(token),
                state="active",
                registered_ms=now_ms,
                dropped=0,
            )
        )
    else:
        change = update(NODES).where(NODES.c.id == node)
        values = {"token_digest": token_digest(token), "state": "active"}
        connection.execute(change.values(**values))
    audit.note(connection, now_ms, actor, "node registered", node, {"name": name})
    return token


def authenticate(connection: Connection, token: str) -> str:
    """Give the id of the node that has a token.

    Raises:
        Forbidden: nobody has it, or the node is retired.
    """
    query = select(NODES.c.id).where(
        NODES.c.token_digest == token_digest(token), NODES.c.state == "active"
    )
    node = connection.execute(query).scalar()
    if node is None:
        raise Forbidden("No node has this token.")
    return str(node)


def retire(connection: Connection, now_ms: int, actor: str, node: str) -> None:
    """Take a node off the board: its token is void, and its rows go with age.

    Raises:
        Conflict: there is none that is active.
    """
    of = (NODES.c.id == node) & (NODES.c.state == "active")
    if not connection.execute(update(NODES).where(of).values(state="retired")).rowcount:
        raise Conflict("There is no such node any more. Load the page again.")
    audit.note(connection, now_ms, actor, "node retired", node)


def nodes(connection: Connection, now_ms: int) -> list[NodeInfo]:
    """Give all nodes that are not retired."""
    query = select(NODES).where(NODES.c.state == "active").order_by(NODES.c.name)
    return [
        NodeInfo(
            row.id,
            row.name,
            row.seen_ms,
            row.seen_ms is not None and now_ms - row.seen_ms <= HEARD_MS,
            row.dropped,
        )
        for row in connection.execute(query)
    ]


def keep_weeks(connection: Connection, now_ms: int, actor: str, weeks: int) -> None:
    """Set for how many weeks hours are kept.

    Raises:
        BadRequest: it is not 1 to 104.
    """
    if not 1 <= weeks <= MOST_WEEKS:
        raise BadRequest(f"Hours are kept for 1 to {MOST_WEEKS} weeks.")
    settings.put(connection, WEEKS, str(weeks))
    audit.note(connection, now_ms, actor, "nodes kept", "hub", {"weeks": weeks})


def weeks_kept(connection: Connection) -> int:
    """Tell for how many weeks hours are kept."""
    return int(settings.get(connection, WEEKS) or USUAL_WEEKS)
