"""What a person sets in the memory calculator, each as the option of the command."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import ipywidgets
import msgspec

from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.plan import Plan

#: the command takes no more
_MOST_COUNT, _MOST_LENGTH = 10_000, 9_999_999
_WIDE = {"width": "24em"}
#: fields of which 0 is the model's own
_LENGTHS = ("tokens", "side")
_DEFAULTS = Plan()


class Control(NamedTuple):
    """One field of the plan."""

    field: str
    label: str
    #: of `warpbook memory`; without its dashes it is the argument's name
    option: str
    group: Literal["the work", "training", "several GPUs", "inference"]
    #: the option says that the field is not set
    is_negated: bool = False

    @property
    def argument(self) -> str:
        """Give the name of the argument in Python."""
        return self.option.removeprefix("--").replace("-", "_")


CONTROLS: tuple[Control, ...] = (
    Control("batch", "Batch", "--batch", "the work"),
    Control("tokens", "Sequence", "--sequence", "the work"),
    Control("side", "Image", "--image", "the work"),
    Control("flash", "No FlashAttention", "--no-flash", "the work", is_negated=True),
    Control("precision", "Precision", "--precision", "training"),
    Control("optimizer", "Optimizer", "--optimizer", "training"),
    Control("fused", "Fused optimizer", "--fused", "training"),
    Control("checkpoint", "Checkpointing", "--checkpoint", "training"),
    Control("micro_batches", "Micro-batches", "--micro-batches", "training"),
    Control("tensor", "Tensor parallel", "--tp", "several GPUs"),
    Control("sequence_parallel", "Sequence parallel", "--sp", "several GPUs"),
    Control("pipeline", "Pipeline stages", "--pp", "several GPUs"),
    Control("data", "Data parallel", "--dp", "several GPUs"),
    Control("zero", "ZeRO stage", "--zero", "several GPUs"),
    Control("dtype", "Weights", "--dtype", "inference"),
    Control("kv_dtype", "Keys and values", "--kv-dtype", "inference"),
)


def plan_of(arguments: dict[str, Any]) -> Plan:
    """Make a plan of arguments that are called as the command's options are.

    Raises:
        TypeError: there is no such argument.
        ValueError: a value is none that the plan takes; the message says which.
    """
    by_argument = {control.argument: control for control in CONTROLS}
    plan, fields = Plan(), dict[str, Any]()
    for name, value in arguments.items():
        control = by_argument.get(name)
        if control is None:
            raise TypeError(
                f"memory() has no argument {name!r}. All: {', '.join(by_argument)}."
            )
        fields[control.field] = not value if control.is_negated else value
        try:
            plan = msgspec.convert(fields, Plan)
        except msgspec.ValidationError as error:
            problem = str(error).partition(" - at")[0]
            raise ValueError(f"memory({name}={value!r}): {problem}.") from None
    return plan


def options_of(plan: Plan) -> str:
    """Write the options of the command that gives this plan."""
    words = []
    for control in CONTROLS:
        value = getattr(plan, control.field)
        if value == getattr(_DEFAULTS, control.field):
            continue
        is_flag = isinstance(value, bool)
        words.append(control.option if is_flag else f"{control.option} {value}")
    return " ".join(words)


def make_control(control: Control, plan: Plan) -> Any:
    """Make what a person sets it with, as the plan has it."""
    value = getattr(plan, control.field)
    label = f"{control.label} ({control.option})"
    if isinstance(value, bool):
        shown = not value if control.is_negated else value
        return ipywidgets.Checkbox(shown, description=label, indent=False, layout=_WIDE)
    style = {"description_width": "16em"}
    hint = get_type_hints(Plan)[control.field]
    if get_origin(hint) is Literal:
        return ipywidgets.Dropdown(
            options=get_args(hint),
            value=value,
            description=label,
            style=style,
            layout=_WIDE,
        )
    is_length = control.field in _LENGTHS
    return ipywidgets.BoundedIntText(
        value or 0,
        min=0 if is_length else 1,
        max=_MOST_LENGTH if is_length else _MOST_COUNT,
        description=label,
        tooltip="0 is the model's own" if is_length else label,
        style=style,
        layout=_WIDE,
    )


def value_of(control: Control, widget: Any) -> Any:
    """Give the field's value that was set."""
    if control.is_negated:
        return not widget.value
    if control.field in _LENGTHS:
        return widget.value or None
    return widget.value


def applies(control: Control, model: Model, *, is_inference: bool) -> bool:
    """Tell whether a control says anything of this work."""
    if control.field == "side":
        return bool(model.side)
    if control.field == "tokens":
        return not model.side
    if control.field in ("data", "zero"):
        return not is_inference
    return control.group != ("training" if is_inference else "inference")
