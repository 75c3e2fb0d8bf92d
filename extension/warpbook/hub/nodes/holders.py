"""Who the holders of GPUs are to the hub: people by their accounts, others by a uid.

What an account of the node is called is kept only if it is a person's here, and what a
process says of itself only if it names one.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, delete, func, insert, or_, select, update

from warpbook.hub.database.node_tables import HOLDER_SPANS, NODE_HOLDERS
from warpbook.hub.database.tables import PEOPLE
from warpbook.hub.ids import new_id
from warpbook_monitors.holders.node_protocol import Holder

#: of a node; further ones have no workload
_MOST = 20_000


class _Identity(NamedTuple):
    """What tells a holder from others: columns of `node_holders`."""

    node: str
    uid: int | None
    person: str | None
    claimant: str | None
    workload_kind: str
    workload: str

    @property
    def digest(self) -> str:
        return sha256(msgspec.json.encode(self)).hexdigest()


class Holders:
    """Finds the rows of a node's holders, and makes those that are not there."""

    def __init__(self, connection: Connection, now_ms: int, node: str) -> None:
        """Take the transaction in which rows are read and made."""
        self._connection, self._now_ms, self._node = connection, now_ms, node
        self._ids: dict[Holder, str] = {}

    def id_of(self, holder: Holder) -> str:
        """Give the id of a holder's row."""
        if holder not in self._ids:
            self._ids[holder] = self._row_id(holder)
        return self._ids[holder]

    def _row_id(self, holder: Holder) -> str:
        person, claimant = self._person(holder.account), self._person(holder.hub_user)
        workload = holder.workload
        # a unit may be named after its user
        is_named = workload.kind != "systemd" or person is not None
        identity = _Identity(
            self._node,
            holder.uid,
            person,
            None if claimant == person else claimant,
            workload.kind,
            workload.name if is_named else "",
        )
        known_id = self._known_id(identity)
        if known_id is None and self._count() >= _MOST:
            identity = identity._replace(workload_kind="", workload="")
            known_id = self._known_id(identity)
        if known_id is not None:
            change = update(NODE_HOLDERS).where(NODE_HOLDERS.c.id == known_id)
            self._connection.execute(change.values(seen_ms=self._now_ms))
            return known_id
        row_id = new_id()
        self._connection.execute(
            insert(NODE_HOLDERS).values(
                id=row_id,
                identity=identity.digest,
                seen_ms=self._now_ms,
                **identity._asdict(),
            )
        )
        return row_id

    def _known_id(self, identity: _Identity) -> str | None:
        is_same = NODE_HOLDERS.c.identity == identity.digest
        known_id = self._connection.execute(
            select(NODE_HOLDERS.c.id).where(is_same)
        ).scalar()
        return None if known_id is None else str(known_id)

    def _person(self, name: str) -> str | None:
        if not name:
            return None
        query = select(PEOPLE.c.id).where(
            PEOPLE.c.username == name.lower(), PEOPLE.c.erased_ms.is_(None)
        )
        person = self._connection.execute(query).scalar()
        return None if person is None else str(person)

    def _count(self) -> int:
        query = select(func.count()).where(NODE_HOLDERS.c.node == self._node)
        return int(self._connection.execute(query).scalar_one())


def forget(connection: Connection, person: str) -> None:
    """Delete all that is kept of a person's use of nodes, and claims to be them."""
    of_others = NODE_HOLDERS.c.person.is_not(None) & (NODE_HOLDERS.c.person != person)
    claimed = (NODE_HOLDERS.c.claimant == person) & of_others
    for row in connection.execute(select(NODE_HOLDERS.c.id).where(claimed)).all():
        # what these did stays theirs
        change = update(NODE_HOLDERS).where(NODE_HOLDERS.c.id == row.id)
        digest = sha256(f"claim erased {row.id}".encode()).hexdigest()
        connection.execute(change.values(claimant=None, identity=digest))
    theirs = or_(NODE_HOLDERS.c.person == person, NODE_HOLDERS.c.claimant == person)
    holders = select(NODE_HOLDERS.c.id).where(theirs)
    connection.execute(delete(HOLDER_SPANS).where(HOLDER_SPANS.c.holder.in_(holders)))
    connection.execute(delete(NODE_HOLDERS).where(theirs))
