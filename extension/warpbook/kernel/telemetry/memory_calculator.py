"""`warpbook.memory(MODEL)`: what a model needs of a GPU's memory, with controls."""

from __future__ import annotations

import shlex
from html import escape
from typing import Any, Literal, get_args, get_origin, get_type_hints

import ipywidgets
import msgspec

from warpbook.kernel.telemetry.monitor_picture import MIME
from warpbook.reports.html import notice_html
from warpbook.reports.memory import bar_lines, memory_html
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.fit import SOLD_AS, read_gpu_size
from warpbook_monitors.model_memory.models import known_names, read_model
from warpbook_monitors.model_memory.plan import HELP, OPTIONS, Option, Plan, options_of
from warpbook_monitors.model_memory.view import MemoryView, model_memory, view_of_memory
from warpbook_monitors.plain_text import joined

_ROWS = {"display": "flex", "flex_flow": "row wrap"}
#: what a first question is about; the others are folded
_FIRST = ("batch", "tokens", "side", "inference")
#: fields of which 0 is the model's own
_LENGTHS = ("tokens", "side")


def memory(model: str, *, fits: str = "80GB", **plan: Any) -> MemoryCalculator:
    """Show what training or serving a model needs of a GPU's memory, with controls.

    It is computed by formula and needs no GPU. The bar is the GPU that is fullest.

    Args:
        model: a known name, or the path of a description or a `config.json`, as
            `warpbook memory` takes it.
        fits: the GPU's memory, "80GB" as it is sold or "24GiB"; 1GiB of it is kept
            free.
        plan: options of `warpbook memory` without their dashes: `batch=8`,
            `sequence=1024`, `inference=True`, `tp=2`, `zero=1`, `no_flash=True`.

    Raises:
        TypeError: there is no such option.
        ValueError: a value is invalid.
        MonitorError: there is no such model, or the plan does not fit it.
    """
    return MemoryCalculator(model, fits, _plan_of(plan))


def _plan_of(arguments: dict[str, Any]) -> Plan:
    by_argument = {
        option.name.removeprefix("--").replace("-", "_"): option for option in OPTIONS
    }
    plan, fields = Plan(), dict[str, Any]()
    for name, value in arguments.items():
        option = by_argument.get(name)
        if option is None:
            raise TypeError(
                f"memory() has no argument {name!r}. All: {', '.join(by_argument)}."
            )
        fields[option.field] = not value if option.is_negated else value
        try:
            plan = msgspec.convert(fields, Plan)
        except msgspec.ValidationError as error:
            problem = str(error).partition(" - at")[0]
            raise ValueError(f"memory({name}={value!r}): {problem}.") from None
    return plan


