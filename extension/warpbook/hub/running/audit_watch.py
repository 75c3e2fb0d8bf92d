"""Keeps the head of the audit log outside of the database while a hub runs.

Whoever changes the database as its own account can remove the last entries of the log,
and nothing in it tells. A head that is kept elsewhere does: its entry must still be
there. What was written after the head that was kept last is not covered by it.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from warpbook.hub.audit import AuditHead
from warpbook.hub.keeping.kept_head import FILE, keep_head, kept_head
from warpbook.hub.running.plan import HubPlan

if TYPE_CHECKING:
    from warpbook.hub.running.begin import Begun

#: between two looks
EVERY_S = 60.0
_WAIT_S = 5.0


class _Health(Struct, frozen=True):
    audit: AuditHead
    audit_entry: AuditHead | None = None


class AuditWatch:
    """The log of one hub; a head is kept only where it follows from the one before."""

    def __init__(self, plan: HubPlan, say: Callable[[str], None]) -> None:
        """Take the hub, and who is told."""
        self._plan, self._say = plan, say
        self._kept: AuditHead | None = None
        self._is_wrong = False
        self._next_s = 0.0
        try:
            self._kept = kept_head(plan.hub_folder)
        except (OSError, ValueError) as problem:
            self._warn(f"The head of the audit log can't be read: {problem}.")

    def kept_text(self) -> str:
        """Give the head that was kept last as JSON."""
        return msgspec.json.encode(self._kept).decode()

    def begin(self, begun: Begun) -> None:
        """Take what was seen of the log before the hub is started."""
        if begun.problem:
            self._warn(begun.problem)
        elif not self._is_wrong or begun.is_restored:
            self._is_wrong = False
            self._keep(begun.head)
        self._next_s = time.monotonic() + EVERY_S

    def look(self) -> None:
        """Look whether the head that was kept is still in the log, now and then."""
        if self._is_wrong or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        number = 0 if self._kept is None else self._kept.number
        health = self._health(number)
        if health is None:
            return
        if self._kept is not None and number and health.audit_entry != self._kept:
            self._warn(f"Entry {number:,} of the audit log is gone, or another.")
        elif health.audit != self._kept:
            self._keep(health.audit)

    def end(self) -> None:
        """Keep the head once more, while the service still answers."""
        self._next_s = 0.0
        self.look()

    def _keep(self, head: AuditHead) -> None:
        try:
            keep_head(self._plan.hub_folder, head)
        except OSError as problem:
            self._say(f"The head of the audit log is not kept: {problem}.")
        else:
            self._kept = head

    def _warn(self, words: str) -> None:
        """Say what is wrong; the head stays, so that the doctor says it, too."""
        self._is_wrong = True
        self._say(
            f"\n  AUDIT LOG: {words}\n  Marks may have been changed without a trace. "
            "Compare with a backup or an export. Once you know why, remove\n"
            f"  {self._plan.hub_folder / FILE} and restart the hub.\n"
        )

    def _health(self, number: int) -> _Health | None:
        """Ask the service; None where it does not answer now."""
        # no proxy of the environment: it is on this machine
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = f"{self._plan.service_url}health?audit={number}"
        try:
            with opener.open(url, timeout=_WAIT_S) as response:
                return msgspec.json.decode(response.read(1 << 16), type=_Health)
        except (OSError, msgspec.MsgspecError):
            return None
