"""Recordings: the stream on disk, one JSON message a line, gzip around it.

The first line is the stream's `Hello`. A writer that is killed leaves a file
that reads up to its last second; a damaged file reads up to the damage.
"""

from __future__ import annotations

import gzip
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import msgspec
from msgspec.structs import replace

from warpbook_monitors.errors import RecordingError
from warpbook_monitors.frames import (
    PROTOCOL_VERSION,
    Device,
    Devices,
    Event,
    Frame,
    Gap,
    Hello,
    Metric,
    Telemetry,
)
from warpbook_monitors.plain_file import check_plain
from warpbook_monitors.plain_text import bounded

#: bounds on hostile input; ten hours of eight GPUs at 10 Hz are below them
MAX_LINE_BYTES = 1_000_000
MAX_TOTAL_BYTES = 1_000_000_000
MAX_FRAMES = 400_000
MAX_DEVICES = 200
MAX_METRICS = 200
#: the year 2100: a later time is no time, and would break what reckons with it
MAX_TIME_MS = 4.1e12
_FLUSH_S = 1.0
#: small, because zlib gives nothing of the piece in which it meets damage
_CHUNK_BYTES = 512
_GZIP_MAGIC = b"\x1f\x8b"


class RecordingWriter:
    """Writes a recording; what is older than a second survives a kill."""

    def __init__(self, path: Path, hello: Hello) -> None:
        """Create the file, which must not be there yet.

        Raises:
            FileExistsError: a recording is never written over.
            OSError: the file can't be created.
        """
        self._file = path.open("xb")
        # the name and the time stay out of the file: they would tell about a person
        self._gzip = gzip.GzipFile("", "wb", fileobj=self._file, mtime=0)
        self._flushed_s = time.monotonic()
        self._encoder = msgspec.json.Encoder()
        self.frames = 0
        self.write(hello)
        self._flush()

    def write(self, message: Telemetry) -> None:
        """Append one message of the stream."""
        self._gzip.write(self._encoder.encode(message) + b"\n")
        self.frames += isinstance(message, Frame)
        if time.monotonic() - self._flushed_s >= _FLUSH_S:
            self._flush()

    def close(self) -> None:
        self._gzip.close()
        self._file.close()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _flush(self) -> None:
        self._gzip.flush()
        self._file.flush()
        self._flushed_s = time.monotonic()


@dataclass(frozen=True)
class Recording:
    """What could be read of a recording."""

    path: Path
    hello: Hello
    frames: list[Frame]
    #: the first thing that was wrong with the file, or None
    problem: RecordingError | None

    @property
    def duration_ms(self) -> float:
        """From the first frame to the last."""
        return self.frames[-1].time_ms - self.frames[0].time_ms


def read_recording(path: Path) -> Recording:
    """Read a recording, or as much of it as is good.

    Raises:
        RecordingError: there is no good frame in it.
        OSError: the file can't be opened.
    """
    reader = _LineReader(path)
    hello: Hello | None = None
    frames: list[Frame] = []
    problem: RecordingError | None = None
    clock = _Clock()
    number = 0
    for number, line in enumerate(reader.lines(), start=1):
        try:
            if hello is None:
                hello = _first(line)
                _check_version(hello)
                continue
            message = msgspec.json.decode(line, type=Telemetry)
            _check_message(message, hello, frames)
            if isinstance(message, Devices):
                devices = plain_devices(message.devices)
                hello = msgspec.structs.replace(hello, devices=devices)
            elif isinstance(message, Frame):
                frames.append(plain_frame(clock.put_right(message, frames)))
        except (ValueError, RecursionError, _Wrong) as error:
            # a bad byte is a ValueError, and what it says may quote it
            words = bounded(str(error) or "It is nested too deeply.", 300)
            problem = problem or RecordingError(str(path), number, words)
            if hello is None or len(frames) >= MAX_FRAMES:
                break
    if reader.damage:
        problem = problem or RecordingError(str(path), number + 1, reader.damage)
    if hello is None or not frames:
        raise problem or RecordingError(str(path), number + 1, "It has no frames.")
    return Recording(path, hello, frames, problem)


class _Wrong(Exception):
    """A line that is JSON and still not what a recording may hold."""


def _first(line: bytes) -> Hello:
    hello = msgspec.json.decode(line, type=Hello)
    _check_time(hello.time_ms)
    _check_devices(hello.devices)
    return msgspec.structs.replace(
        hello,
        version=bounded(hello.version, 40),
        devices=plain_devices(hello.devices),
        # what was not there then is not told now
        absences=(),
        replay=None,
    )


def _check_devices(devices: tuple[Device, ...]) -> None:
    if len(devices) > MAX_DEVICES:
        raise _Wrong(
            f"It has {len(devices)} devices, and at most {MAX_DEVICES} are allowed."
        )
    if any(len(device.metrics) > MAX_METRICS for device in devices):
        raise _Wrong(f"A device has more than {MAX_METRICS} metrics.")
    for device in devices:
        check_names(device)


def _check_version(hello: Hello) -> None:
    if hello.protocol > PROTOCOL_VERSION:
        raise _Wrong(
            f"It was made by warpbook {hello.version[:40]} with protocol "
            f"{hello.protocol}; this one knows protocol {PROTOCOL_VERSION}. Upgrade "
            "warpbook to see all of it; unknown parts are left out."
        )


def _check_time(time_ms: float) -> None:
    if not 0 <= time_ms <= MAX_TIME_MS:
        raise _Wrong(f"{time_ms:g} is not a Unix time in ms.")


