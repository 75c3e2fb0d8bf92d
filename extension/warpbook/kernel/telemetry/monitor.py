"""`warpbook.Monitor()`: live charts in a notebook's output.

The browser gets the telemetry from the Jupyter server, so the charts move while a
cell blocks this kernel. From here it only learns what to show. Where the page has no
warpbook server (VS Code, Colab, plain Jupyter), the browser asks this kernel instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import anywidget
from traitlets import Float, Int, List, Unicode

from warpbook.kernel.link.server_link import LinkError, NoServer, ServerLink
from warpbook.kernel.link.view_feed import ViewFeed
from warpbook.kernel.telemetry.monitor_picture import saved_picture
from warpbook_monitors import metrics as known

#: the page keeps ten minutes of the stream
MIN_WINDOW_S, MAX_WINDOW_S = 5, 600
MIN_HEIGHT, MAX_HEIGHT = 60, 600

_METRIC_NAMES = sorted({*known.NVML, *known.GPM, *known.HOST})


class Monitor(anywidget.AnyWidget):
    """Live charts of the GPUs and the host, as the Jupyter server reads them.

    Without such a server this kernel reads them, and the charts say so.

    Args:
        metrics: names of the metrics to show, such as "sm_active_ratio"; by
            default those that say how much of the chip works.
        gpu: index of the only GPU to show, as nvidia-smi counts; by default all.
        window_s: how many seconds the charts span.
        height: of one chart, in pixels.

    Raises:
        ValueError: an argument is invalid; the message says why.
        FileNotFoundError: this warpbook was installed without its browser part.
    """

    _esm = Unicode().tag(sync=True)
    _css = Unicode().tag(sync=True)
    metrics = List(Unicode(), default_value=None, allow_none=True).tag(sync=True)
    gpu = Int(None, allow_none=True).tag(sync=True)
    window_s = Float().tag(sync=True)
    height = Int().tag(sync=True)
    #: what the person should know, shown below the charts
    note = Unicode().tag(sync=True)

    def __init__(
        self,
        metrics: Sequence[str] | None = None,
        gpu: int | None = None,
        window_s: float = 60,
        height: int = 160,
    ) -> None:
        """Check the arguments, read the browser part, and ask the server's version."""
        super().__init__(
            metrics=_checked_metrics(metrics),
            gpu=_checked_gpu(gpu),
            window_s=_checked("window_s", window_s, MIN_WINDOW_S, MAX_WINDOW_S),
            height=int(_checked("height", height, MIN_HEIGHT, MAX_HEIGHT)),
            note=_note(),
            _esm=_bundled("monitor.js"),
            _css=_bundled("monitor.css"),
        )
        self._feed = ViewFeed(lambda message: self.send({"telemetry": message}))
        self.on_msg(self._hear)

    def _hear(self, _widget: object, content: object, _buffers: object) -> None:
        """Hear from a view of a page without a server that it is there."""
        if isinstance(content, dict) and content.get("view") == "here":
            self._feed.keep(greeted=content.get("greeted") is True)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Show the widget, and beside it what stays of it in a saved notebook."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, **saved_picture(self.gpu)}, metadata

    def __repr__(self) -> str:
        """Say what stands here where no widget can be drawn."""
        gpu = "all GPUs" if self.gpu is None else f"GPU {self.gpu}"
        return (
            f"warpbook.Monitor of {gpu}, {self.window_s:g} s: live charts, which need "
            "a notebook with Jupyter widgets. %gpu prints the state as text."
        )


def _checked_metrics(names: Sequence[str] | None) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, str):
        names = [names]
    for name in names:
        if name not in _METRIC_NAMES:
            near = difflib.get_close_matches(str(name), _METRIC_NAMES)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(
                f"There is no metric {name!r}.{hint} All: {', '.join(_METRIC_NAMES)}."
            )
    return list(names)


def _checked_gpu(index: object) -> int | None:
    if index is None:
        return None
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise ValueError(f"gpu is the index of a GPU, 0, 1, ..., not {index!r}.")
    return index


def _checked(name: str, value: object, least: int, most: int) -> float:
    # a comparison with NaN is false, so NaN is refused too
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if least <= value <= most:
            return float(value)
    raise ValueError(f"{name} is a number from {least} to {most}, not {value!r}.")


def _note() -> str:
    """Tell of a server that speaks another version; the rest the browser sees."""
    try:
        ServerLink().check_version()
    except NoServer:
        return ""
    except LinkError as problem:
        return str(problem)
    return ""


def _bundled(name: str) -> str:
    file = resources.files("warpbook.kernel") / "static" / name
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"The live widget's browser part ({name}) is missing from this warpbook. "
            "Install it from PyPI, or build it in a checkout with make frontend."
        ) from None
