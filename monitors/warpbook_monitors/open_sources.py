"""Which sources a program reads: what this machine has, or a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpbook_monitors.host import HostSource
from warpbook_monitors.installed_sources import InstalledSources
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.recordings.replay import SHIPPED, ReplaySource
from warpbook_monitors.source import Source

#: what the sampler plays where no source has a GPU
SHIPPED_RECORDING = ReplaySource(SHIPPED)


def live_sources() -> Sequence[Source]:
    """Return the GPUs, NVML's and those of installed packages, and the host."""
    return [NvmlSource(), InstalledSources(), HostSource()]


def replay_sources(path: Path) -> Sequence[Source]:
    """Return the GPUs of a recording, beside the real host."""
    return [ReplaySource(path), HostSource()]