def _check_message(message: Telemetry, hello: Hello, frames: list[Frame]) -> None:
    if isinstance(message, Hello):
        raise _Wrong("A second hello: two recordings in one file.")
    if isinstance(message, Gap | Event):
        return
    if isinstance(message, Devices):
        # new ones come last: the places of those before must hold
        if _columns(message.devices)[: len(hello.devices)] != _columns(hello.devices):
            raise _Wrong("The devices or their metrics changed.")
        _check_devices(message.devices)
        return
    if len(frames) >= MAX_FRAMES:
        raise _Wrong(f"It has more than {MAX_FRAMES:,} frames; these are the first.")
    _check_time(message.time_ms)
    for reading in message.readings:
        if not 0 <= reading.device < len(hello.devices):
            raise _Wrong(f"A reading of device {reading.device}, which does not exist.")
        wanted = len(hello.devices[reading.device].metrics)
        if reading.state == "ok" and len(reading.values) != wanted:
            raise _Wrong(f"{len(reading.values)} values instead of {wanted}.")


def _columns(devices: tuple[Device, ...]) -> list[tuple[str, list[str]]]:
    return [
        (device.id, [metric.name for metric in device.metrics]) for device in devices
    ]


class _Clock:
    """Puts the times of frames in a row where the clock was set back meanwhile."""

    def __init__(self) -> None:
        #: what is added since then
        self._shift_ms = 0.0

    def put_right(self, frame: Frame, before: Sequence[Frame]) -> Frame:
        """Give the frame with a time that is not before the last one's.

        Raises:
            _Wrong: it can't come after them.
        """
        if not before or frame.time_ms >= before[-1].time_ms:
            self._shift_ms = 0.0  # never set back, or right again
            return frame
        last = before[-1]
        if frame.seq <= last.seq:
            raise _Wrong("The time runs backwards.")
        if frame.time_ms + self._shift_ms < last.time_ms:
            step_ms = last.time_ms - before[-2].time_ms if len(before) > 1 else 0.0
            self._shift_ms = last.time_ms + step_ms - frame.time_ms
        time_ms = frame.time_ms + self._shift_ms
        _check_time(time_ms)
        return msgspec.structs.replace(frame, time_ms=time_ms)


class _LineReader:
    """Lines of a file that may be gzip, plain, cut off or damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        #: what ended the file early, in words; empty if nothing did
        self.damage = ""

    def lines(self) -> Iterator[bytes]:
        """Yield whole lines; an unfinished last one is damage."""
        rest = b""
        total = 0
        for chunk in self._chunks():
            total += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
            if len(rest) > MAX_LINE_BYTES or total > MAX_TOTAL_BYTES:
                self.damage = "It is larger than a recording may be."
                return
        if rest and not self.damage:
            self.damage = "It ends in the middle of a line."

    def _chunks(self) -> Iterator[bytes]:
        check_plain(self._path)
        with self._path.open("rb") as file:
            is_gzip = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if not is_gzip:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk
                return
            # zlib and not gzip: it gives what came before the damage
            inflate = zlib.decompressobj(wbits=31)
            while not inflate.eof:
                chunk = file.read(_CHUNK_BYTES)
                if not chunk:
                    self.damage = "It was cut off; everything before is intact."
                    return
                try:
                    yield inflate.decompress(chunk)
                except zlib.error as error:
                    self.damage = (
                        f"It is damaged ({error}); everything before is intact."
                    )
                    return


# what becomes an identifier must look like one; what is only shown becomes one line
_METRIC = re.compile(r"[a-z0-9_]{1,64}")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,119}")
_FACT = re.compile(r"[A-Za-z0-9_]{1,64}")
_MOST_FACTS = 200
_MOST_LETTERS = 200


def check_names(device: Device) -> None:
    """Refuse a device whose id, metrics or facts have names that can't be ours.

    Raises:
        ValueError: with the name.
    """
    if not _DEVICE.fullmatch(device.id):
        raise ValueError(f"{bounded(device.id)!r} is not a device id.")
    for metric in device.metrics:
        if not _METRIC.fullmatch(metric.name):
            raise ValueError(f"{bounded(metric.name)!r} is not a metric name.")
    if len({metric.name for metric in device.metrics}) < len(device.metrics):
        raise ValueError(f"{device.id} has two metrics with the same name.")
    if len(device.facts) > _MOST_FACTS:
        raise ValueError(f"{device.id} has more than {_MOST_FACTS} facts.")
    for name in device.facts:
        if not _FACT.fullmatch(name):
            raise ValueError(f"{bounded(name)!r} is not a name of a fact.")


def plain_devices(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Make what is shown of devices fit to show."""
    return tuple(
        replace(
            device,
            name=_plain(device.name),
            metrics=tuple(map(_plain_metric, device.metrics)),
            facts={
                name: _plain(fact) if isinstance(fact, str) else fact
                for name, fact in device.facts.items()
            },
        )
        for device in devices
    )


def plain_frame(frame: Frame) -> Frame:
    """Make a frame's label, and why readings are missing, fit to show."""
    label = frame.label
    if label is not None and not _is_plain(label):
        frame = replace(frame, label=_plain(label))
    if all(_is_plain(reading.why) for reading in frame.readings):
        return frame
    readings = tuple(
        replace(reading, why=_plain(reading.why)) for reading in frame.readings
    )
    return replace(frame, readings=readings)


def _plain_metric(metric: Metric) -> Metric:
    return replace(metric, label=_plain(metric.label), why=_plain(metric.why))


def _is_plain(text: str) -> bool:
    return len(text) <= _MOST_LETTERS and text.isprintable()


def _plain(text: str) -> str:
    return text if _is_plain(text) else bounded(text, _MOST_LETTERS)
