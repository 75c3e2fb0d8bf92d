"""Who the holders of GPUs are to the hub: people by their accounts, others by a uid.

What an account of the node is called is kept only if it is a person's here, and what a
process says of itself only if it names one.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec
from sqlalchemy import Connection, delete, func, insert, or_, select, update

from warpbook.hub.database.node_tables import HOLDER_SPANS, NODE_HOLDERS
from warpbook.hub.database.tables import PEOPLE
from warpbook.hub.ids import new_id
from warpbook_monitors.holders.node_protocol import Holder, Workload

#: of a node; workloads of further ones are not told apart
_MOST = 20_000


class Holders:
    """Finds the rows of a node's holders, and makes those that are not there."""

    def __init__(self, connection: Connection, now_ms: int, node: str) -> None:
        """Take the transaction in which they are found."""
        self._connection, self._now_ms, self._node = connection, now_ms, node
        self._ids: dict[Holder, str] = {}

    def id_of(self, holder: Holder) -> str:
        """Give the id of a holder's row."""
        if holder not in self._ids:
            self._ids[holder] = self._found(holder)
        return self._ids[holder]

    def _found(self, holder: Holder) -> str:
        person, claimant = self._person(holder.account), self._person(holder.hub_user)
        if claimant == person:
            claimant = None
        of = (holder.uid, person, claimant)
        workload = holder.workload
        known = self._row(*of, workload)
        if known is None and self._count() >= _MOST:
            workload = Workload()
            known = self._row(*of, workload)
        if known is not None:
            change = update(NODE_HOLDERS).where(NODE_HOLDERS.c.id == known)
            self._connection.execute(change.values(seen_ms=self._now_ms))
            return known
        made = new_id()
        self._connection.execute(
            insert(NODE_HOLDERS).values(
                id=made,
                node=self._node,
                identity=self._identity(*of, workload),
                uid=holder.uid,
                person=person,
                claimant=claimant,
                workload_kind=workload.kind,
                workload=workload.name,
                seen_ms=self._now_ms,
            )
        )
        return made

    def _row(
        self,
        uid: int | None,
        person: str | None,
        claimant: str | None,
        workload: Workload,
    ) -> str | None:
        identity = self._identity(uid, person, claimant, workload)
        query = select(NODE_HOLDERS.c.id).where(NODE_HOLDERS.c.identity == identity)
        number = self._connection.execute(query).scalar()
        return None if number is None else str(number)

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

    def _identity(
        self,
        uid: int | None,
        person: str | None,
        claimant: str | None,
        workload: Workload,
    ) -> str:
        parts = [self._node, uid, person, claimant, workload.kind, workload.name]
        return sha256(msgspec.json.encode(parts)).hexdigest()


def forget(connection: Connection, person: str) -> None:
    """Delete all that is kept of a person's use of nodes."""
    theirs = or_(NODE_HOLDERS.c.person == person, NODE_HOLDERS.c.claimant == person)
    holders = select(NODE_HOLDERS.c.id).where(theirs)
    connection.execute(delete(HOLDER_SPANS).where(HOLDER_SPANS.c.holder.in_(holders)))
    connection.execute(delete(NODE_HOLDERS).where(theirs))
