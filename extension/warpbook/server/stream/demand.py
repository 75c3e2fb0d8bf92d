"""Why the devices are read now, and how often: each reason is a lease.

Everything here runs on the server's event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Literal, NamedTuple

#: "full" is the sampler's own rate, "slow" once a second
Rate = Literal["full", "slow"]

#: pages that are connected, also hidden ones that take no frames
PAGES = "pages"
#: the alert rules in force
ALERT_RULES = "alert rules"


class _Reason(NamedTuple):
    """What leases have in common that are counted together."""

    name: str
    #: None: it is counted, and needs no reading
    rate: Rate | None
    #: the name of the leases without which it does not count
    only_with: str | None


class Demand:
    """Counts the leases, and gives the rate that the highest of them needs."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Begin without a lease.

        Args:
            changed: called after `rate` has become another.
        """
        self._changed = changed
        self._leases: Counter[_Reason] = Counter()
        self._rate: Rate | None = None
        self._closed = False

    @property
    def rate(self) -> Rate | None:
        """How often the devices are to be read; None while they rest."""
        return self._rate

    @property
    def is_awake(self) -> bool:
        """Whether the devices are being read."""
        return self._rate is not None

    def lease(
        self, name: str, rate: Rate | None = "full", only_with: str | None = None
    ) -> Lease:
        """Give a lease that has not begun.

        Args:
            name: of the reason; leases of one name are counted together.
            rate: how often the devices are to be read for it; None counts it only.
            only_with: it counts only while there is a lease of this name.
        """
        return Lease(self, _Reason(name, rate, only_with))

    def count(self, name: str) -> int:
        return sum(
            count
            for reason, count in self._leases.items()
            if reason.name == name and self._counts(reason)
        )

    def close(self) -> None:
        """Let the devices rest for good, whoever holds a lease."""
        self._closed = True
        self._update()

    def add(self, reason: _Reason, count: int) -> None:
        """Note that leases began, or by a negative count that they ended."""
        self._leases[reason] += count
        self._leases += Counter()  # without those of which none is left
        self._update()

    def _counts(self, reason: _Reason) -> bool:
        return reason.only_with is None or any(
            other.name == reason.only_with for other in self._leases
        )

    def _update(self) -> None:
        rates = {lease.rate for lease in self._leases if self._counts(lease)}
        rate: Rate | None = None
        if not self._closed:
            rate = "full" if "full" in rates else "slow" if "slow" in rates else None
        if rate != self._rate:
            self._rate = rate
            self._changed()


class Lease:
    """One holder's reason: in force from `begin` to `end`, or for a `with` block.

    To begin what has begun, or end what has ended, changes nothing.
    """

    def __init__(self, demand: Demand, reason: _Reason) -> None:
        """Belong to a demand; see `Demand.lease`."""
        self._demand = demand
        self._reason = reason
        self._in_force = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._forget_timer()
        if not self._in_force:
            self._in_force = True
            self._demand.add(self._reason, 1)

    def begin_for(self, seconds: float) -> None:
        """Hold it for so long, or longer if an earlier call said so."""
        if self._in_force and self._timer is None:
            return
        loop = asyncio.get_running_loop()
        until_s = loop.time() + seconds
        if self._timer is not None:
            until_s = max(until_s, self._timer.when())
        self.begin()
        self._timer = loop.call_at(until_s, self.end)

    def end(self) -> None:
        self._forget_timer()
        if self._in_force:
            self._in_force = False
            self._demand.add(self._reason, -1)

    def __enter__(self) -> Lease:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
