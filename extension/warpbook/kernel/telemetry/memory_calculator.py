"""`warpbook.memory(MODEL)`: what a model needs of a GPU's memory, with controls."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets
import msgspec

from warpbook.kernel.telemetry.memory_controls import (
    CONTROLS,
    applies,
    make_control,
    options_of,
    plan_of,
    value_of,
)
from warpbook.kernel.telemetry.monitor_picture import MIME
from warpbook.reports.html import notice_html
from warpbook.reports.memory import bar_lines, memory_html
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.model_memory.description import known_names, read_model
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.report import model_memory
from warpbook_monitors.model_memory.sizes import SOLD_AS, read_gpu_size
from warpbook_monitors.model_memory.view import MemoryView, view_of_memory
from warpbook_monitors.plain_text import joined

#: as `warpbook memory` keeps free
_RESERVED_BYTES = 10**9
_ROWS = {"display": "flex", "flex_flow": "row wrap"}


def memory(
    model: str, *, inference: bool = False, fits: str = "80GB", **plan: Any
) -> MemoryCalculator:
    """Show what training or serving a model needs of a GPU's memory, with controls.

    It is computed by formula and needs no GPU. The bar is the GPU that is fullest.

    Args:
        model: a known name, or the path of a description or a `config.json`, as
            `warpbook memory` takes it.
        inference: serve the model instead of training it.
        fits: the GPU's memory, "80GB" as it is sold or "24GiB"; 1GB of it is kept
            free.
        plan: options of `warpbook memory` without their dashes: `batch=8`,
            `sequence=1024`, `precision="bf16"`, `tp=2`, `zero=1`, `no_flash=True`.

    Raises:
        TypeError: there is no such option.
        ValueError: a value is invalid.
        MonitorError: there is no such model, or the plan does not fit it.
    """
    return MemoryCalculator(model, inference, fits, plan_of(plan))


class MemoryCalculator(ipywidgets.VBox):  # type: ignore[misc]
    """Controls above a stacked bar of a GPU's memory at the peak, and its values.

    Attributes:
        plan: what was computed last.
        view: how it is shown.
    """

    def __init__(self, model: str, is_inference: bool, fits: str, plan: Plan) -> None:
        """Compute it once, and make the controls.

        Raises:
            ValueError: the memory is no size, or too small.
            MonitorError: there is no such model, or the plan does not fit it.
        """
        if read_gpu_size(fits) <= _RESERVED_BYTES:
            raise ValueError(f"memory(fits={fits!r}): 1GB of it is kept free.")
        self.plan = plan
        self.view = _view(model, plan, is_inference, fits)
        work = "inference" if is_inference else "training"
        sold = {f"{gpu} {gb}GB": f"{gb}GB" for gb, (gpu, _) in SOLD_AS.items()}
        sizes = sold if fits in sold.values() else {fits: fits, **sold}
        self._model = _dropdown(
            "Model", tuple(dict.fromkeys((model, *known_names()))), model
        )
        self._work = _dropdown("Work", ("training", "inference"), work)
        self._fits = _dropdown("Memory of the GPU", sizes, fits)
        self._controls = {control: make_control(control, plan) for control in CONTROLS}
        self._drawing = ipywidgets.HTML()
        settings = (self._model, self._work, self._fits)
        super().__init__(
            [
                ipywidgets.Box(settings, layout=_ROWS),
                ipywidgets.Box(list(self._controls.values()), layout=_ROWS),
                self._drawing,
            ]
        )
        self._set_plan()
        self._draw()
        for widget in (*settings, *self._controls.values()):
            widget.observe(self._change, names="value")

    @property
    def command(self) -> str:
        """Give the command that prints the same."""
        words = ["warpbook memory", shlex.quote(self._model.value)]
        words += ["--inference"] if self._is_inference else []
        words += [options_of(self.plan), f"--fits {shlex.quote(self._fits.value)}"]
        return " ".join(filter(None, words))

    @property
    def _is_inference(self) -> bool:
        return bool(self._work.value == "inference")

    def _change(self, _change: object) -> None:
        """Compute it anew, or say why it can't be."""
        try:
            plan = self._set_plan()
            view = _view(self._model.value, plan, self._is_inference, self._fits.value)
        except (MonitorError, msgspec.ValidationError) as error:
            self._drawing.value = notice_html(str(error))
            return
        self.plan, self.view = plan, view
        self._draw()

    def _set_plan(self) -> Plan:
        """Read the controls, and hide those that say nothing of this work."""
        model = read_model(self._model.value)
        fields = {}
        for control, widget in self._controls.items():
            is_shown = applies(control, model, is_inference=self._is_inference)
            widget.layout.display = None if is_shown else "none"
            if is_shown:
                fields[control.field] = value_of(control, widget)
        return msgspec.convert(fields, Plan)

    def _draw(self) -> None:
        command = f"<p>On a terminal: <code>{escape(self.command)}</code></p>"
        self._drawing.value = memory_html(self.view) + command

    def __repr__(self) -> str:
        """Write the bar as text."""
        view = self.view
        where = (view.where,) if view.where else ()
        return joined([view.title, *where, *bar_lines(view.bar), *view.fit])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Show the controls, and beside them what stays in a saved notebook."""
        return {
            **(super()._repr_mimebundle_(**kwargs) or {}),
            "text/plain": repr(self),
            "text/html": memory_html(self.view),
            MIME: {},
        }


def _dropdown(
    label: str, options: Sequence[str] | Mapping[str, str], value: str
) -> Any:
    """Make a menu; the keys of a mapping are shown."""
    return ipywidgets.Dropdown(
        options=options,
        value=value,
        description=label,
        style={"description_width": "initial"},
    )


def _view(model: str, plan: Plan, is_inference: bool, fits: str) -> MemoryView:
    computed = model_memory(
        read_model(model),
        plan,
        is_inference=is_inference,
        capacity_bytes=read_gpu_size(fits),
        reserved_bytes=_RESERVED_BYTES,
    )
    return view_of_memory(computed, plan)