class MemoryCalculator(ipywidgets.VBox):  # type: ignore[misc]
    """A stacked bar of a GPU's memory at the peak, its values, and controls below.

    Attributes:
        plan: what was computed last.
        view: how it is shown.
    """

    def __init__(self, model: str, fits: str, plan: Plan) -> None:
        self.plan, self.view = plan, _view(model, plan, fits)
        sold = {
            f"{gpu} {gb}GB: {mib:,} MiB": f"{gb}GB"
            for gb, (gpu, mib) in SOLD_AS.items()
        }
        sizes = sold if fits in sold.values() else {fits: fits, **sold}
        models = tuple(dict.fromkeys((model, *known_names())))
        style, layout = {"description_width": "initial"}, {"max_width": "100%"}
        self._model = ipywidgets.Dropdown(
            options=models, value=model, description="Model", style=style, layout=layout
        )
        self._fits = ipywidgets.Dropdown(
            options=sizes,
            value=fits,
            description="Memory of the GPU",
            style=style,
            layout=layout,
        )
        self._controls = {option: _control(option, plan) for option in OPTIONS}
        self._drawing = ipywidgets.HTML()
        controls = list(self._controls.values())
        first = [self._controls[option] for option in OPTIONS if option.field in _FIRST]
        more = [widget for widget in controls if widget not in first]
        # a button: the header of ipywidgets' Accordion takes no keys
        self._more = ipywidgets.ToggleButton(description="More options")
        self._folded = ipywidgets.Box(more, layout=_ROWS)
        super().__init__(
            [
                self._drawing,
                ipywidgets.Box([self._model, self._fits, *first], layout=_ROWS),
                self._more,
                self._folded,
            ]
        )
        self._read_controls()
        self._draw()
        self._fold()
        self._more.observe(self._fold, names="value")
        for widget in (self._model, self._fits, *controls):
            widget.observe(self._change, names="value")

    @property
    def command(self) -> str:
        """The command that prints the same."""
        words = ["warpbook memory", shlex.quote(self._model.value)]
        words += [options_of(self.plan), f"--fits {shlex.quote(self._fits.value)}"]
        return " ".join(filter(None, words))

    def _change(self, _change: object) -> None:
        """Compute it anew, or say why it can't be."""
        try:
            plan = self._read_controls()
            view = _view(self._model.value, plan, self._fits.value)
        except (MonitorError, msgspec.ValidationError) as error:
            self._drawing.value = notice_html(str(error))
            return
        self.plan, self.view = plan, view
        self._draw()

    def _fold(self, _change: object = None) -> None:
        self._folded.layout.display = None if self._more.value else "none"

    def _read_controls(self) -> Plan:
        """Return the plan that is set, and hide what says nothing of it."""
        model = read_model(self._model.value)
        values = {
            option: not widget.value if option.is_negated else widget.value
            for option, widget in self._controls.items()
        }
        serves, adapts = (
            bool(value)
            for option, value in values.items()
            if option.field in ("inference", "lora")
        )
        fields = {}
        for option, widget in self._controls.items():
            is_shown = _applies(option, model, serves, adapts)
            widget.layout.display = None if is_shown else "none"
            if is_shown and (values[option] or option.field not in _LENGTHS):
                fields[option.field] = values[option]
        return msgspec.convert(fields, Plan)

    def _draw(self) -> None:
        command = f"<p>On a terminal: <code>{escape(self.command)}</code></p>"
        self._drawing.value = memory_html(self.view) + command

    def __repr__(self) -> str:
        view = self.view
        where = (view.where,) if view.where else ()
        return joined([view.title, *where, *bar_lines(view), *view.fit])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Show the controls, and beside them what stays in a saved notebook."""
        return {
            **(super()._repr_mimebundle_(**kwargs) or {}),
            "text/plain": repr(self),
            "text/html": memory_html(self.view),
            MIME: {},
        }


def _control(option: Option, plan: Plan) -> Any:
    """Make what a person sets an option with, as the plan has it."""
    value = getattr(plan, option.field)
    hint = get_type_hints(Plan)[option.field]
    settings = {
        "description": f"{option.label} ({option.name})",
        "tooltip": HELP[option.field],
        "layout": {"width": "24em", "max_width": "100%"},
    }
    if isinstance(value, bool):
        value = not value if option.is_negated else value
        return ipywidgets.Checkbox(value, indent=False, **settings)
    settings["style"] = {"description_width": "16em"}
    if get_origin(hint) is Literal:
        return ipywidgets.Dropdown(options=get_args(hint), value=value, **settings)
    least = 1 if getattr(Plan(), option.field) else 0
    most = 9_999_999 if option.field in (*_LENGTHS, "chunk") else 10_000
    return ipywidgets.BoundedIntText(value or 0, min=least, max=most, **settings)


def _applies(option: Option, model: Model, serves: bool, adapts: bool) -> bool:
    """Tell whether an option says anything of this work."""
    if option.field == "lora_targets":
        return adapts and not serves
    if option.field == "dtype":
        return adapts or serves
    if option.field in _LENGTHS:
        return (option.field == "side") == bool(model.side)
    if option.field in ("data", "zero"):
        return not serves
    return option.group != ("training" if serves else "inference")


def _view(model: str, plan: Plan, fits: str) -> MemoryView:
    memory = model_memory(read_model(model), plan, read_gpu_size(fits))
    return view_of_memory(memory, plan)
