"""`%gpu`: what every GPU does now, as a small table."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import queue
import time

from IPython.core.magic_arguments import magic_arguments, parse_argstring
from IPython.display import display

from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.kernel.telemetry.state_text import state_html, state_text
from warpbook.protocol import PROTOCOL_VERSION, StateNow
from warpbook_monitors._version import __version__
from warpbook_monitors.frames import Frame

#: GPM needs two samples at least 100 ms apart
_LEAST_FRAMES = 3
#: a device that has given nothing by then is shown without figures
_READ_TIMEOUT_S = 2.0


class Gpu:
    """The magic, and the server that it asks first."""

    def __init__(self, link: ServerLink) -> None:
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
    """Return what this machine's devices do now, read without a server."""
    from warpbook_monitors.open_sources import live_sources
    from warpbook_monitors.sampling.reader import UNREAD
    from warpbook_monitors.sampling.sampler import Sampler

    sampler = Sampler(live_sources())
    frames: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    sampler.listen(lambda it: frames.put(it) if isinstance(it, Frame) else None)
    sampler.open()
    try:
        deadline_s = time.monotonic() + _READ_TIMEOUT_S
        with sampler.watch("%gpu"):
            for _ in range(_LEAST_FRAMES):
                frame = frames.get()
            while UNREAD in {it.why for it in frame.readings}:
                if time.monotonic() > deadline_s:
                    break
                frame = frames.get()
    finally:
        sampler.close()
    return StateNow(
        protocol=PROTOCOL_VERSION,
        version=__version__,
        devices=sampler.devices,
        absences=sampler.absences,
        replay=None,
        frame=frame,
    )
