"""Which sources a program reads: this machine's GPUs, or a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from warpbook_monitors.errors import Unavailable
from warpbook_monitors.host import HostSource
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.recordings.replay import SHIPPED, ReplaySource
from warpbook_monitors.source import Opened, Source


def live_sources() -> Sequence[Source]:
    """The GPUs and the host, and nothing else."""
    return [NvmlSource(), HostSource()]


def replay_sources(path: Path) -> Sequence[Source]:
    """The GPUs of a recording, beside the real host."""
    return [ReplaySource(path), HostSource()]


def default_sources() -> Sequence[Source]:
    """The GPUs if there are any, else the shipped recording; and the host."""
    return [GpusOrRecording(NvmlSource(), ReplaySource(SHIPPED)), HostSource()]


class GpusOrRecording:
    """Plays a recording where no GPU can be read, and says why; not while one hangs."""

    def __init__(self, gpus: Source, recording: Source) -> None:
        """Try `gpus` first."""
        self.what = gpus.what
        self._gpus = gpus
        self._recording = recording

    def open(self) -> Opened:
        """Open the one or the other; the GPUs' absence is told with the recording."""
        try:
            return self._gpus.open()
        except Unavailable as error:
            opened = self._recording.open()
            return replace(opened, absences=(error.absence, *opened.absences))

    def close(self) -> None:
        """Close both; the one that never opened has nothing to give back."""
        self._gpus.close()
        self._recording.close()
