"""Streams and events, as `torch.cuda` has them."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NoReturn

from warpbook_labs.simulated.program import DEFAULT_STREAM
from warpbook_labs.simulated.recording.devices import CUDA, Device, device_of
from warpbook_labs.simulated.recording.recorder import Recorder, current
from warpbook_labs.simulated.recording.refusing import Told, refuse

#: PyTorch hands out so many streams, of each priority, and then the first again
_POOL = 32


class Stream(Told):
    """A queue of work for the GPU."""

    _spoken = "torch.cuda.Stream"
    device_index = 0

    def __init__(self, device: object = None, priority: int = 0, **kwargs: Any) -> None:
        """Take the next of the pool."""
        del device
        self._recorder = current()
        self.priority = -1 if priority < 0 else 0
        if "stream_id" in kwargs:
            self.stream_id: int = kwargs["stream_id"]
            return
        pool = "streams of high priority" if self.priority else "streams"
        first = 1 + _POOL * bool(self.priority)
        self.stream_id = first + self._recorder.number_of(pool) % _POOL

    @property
    def cuda_stream(self) -> int:
        """What stands for its address."""
        return self.stream_id

    @property
    def device(self) -> Device:
        """The GPU."""
        return CUDA

    @staticmethod
    def priority_range() -> NoReturn:
        """The lowest and the highest priority."""
        refuse("torch.cuda.Stream.priority_range")

    def __eq__(self, other: object) -> bool:
        """Compare their numbers."""
        return isinstance(other, Stream) and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        """Take its number."""
        return hash(self.stream_id)

    def __repr__(self) -> str:
        """Show it as PyTorch does."""
        return f"<torch.cuda.Stream device=cuda:0 cuda_stream={self.stream_id:#x}>"

    def wait_event(self, event: Event) -> None:
        """What it is given later waits for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What it is given later waits for all that another stream was given."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Mark what it was given so far."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def synchronize(self) -> None:
        """The host waits for it."""
        current().synchronize_stream(self.stream_id)

    def query(self) -> NoReturn:
        """Whether all is done."""
        _unknown("Whether a stream has done its work", "use `synchronize()`")

    def __enter__(self) -> Stream:
        """Become the current stream."""
        self._recorder.entered.append(self._recorder.stream)
        self._recorder.stream = self.stream_id
        return self

    def __exit__(self, *problem: object) -> None:
        """Give the place back."""
        self._recorder.stream = self._recorder.entered.pop()


class Event(Told):
    """A mark in a stream."""

    _spoken = "torch.cuda.Event"

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        """Begin without a mark."""
        del enable_timing, blocking, interprocess, external
        self._number = current().number_of("event")

    def record(self, stream: Stream | None = None) -> None:
        """Mark what a stream was given so far; anew each time."""
        recorder = current()
        number = recorder.stream if stream is None else stream.stream_id
        recorder.record_event(self._number, number)

    def wait(self, stream: Stream | None = None) -> None:
        """What a stream is given later waits for it."""
        recorder = current()
        number = recorder.stream if stream is None else stream.stream_id
        recorder.wait_event(self._number, number)

    def synchronize(self) -> None:
        """The host waits for it."""
        current().synchronize_event(self._number)

    def query(self) -> NoReturn:
        """Whether it has come."""
        _unknown("Whether an event has come", "use `synchronize()`")

    def elapsed_time(self, end_event: Event) -> NoReturn:
        """Milliseconds between two."""
        del end_event
        _unknown("The time between two events", "leave the timing out here")


def _unknown(what: str, instead: str) -> NoReturn:
    line = current().line()
    where = f" (line {line})" if line else ""
    raise RuntimeError(
        f"{what} is not known without a GPU{where}: the simulated GPU decides when all "
        f"has been asked; {instead}."
    )


class DeviceEvent(Event):
    """`torch.Event`, which names a device first."""

    def __init__(
        self,
        device: Device | str | int | None = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        """Begin without a mark."""
        # PyTorch takes the accelerator, where there is one
        if device is not None and device_of(device) != CUDA:
            refuse("torch.Event of the processor", "Say device='cuda'. ")
        super().__init__(enable_timing, blocking, interprocess)


class StreamContext:
    """`torch.cuda.stream(s)`: what is asked meanwhile goes to the stream."""

    def __init__(self, stream: Stream | None) -> None:
        """Name the stream; None changes nothing."""
        self.stream = stream

    def __enter__(self) -> None:
        """Make it the current stream."""
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Go back to the stream before."""
        if self.stream is not None:
            self.stream.__exit__()


def _stream(recorder: Recorder, number: int) -> Stream:
    priority = -1 if number > _POOL else 0
    return Stream(priority=priority, stream_id=number)


def current_stream(device: object = None) -> Stream:
    """The stream to which work goes now."""
    del device
    recorder = current()
    return _stream(recorder, recorder.stream)


def default_stream(device: object = None) -> Stream:
    """The stream that is there at first."""
    del device
    return _stream(current(), DEFAULT_STREAM)


def set_stream(stream: Stream) -> None:
    """Work goes to this stream from now on."""
    current().stream = stream.stream_id
