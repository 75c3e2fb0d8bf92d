"""`%gpu`: what every GPU does now, as a small table."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import time
from collections.abc import Sequence

from IPython.core.magic_arguments import magic_arguments, parse_argstring
from IPython.display import display

from warpbook._version import __version__
from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.kernel.telemetry.state_text import state_html, state_text
from warpbook.protocol import PROTOCOL_VERSION, StateNow
from warpbook_monitors.errors import DeviceLost, Unavailable
from warpbook_monitors.frames import Absence, Device, Frame, Reading
from warpbook_monitors.open_sources import live_sources
from warpbook_monitors.source import Probe, Source

#: GPM needs two samples at least 100 ms apart.
_BETWEEN_READS_S = 0.12


class Gpu:
    """The magic, and the server that it asks first."""

    def __init__(self, link: ServerLink) -> None:
        """Remember whom to ask."""
        self._link = link

    @magic_arguments()
    def gpu(self, line: str) -> None:
        """Print what every GPU does now: what the chip does beside "utilization"."""
        parse_argstring(Gpu.gpu, line)
        try:
            state = self._link.state()
            source = "Read by the Jupyter server."
        except LinkError as problem:
            state = read_here()
            source = f"Read here, in the kernel. {problem}"
        text, html = state_text(state, source), state_html(state, source)
        display({"text/plain": text, "text/html": html}, raw=True)


def read_here() -> StateNow:
    """Read this machine's devices once, without a server."""
    absences: list[Absence] = []
    probes: list[Probe] = []
    opened: list[Source] = []
    try:
        for source in live_sources():
            opened.append(source)
            try:
                here = source.open()
            except Unavailable as problem:
                absences.append(problem.absence)
                continue
            probes += here.probes
            absences += here.absences
        _read(probes)
        time.sleep(_BETWEEN_READS_S)
        readings = _read(probes)
        devices: Sequence[Device] = [probe.device for probe in probes]
    finally:
        for source in opened:
            source.close()
    return StateNow(
        protocol=PROTOCOL_VERSION,
        version=__version__,
        devices=tuple(devices),
        absences=tuple(absences),
        replay=None,
        frame=Frame(0, time.time() * 1e3, readings),
    )


def _read(probes: Sequence[Probe]) -> tuple[Reading, ...]:
    now_ns = time.monotonic_ns()
    readings = []
    for position, probe in enumerate(probes):
        try:
            readings.append(Reading(position, "ok", probe.read(now_ns)))
        except DeviceLost as problem:
            readings.append(Reading(position, "lost", why=str(problem)))
    return tuple(readings)
