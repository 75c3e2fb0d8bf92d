"""What stays of a Monitor in a saved notebook: its figures when its cell ran.

The live charts need the widget's model, which ends with its kernel. JupyterLab then
shows this HTML in their place (`frontend/src/notebook/monitor_picture.ts`), and so
does what shows notebooks without widgets.
"""

from __future__ import annotations

import time
from html import escape

from msgspec.structs import replace

from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.kernel.telemetry.state_text import state_html
from warpbook.protocol import StateNow

#: tells JupyterLab that the HTML beside it is what a widget of ours showed
MIME = "application/vnd.warpbook.monitor+json"


def saved_picture(gpu: int | None) -> dict[str, object]:
    """Give the picture by its MIME types; nothing where no server tells a state.

    Args:
        gpu: index of the only GPU that is shown; None is all.
    """
    try:
        state = _of_gpu(ServerLink().state(), gpu)
    except LinkError:
        return {}
    if state.frame is None:
        return {}
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.frame.time_ms / 1e3))
    words = f"The Monitor's figures when its cell ran, {when}."
    html = f"<p>{escape(words)}</p>{state_html(state, '')}"
    return {"text/html": html, MIME: {"time_ms": state.frame.time_ms}}


def _of_gpu(state: StateNow, gpu: int | None) -> StateNow:
    if gpu is None or state.frame is None:
        return state
    chosen = {at for at, device in enumerate(state.devices) if device.index == gpu}
    readings = tuple(
        reading for reading in state.frame.readings if reading.device in chosen
    )
    # places hold: what is left out is of another kind than what is drawn
    devices = tuple(
        device if at in chosen else replace(device, kind="monitor")
        for at, device in enumerate(state.devices)
    )
    frame = replace(state.frame, readings=readings)
    return replace(state, devices=devices, frame=frame)
