"""Finds data races: accesses to the same memory without a happens-before order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from warpbook_labs.engines.simulated.judging.graphs import Replayed
from warpbook_labs.engines.simulated.judging.memory import Span, Storage
from warpbook_labs.engines.simulated.judging.order import Lane
from warpbook_labs.engines.simulated.program import ProgramRefused

#: pairs of views that are compared in one program
MOST_COMPARISONS = 1_000_000
_PRUNE_ABOVE = 64
#: that are marked in the time of a comparison
_MARKED_BYTES = 256


def is_known(line: int) -> bool:
    return 0 < line < 1_000_000


def at(line: int) -> str:
    """Say where something was asked."""
    return f"line {line}" if is_known(line) else "a line that is not known"


_Key = tuple[int, bool, str, tuple[int, ...], tuple[int, ...], int]


@dataclass(frozen=True, eq=False)
class Access:
    """One read or write, by what of which line."""

    lane: Lane
    tick: int
    is_write: bool
    span: Span
    #: such as "a copy to the GPU"
    what: str
    line: int
    #: in which it was done; None: at once
    replay: Replayed | None = None

    @property
    def asker(self) -> Lane:
        """The stream that has to wait, as the host asked: a replay's, of a graph's."""
        return self.replay.lane if self.replay else self.lane

    @property
    def asked_line(self) -> int:
        """Where the host asked for it: a replay's line, not the capture's."""
        return self.replay.line if self.replay else self.line


def seen_from_outside(first: Access, second: Access) -> tuple[Access, Access]:
    """Leave out the replay where both are in it: only the capture can order them."""
    if first.replay is not None and first.replay is second.replay:
        return replace(first, replay=None), replace(second, replay=None)
    return first, second


class Accesses:
    """The accesses to each storage that somebody may still have to wait for."""

    def __init__(self, host: Lane) -> None:
        self._host = host
        self._of: dict[Storage, dict[_Key, Access]] = {}
        #: accesses of those who had the memory before
        self._before: dict[Storage, list[Access]] = {}
        self._comparisons = 0

    def note(self, access: Access) -> Access | None:
        """Note an access; give an earlier one that it should have waited for."""
        storage, lane = access.span.storage, access.lane
        noted = self._of.setdefault(storage, {})
        if len(noted) > _PRUNE_ABOVE:
            self._prune(noted)
        conflict = None
        self._count(len(noted), access)
        if access.span.array.size:
            for other in noted.values():
                if (
                    (access.is_write or other.is_write)
                    and not lane.has_seen(other.lane.number, other.tick)
                    and self._overlap(access, other)
                ):
                    conflict = other
                    break
        view = access.span.view
        key = (
            lane.number,
            access.is_write,
            view.dtype,
            view.shape,
            view.strides,
            view.offset,
        )
        noted[key] = access
        return conflict

    def not_awaited(self, storage: Storage, by: Lane) -> list[Access]:
        """Give the accesses to a storage that a lane has not waited for."""
        both = (*self._of.get(storage, {}).values(), *self._before.get(storage, ()))
        return [
            access
            for access in both
            if not by.has_seen(access.lane.number, access.tick)
        ]

    def inherit(self, storage: Storage, accesses: Iterable[Access]) -> None:
        """Say who used a new storage's memory when it was another's."""
        self._before[storage] = list(accesses)

    def of_before(self, access: Access) -> Access | None:
        """Give an access of the memory's last owner that is still going on."""
        before = self._before.get(access.span.storage)
        for other in before or ():
            if (access.is_write or other.is_write) and not access.lane.has_seen(
                other.lane.number, other.tick
            ):
                return other
        return None

    def forget(self, storage: Storage) -> None:
        """Nobody can access a storage any more."""
        self._of.pop(storage, None)
        self._before.pop(storage, None)

    def all_is_done(self) -> None:
        """All is in an order with what comes."""
        self._of.clear()
        self._before.clear()

    def _overlap(self, one: Access, other: Access) -> bool:
        is_certain = one.span.overlaps(other.span)
        if is_certain is not None:
            return is_certain
        self._count(one.span.storage.size_bytes // _MARKED_BYTES, one)
        return one.span.touches(other.span)

    def _count(self, comparisons: int, of: Access) -> None:
        self._comparisons += comparisons
        if self._comparisons > MOST_COMPARISONS:
            raise ProgramRefused(
                f"{at(of.asked_line).capitalize()}: more pieces of the same memory are "
                "in use at one time than can be followed: wait for a stream now and "
                "then, or copy larger pieces."
            )

    def _prune(self, noted: dict[_Key, Access]) -> None:
        host = self._host
        done = [
            k
            for k, access in noted.items()
            if host.has_seen(access.lane.number, access.tick)
        ]
        for key in done:
            del noted[key]
