"""`torch.cuda` of one GPU; its own `graph` and `make_graphed_callables` stay."""

from __future__ import annotations

import contextlib
from typing import Any, NoReturn

import torch

from warpbook_labs.engines.simulated.program import DEFAULT_STREAM, Launch
from warpbook_labs.engines.simulated.pytorch import current
from warpbook_labs.engines.simulated.pytorch.current import refuse, where
from warpbook_labs.engines.simulated.pytorch.order import Graph
from warpbook_labs.errors import Missing

#: PyTorch hands out so many streams, of each priority, and then the first again
_POOL = 32
_CUDA = 1


class Stream(torch.Stream):  # type: ignore[misc]
    """A queue of work for the GPU."""

    def __new__(
        cls, device: Any = None, priority: int = 0, stream_id: Any = None, **_: Any
    ) -> Any:
        """Take the next of the pool, or a stream by its number."""
        if stream_id is None:
            pool = "streams of high priority" if priority < 0 else "streams"
            number = current.machine().record.number_of(pool)
            stream_id = 1 + _POOL * (priority < 0) + number % _POOL
        return super().__new__(
            cls, stream_id=stream_id, device_index=0, device_type=_CUDA
        )

    @property
    def priority(self) -> int:
        return -1 if self.stream_id > _POOL else 0

    @property
    def cuda_stream(self) -> int:
        return int(self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -1

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def synchronize(self) -> None:
        current.machine().order.synchronize_stream(self.stream_id)

    def is_capturing(self) -> bool:
        return bool(current.machine().order.is_capturing(self.stream_id))

    def query(self) -> NoReturn:
        _unknown("Whether a stream has done its work", "use `synchronize()`")

    def __repr__(self) -> str:
        """Show it as PyTorch does."""
        return f"<torch.cuda.Stream device=cuda:0 cuda_stream={self.stream_id:#x}>"

    def __enter__(self) -> Stream:
        """Become the current stream."""
        record = current.machine().record
        self._before = [*getattr(self, "_before", ()), record.stream]
        record.stream = self.stream_id
        return self

    def __exit__(self, *problem: object) -> None:
        """Give the place back."""
        current.machine().record.stream = self._before.pop()


class Event:
    """A mark in a stream."""

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        del enable_timing, blocking, interprocess, external
        self._number = current.machine().record.number_of("event")

    def record(self, stream: Any = None) -> None:
        """Mark what a stream was given so far; anew each time."""
        machine = current.machine()
        machine.order.record_event(self._number, _number(stream, machine))

    def wait(self, stream: Any = None) -> None:
        """What a stream is given later waits for it."""
        machine = current.machine()
        machine.order.wait_event(self._number, _number(stream, machine))

    def synchronize(self) -> None:
        current.machine().order.synchronize_event(self._number)

    def query(self) -> NoReturn:
        _unknown("Whether an event has come", "use `synchronize()`")

    def elapsed_time(self, end_event: Event) -> NoReturn:
        del end_event
        _unknown("The time between two events", "leave the timing out here")


class DeviceEvent(Event):
    """`torch.Event`, which names a device first."""

    def __init__(self, device: Any = None, **options: Any) -> None:
        if device is not None and torch.device(device).type != "cuda":
            refuse("events of another device")
        super().__init__(**options)


class CUDAGraph:
    """Work that is captured once and launched as a whole."""

    _graph: Graph | None = None
    _is_whole = False
    _machine: Any = None

    def __init__(self, keep_graph: bool = False) -> None:
        del keep_graph

    def __del__(self) -> None:
        """Say that nobody holds it any more."""
        self.reset()

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global", **_: Any
    ) -> None:
        """What the current stream is given from now on is kept."""
        if self._graph is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a "
                "new graph, create a new instance or call reset()."
            )
        self._machine = current.machine()
        is_relaxed = capture_error_mode == "relaxed"
        self._graph = self._machine.order.begin_capture(is_relaxed)

    def capture_end(self) -> None:
        if self._graph is None or self._is_whole:
            raise RuntimeError("capture_end() needs a capture_begin()")
        self._machine.order.end_capture(self._graph)
        self._is_whole = True

    def instantiate(self) -> None:
        """Make it ready, which it is."""

    def replay(self) -> None:
        if self._graph is None or not self._is_whole:
            raise RuntimeError(
                "Called CUDAGraph::replay without a preceding successful capture."
            )
        with current_modes_off():
            current.machine().order.replay(self._graph)

    def reset(self) -> None:
        if self._graph is not None and self._is_whole:
            self._machine.order.release_graph(self._graph)
        self._graph, self._is_whole = None, False

    def pool(self) -> tuple[int, int]:
        return (0, 1)


