"""What people's servers say of their kernels: kept in memory, shown beside facts.

Nothing is computed from a hint. It is shown only where an agent has found the process
on that GPU, under the account of the person who said it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import get_args

from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook.hub import audit
from warpbook.hub.database import settings
from warpbook.hub.database.tables import PEOPLE
from warpbook.hub.errors import TooManyRequests
from warpbook.kernel_hints_protocol import PERIOD_S, KernelHint, KernelHints, Policy
from warpbook_monitors.plain_text import bounded

#: what is older is not shown
KEPT_MS = 180_000
#: a server's next message may come a little early
_LEAST_MS = PERIOD_S * 750
#: of a person, and of the hub
_MOST_SERVERS = 5
_MOST_MESSAGES = 2_000
_POLICY = "kernel_hints"
USUAL_POLICY: Policy = "off"


class Said(Struct, frozen=True):
    """A kernel as its owner's server describes it."""

    #: empty where it is unknown or not taken
    notebook: str
    #: None: unknown
    is_busy: bool | None
    #: None unless it is idle, or if it is unknown
    idle_since_ms: int | None


class _Message(Struct, frozen=True):
    """A server's newest."""

    heard_ms: int
    kernels: tuple[KernelHint, ...]

    def is_kept(self, now_ms: int) -> bool:
        return abs(now_ms - self.heard_ms) < KEPT_MS


class HintsNow(Struct, frozen=True):
    """What was said at one moment; nothing of it changes."""

    #: by user name, then by server
    messages: Mapping[str, Mapping[str, _Message]]

    def of(
        self, username: str, now_ms: int, policy: Policy
    ) -> list[tuple[KernelHint, Said]]:
        """Give what a person's servers say, as far as the policy lets it be shown."""
        if policy == "off":
            return []
        return [
            (hint, _said(hint, message.heard_ms, policy))
            for message in self.messages.get(username, {}).values()
            if message.is_kept(now_ms)
            for hint in message.kernels
        ]

    def about(
        self,
        username: str,
        gpu: str,
        pids: Collection[int],
        now_ms: int,
        policy: Policy,
    ) -> tuple[Said, ...]:
        """Give what a person says of processes.

        Args:
            username: whose account the processes have, as the node's agent found.
            gpu: UUID of the GPU on which it found them.
            pids: theirs.
            now_ms: the server's time.
            policy: in force now.
        """
        return tuple(
            said
            for hint, said in self.of(username, now_ms, policy)
            if any(one.gpu == gpu and one.pid in pids for one in hint.processes)
        )


NOTHING_SAID = HintsNow({})


class KernelHintBook:
    """Keeps the newest message of each server; on the event loop."""

    def __init__(self) -> None:
        """Begin without a word."""
        self._now = NOTHING_SAID

    @property
    def now(self) -> HintsNow:
        """Give what was said."""
        return self._now

    def note(self, username: str, now_ms: int, message: KernelHints) -> None:
        """Take a server's message in the place of its last.

        Raises:
            TooManyRequests: it, or its person's servers together, say too much.
        """
        kept = {
            name: fresh
            for name, servers in self._now.messages.items()
            if (fresh := {k: m for k, m in servers.items() if m.is_kept(now_ms)})
        }
        servers = kept.pop(username, {})
        before = servers.pop(message.server, None)
        if before is not None and abs(now_ms - before.heard_ms) < _LEAST_MS:
            raise TooManyRequests(f"A server sends hints once in {PERIOD_S} s.")
        if len(servers) >= _MOST_SERVERS:
            raise TooManyRequests(
                f"{_MOST_SERVERS} servers of yours send hints, and no more may."
            )
        if sum(map(len, kept.values())) >= _MOST_MESSAGES:
            raise TooManyRequests("Too many servers send hints. Try again later.")
        servers[message.server] = _Message(now_ms, message.kernels)
        # who reads has the one before whole
        self._now = HintsNow({**kept, username: servers})

    def forget(self) -> None:
        """Drop all that was said."""
        self._now = NOTHING_SAID


def policy(connection: Connection) -> Policy:
    """Tell which hints the hub takes."""
    value = settings.get(connection, _POLICY)
    return next((known for known in get_args(Policy) if known == value), USUAL_POLICY)


def policy_for(connection: Connection, username: str) -> Policy:
    """Tell which hints the hub takes of somebody: none of who is in no course."""
    query = select(PEOPLE.c.id).where(
        PEOPLE.c.username == username, PEOPLE.c.erased_ms.is_(None)
    )
    if connection.execute(query).first() is None:
        return "off"
    return policy(connection)


def set_policy(connection: Connection, now_ms: int, actor: str, chosen: Policy) -> None:
    """Set which hints the hub takes."""
    settings.put(connection, _POLICY, chosen)
    audit.note(connection, now_ms, actor, "hints of kernels", "hub", {"take": chosen})


def _said(hint: KernelHint, heard_ms: int, policy: Policy) -> Said:
    since_ms = None
    if hint.is_busy is False and hint.idle_s is not None:
        since_ms = max(heard_ms - hint.idle_s * 1000, 0)
    name = bounded(hint.notebook) if policy == "notebooks" else ""
    return Said(name, hint.is_busy, since_ms)
