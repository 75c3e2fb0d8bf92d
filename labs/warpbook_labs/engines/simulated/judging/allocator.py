"""PyTorch's allocator, as far as mistakes can be made with it.

Memory that Python releases is given out again to the stream that it was made for, at
once: work of that stream comes later anyhow. Work of other streams does not, unless the
stream waits for it, or the allocator was told by `record_stream`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from warpbook_labs.engines.simulated.judging.accesses import Access, Accesses
from warpbook_labs.engines.simulated.judging.memory import Storage
from warpbook_labs.engines.simulated.judging.order import Lane, Lanes

#: sizes are rounded up to this
_ROUND_BYTES = 512
#: larger tensors come from blocks of their own kind
_SMALL_BYTES = 1 << 20
#: of one stream
_MOST_BLOCKS = 256

_Pool = tuple[int | None, int, bool]


@dataclass
class _Block:
    """Released memory that somebody may still be using."""

    size_bytes: int
    by: list[Access]
    #: whose next storage may have it before that is done; None: nobody's
    pool: _Pool | None = None


@dataclass
class _GraphMemory:
    """A graph's own memory: what it once took is kept until the graph is gone."""

    taken_bytes: int = 0
    alive_bytes: int = 0
    #: taken, and released while the graph was captured
    free_bytes: dict[_Pool, int] = field(default_factory=dict)
    is_gone: bool = False

    def take(self, pool: _Pool, size_bytes: int) -> None:
        """Have a new storage, in what was released if there is enough of it."""
        free_bytes = self.free_bytes.get(pool, 0)
        again_bytes = min(free_bytes, size_bytes)
        self.free_bytes[pool] = free_bytes - again_bytes
        self.taken_bytes += size_bytes - again_bytes
        self.alive_bytes += size_bytes

    def give_back(self, pool: _Pool, size_bytes: int, is_used: bool) -> None:
        """Release a storage; what other streams use is not given out again."""
        self.alive_bytes -= size_bytes
        if not is_used:
            self.free_bytes[pool] = self.free_bytes.get(pool, 0) + size_bytes

    @property
    def held_bytes(self) -> int:
        """Say how much nobody else can have."""
        return self.alive_bytes if self.is_gone else self.taken_bytes


class Allocator:
    """Released memory of the GPU, and how much is in use."""

    def __init__(self, lanes: Lanes, accesses: Accesses) -> None:
        self._lanes = lanes
        self._accesses = accesses
        self._blocks: dict[_Pool, list[_Block]] = {}
        self._alive_bytes = 0
        self._kept: list[_Block] = []
        #: what the host knew when they were last looked at
        self._known: dict[int, int] = {}
        self._graphs: dict[int, _GraphMemory] = {}
        self.held_bytes = 0
        #: what the lines made that was held when it was most
        self.held_by_line: Counter[int] = Counter()
        self._by_line: Counter[int] = Counter()

    def count_new(self, storage: Storage) -> None:
        size_bytes, pool = _rounded(storage.size_bytes), _pool(storage)
        self._forget_what_is_done()
        if storage.graph is not None:
            graph = self._graphs.setdefault(storage.graph, _GraphMemory())
            graph.take(pool, size_bytes)
        else:
            self._alive_bytes += size_bytes
            own = [block for block in self._kept if block.pool == pool]
            fitting = [block for block in own if block.size_bytes >= size_bytes]
            if fitting:
                min(
                    fitting, key=lambda block: block.size_bytes
                ).size_bytes -= size_bytes
        self._by_line[storage.line] += size_bytes
        in_use_bytes = self._in_use_bytes()
        if in_use_bytes > self.held_bytes:
            self._hold(in_use_bytes)

    def count_released(self, storage: Storage) -> None:
        """Take into account that a storage is let go of."""
        size_bytes = _rounded(storage.size_bytes)
        self._by_line[storage.line] -= size_bytes
        if storage.graph is not None:
            is_used = bool(storage.used_on - {storage.stream})
            graph = self._graphs[storage.graph]
            graph.give_back(_pool(storage), size_bytes, is_used)
            return
        self._alive_bytes -= size_bytes
        using = self._accesses.not_awaited(storage, self._lanes.host)
        known = [access for access in using if access.lane.stream in storage.used_on]
        if using:
            pool = None if known else _pool(storage)
            self._kept.append(_Block(size_bytes, known or using, pool))

    def give_out(self, storage: Storage) -> None:
        """Find memory for a new storage that somebody may still be using."""
        size_bytes = _rounded(storage.size_bytes)
        blocks = self._blocks.get(_pool(storage), [])
        fitting = [
            candidate for candidate in blocks if candidate.size_bytes >= size_bytes
        ]
        if not fitting:
            self._accesses.inherit(storage, ())
            return
        block = min(fitting, key=lambda candidate: candidate.size_bytes)
        blocks.remove(block)
        self._accesses.inherit(storage, block.by)
        rest_bytes = block.size_bytes - size_bytes
        is_small = size_bytes <= _SMALL_BYTES
        if rest_bytes >= _ROUND_BYTES if is_small else rest_bytes > _SMALL_BYTES:
            blocks.append(_Block(rest_bytes, block.by))

    def take_back(self, storage: Storage) -> None:
        """Let a storage's memory be given out again."""
        lane = self._lanes.of(storage.stream, storage.graph)
        # what the next owner does on this stream comes after all that the host knows
        user = Lane(lane.number, lane.stream, lane.name, dict(lane.clock))
        user.know(self._lanes.host.clock)
        using = [
            access
            for access in self._accesses.not_awaited(storage, user)
            if access.lane.stream not in storage.used_on
        ]
        if using:
            blocks = self._blocks.setdefault(_pool(storage), [])
            blocks.append(_Block(_rounded(storage.size_bytes), using))
            del blocks[:-_MOST_BLOCKS]

    def all_is_done(self) -> None:
        self._blocks.clear()
        self._kept.clear()
        self._hold(self._in_use_bytes())

    def forget_graph(self, number: int) -> None:
        """Take into account that a graph's memory is nobody's but its tensors'."""
        self._graphs.setdefault(number, _GraphMemory()).is_gone = True

    def _hold(self, size_bytes: int) -> None:
        self.held_bytes, self.held_by_line = size_bytes, self._by_line.copy()

    def _in_use_bytes(self) -> int:
        kept_bytes = sum(block.size_bytes for block in self._kept)
        of_graphs = sum(graph.held_bytes for graph in self._graphs.values())
        return self._alive_bytes + kept_bytes + of_graphs

    def _forget_what_is_done(self) -> None:
        """Keep the blocks only that the host does not know to be done with."""
        clock = self._lanes.host.clock
        if clock != self._known:
            self._known = dict(clock)
            self._kept = [block for block in self._kept if self._is_in_use(block)]

    def _is_in_use(self, block: _Block) -> bool:
        host = self._lanes.host
        return not all(
            host.has_seen(access.lane.number, access.tick) for access in block.by
        )


def _rounded(size_bytes: int) -> int:
    return -(-size_bytes // _ROUND_BYTES) * _ROUND_BYTES


def _pool(storage: Storage) -> _Pool:
    return (storage.graph, storage.stream, storage.size_bytes <= _SMALL_BYTES)
