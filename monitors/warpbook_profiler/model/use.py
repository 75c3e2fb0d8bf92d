"""What a process took of the CPU, as it travels to every view; it needs no NumPy."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from warpbook_profiler.model.bare_run import BareTimes

# a trace may come from anyone
_Ns = Annotated[int, Meta(ge=0, le=2**53)]
_Count = Annotated[int, Meta(ge=1, le=1_000_000)]
#: of traces that warpbook saves: the key that this stands under
KEY = "warpbook_cpu"
#: and the key of when Python collected all garbage: from the code's begin, how long
COLLECTIONS_KEY = "warpbook_collections"
Collections = Annotated[tuple[tuple[_Ns, _Ns], ...], Meta(max_length=10_000)]


class CpuUse(Struct, frozen=True):
    """What the operating system counted of one run; times are in ns."""

    #: from the code's begin to its end
    wall_ns: _Ns
    #: of the thread that ran the code, and of all threads of the process
    thread_ns: _Ns
    process_ns: _Ns
    #: the thread could have run and had no core: others used them; None where the
    #: system does not tell
    queued_ns: _Ns | None
    #: that torch divides one operator among
    threads: _Count
    #: that the process may use
    cores: _Count


class CpuTime(Struct, frozen=True):
    """Where the time of the thread that ran the code went; the parts sum to it."""

    window_ns: int
    #: in the iterator of a DataLoader
    loading_ns: int
    #: in operators that do much at once
    operators_ns: int
    #: in operators that do little, and the interpreter's short steps between them
    small_calls_ns: int
    #: outside operators, in the interpreter as far as is known
    python_ns: int
    #: outside operators, asleep or waiting; None where the system does not tell
    waiting_ns: int | None
    #: without a core to run on, as far as is known
    lost_ns: int
    #: outside operators, while a backend such as Gloo worked on a collective
    communication_ns: int
    #: outermost operators, and those of them that do little
    calls: int
    small_calls: int
    #: None in a trace that does not tell
    use: CpuUse | None = None
    #: runs of the same code without the profiler; None where none was timed
    bare: BareTimes | None = None

    @property
    def judged_ns(self) -> int:
        """Give the time that causes are shares of: without what others took."""
        return self.window_ns - self.lost_ns

    @property
    def cores_used(self) -> float | None:
        """Give how many cores the process kept busy on average."""
        if self.use is None or not self.use.wall_ns:
            return None
        return self.use.process_ns / self.use.wall_ns

    @property
    def queued_share(self) -> float:
        """Give the share of the time in which the thread had no core to run on."""
        use = self.use
        if use is None or use.queued_ns is None or not use.wall_ns:
            return 0.0
        return min(use.queued_ns / use.wall_ns, 1.0)