def current_modes_off() -> Any:
    """Let the CPU compute, with nothing recorded and no gradients."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.utils._python_dispatch._disable_current_modes())
    stack.enter_context(torch.no_grad())
    return stack


class StreamContext:
    """`torch.cuda.stream(s)`: what is asked meanwhile goes to the stream."""

    def __init__(self, stream: Stream | None) -> None:
        """Name the stream; None changes nothing."""
        self.stream = stream

    def __enter__(self) -> None:
        """Make it the current stream."""
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *problem: object) -> None:
        """Go back to the stream before."""
        if self.stream is not None:
            self.stream.__exit__(*problem)


def _number(stream: Any, machine: Any) -> int:
    return int(machine.record.stream if stream is None else stream.stream_id)


def _unknown(what: str, instead: str) -> NoReturn:
    raise Missing(
        f"{what} is not known without a GPU{where()}: the simulated GPU decides when "
        f"all has been asked; {instead}."
    )


def current_stream(device: Any = None) -> Stream:
    """The stream to which work goes now."""
    stream: Stream = Stream(stream_id=current.machine().record.stream)
    return stream


def default_stream(device: Any = None) -> Stream:
    """The stream that is there at first."""
    stream: Stream = Stream(stream_id=DEFAULT_STREAM)
    return stream


def set_stream(stream: Stream) -> None:
    """Work goes to this stream from now on."""
    current.machine().record.stream = stream.stream_id


def synchronize(device: Any = None) -> None:
    current.machine().order.synchronize_device()


def _sleep(cycles: float) -> None:
    machine = current.machine()
    record = machine.record
    launch = Launch("sleep", record.stream, (), (), (float(cycles),), record.line())
    machine.add(launch)


def is_current_stream_capturing() -> bool:
    """Whether what is asked now is kept for a graph."""
    return current.machine().order.captured is not None


class Generator(torch._C.Generator):  # type: ignore[misc]
    """`torch.Generator`, which draws on the CPU for a GPU, too."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls)


def _seed(number: int) -> None:
    torch.default_generator.manual_seed(number)


def _idle(*_: Any, **__: Any) -> int:
    return 0


def install() -> None:
    """Put all of it in the place of PyTorch's own."""
    says: dict[str, Any] = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *_, **__: True,
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "graph_pool_handle": lambda: (0, 1),
        "stream": StreamContext,
        "_sleep": _sleep,
    }
    for replacement in (
        *(Stream, Event, CUDAGraph, StreamContext, current_stream, default_stream),
        *(set_stream, synchronize, is_current_stream_capturing),
    ):
        says[replacement.__name__] = replacement
    parts = ("graphs", "memory", "random", "streams")
    for module in (torch.cuda, *(getattr(torch.cuda, part) for part in parts)):
        for name, said in says.items():
            if module is torch.cuda or hasattr(module, name):
                setattr(module, name, said)
    for name in ("mark", "range_end", "range_pop", "range_push", "range_start"):
        setattr(torch.cuda.nvtx, name, _idle)
    torch.Event, torch.Generator = DeviceEvent, Generator
    torch._C._accelerator_getStream = lambda device: current_stream()
