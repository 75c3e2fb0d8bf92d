"""Plays the GPUs of a recording, over and over, as if they were read now."""

from __future__ import annotations

import bisect
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec

from warpbook_monitors.errors import NoReading, RecordingError, Unavailable
from warpbook_monitors.frames import Absence, Device, Frame, Reading, Replay
from warpbook_monitors.recordings.recording import Recording, read_recording
from warpbook_monitors.source import Discovery

#: the recording that ships with warpbook
SHIPPED = Path(__file__).parent / "h200.jsonl.gz"


class ReplaySource:
    """Gives the GPUs of one recording; hosts in it are left out."""

    what = "Replay"

    def __init__(self, path: Path) -> None:
        """Name the file; it is read when the source is opened."""
        self._path = path

    def open(self) -> Discovery:
        """Read the recording and start to play it.

        Raises:
            Unavailable: the file can't be opened, has nothing good in it, or
                holds no GPU.
        """
        try:
            recording = read_recording(self._path)
        except RecordingError as error:
            raise Unavailable("Replay", "unknown", str(error)) from error
        except OSError as error:
            raise Unavailable(
                "Replay", "unknown", f"{self._path}: {error.strerror or error}."
            ) from error
        gpus = [
            position
            for position, device in enumerate(recording.hello.devices)
            if device.kind in ("gpu", "mig")
        ]
        if not gpus:
            raise Unavailable(
                "Replay", "no_device", f"{self._path} holds no readings of a GPU."
            )
        playing = Playback(recording, time.monotonic_ns())
        probes = [ReplayProbe(playing, position) for position in gpus]
        return Discovery(
            probes,
            absences=_told(recording),
            replay=Replay(
                name=self._path.name,
                recorded_ms=recording.hello.time_ms,
                duration_ms=recording.duration_ms,
                description=_description(recording),
            ),
            label_at=playing.label,
            played_at=partial(_played, probes),
        )

    def close(self) -> None:
        """Nothing to give back."""


class Playback:
    """Where the playing of a recording stands; shared by its GPUs."""

    def __init__(self, recording: Recording, begin_ns: int) -> None:
        """Begin at `begin_ns` of `time.monotonic_ns()`."""
        self.recording = recording
        self._begin_ns = begin_ns
        first_ms = recording.frames[0].time_ms
        self._offsets_ms = [frame.time_ms - first_ms for frame in recording.frames]
        # one more tick, so that the last frame is seen before the first comes again
        self._loop_ms = self._offsets_ms[-1] + 100
        # half of the frames are at least this close: a recording tells its own pace
        steps_ms = sorted(b - a for a, b in pairwise(self._offsets_ms)) or [100.0]
        self._hole_ms = 3 * max(steps_ms[len(steps_ms) // 2], 100.0)

    def frame(self, now_ns: int) -> Frame | None:
        """The frame that is played now; None in a hole of the recording."""
        at_ms = (now_ns - self._begin_ns) / 1e6 % self._loop_ms
        place = max(bisect.bisect_right(self._offsets_ms, at_ms) - 1, 0)
        if at_ms - self._offsets_ms[place] > self._hole_ms:
            return None
        return self.recording.frames[place]

    def label(self, now_ns: int) -> str | None:
        """What the machine was doing at this place."""
        frame = self.frame(now_ns)
        return frame.label if frame else None


class ReplayProbe:
    """Reads one device of a recording at the place where the playing stands."""

    def __init__(self, playing: Playback, position: int) -> None:
        """Play the device at `position` of the recording."""
        device = playing.recording.hello.devices[position]
        self.device: Device = msgspec.structs.replace(device, origin="replay")
        self._playing = playing
        self._position = position

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Give what was read at this place of the recording.

        Raises:
            NoReading: it was lost, stale, ... there, or there is a hole.
        """
        frame = self._playing.frame(now_ns)
        for reading in frame.readings if frame else ():
            if reading.device != self._position:
                continue
            if reading.state == "ok":
                return reading.values
            raise NoReading(f"When this was recorded: {reading.why}", reading.state)
        raise NoReading("Nothing was recorded at this time.")

    def rest(self) -> None:
        """Nothing spans a rest: the recording plays on."""


def _played(probes: Sequence[ReplayProbe], at_ns: int) -> tuple[Reading, ...]:
    readings = []
    for place, probe in enumerate(probes):
        try:
            readings.append(Reading(place, "ok", probe.read(at_ns)))
        except NoReading as error:
            readings.append(Reading(place, error.state, (), str(error)))
    return tuple(readings)


def _told(recording: Recording) -> tuple[Absence, ...]:
    if recording.problem is None:
        return ()
    return (
        Absence(
            f"A part of the recording {recording.path.name}",
            "unknown",
            str(recording.problem),
            "The intact part is played.",
        ),
    )


def _description(recording: Recording) -> str:
    gpus = [device.name for device in recording.hello.devices if device.kind == "gpu"]
    kinds = ", ".join(f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus))
    seconds = recording.duration_ms / 1000
    return f"{kinds}, {seconds:.0f} s, recorded with warpbook {recording.hello.version}"
