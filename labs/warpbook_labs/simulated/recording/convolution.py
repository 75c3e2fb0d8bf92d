"""Convolutions, and what cuDNN may do for them: `torch.backends.cudnn`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from warpbook_labs.simulated.convolution import output_shape
from warpbook_labs.simulated.recording import layout
from warpbook_labs.simulated.recording.elementwise import add
from warpbook_labs.simulated.recording.moving import contiguous
from warpbook_labs.simulated.recording.recorder import current, refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    of_array,
    one_device,
    place_of,
)

_FLAGS = {
    "benchmark": False,
    "deterministic": False,
    "allow_tf32": True,
    "enabled": True,
}


class Precision:
    """`torch.backends.cudnn.conv`: the newer way to say whether TF32 is allowed."""

    __slots__ = ()

    @property
    def fp32_precision(self) -> str:
        """`"tf32"` or `"ieee"`."""
        is_allowed = current().settings.get("allow_tf32", _FLAGS["allow_tf32"])
        return "tf32" if is_allowed else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, name: str) -> None:
        if name not in ("tf32", "ieee"):
            raise RuntimeError(f'Unknown precision: {name}; "tf32" or "ieee" is known')
        current().settings["allow_tf32"] = name == "tf32"


class Flags:
    """`torch.backends.cudnn` as a module: settings that the next convolution reads."""

    __name__ = "torch.backends.cudnn"
    __path__: tuple[str, ...] = ()
    conv = Precision()

    def __getattr__(self, name: str) -> bool:
        """Tell a setting."""
        if name in _FLAGS:
            return current().settings.get(name, _FLAGS[name])
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"torch.backends.cudnn.{name}")

    def __setattr__(self, name: str, value: object) -> None:
        """Change a setting."""
        if name in _FLAGS:
            current().settings[name] = bool(value)
        elif name.startswith("__"):
            super().__setattr__(name, value)
        else:
            refuse(f"torch.backends.cudnn.{name}")

    def is_available(self) -> bool:
        """Whether there is cuDNN."""
        return True

    def flags(
        self,
        enabled: bool = False,
        benchmark: bool = False,
        benchmark_limit: int = 10,
        deterministic: bool = False,
        allow_tf32: bool = True,
        fp32_precision: str = "none",
    ) -> FlagsContext:
        """Other settings for a while; what is not named has these defaults."""
        del benchmark_limit, fp32_precision
        return FlagsContext(
            {
                "enabled": enabled,
                "benchmark": benchmark,
                "deterministic": deterministic,
                "allow_tf32": allow_tf32,
            }
        )


class FlagsContext:
    """Settings for a while."""

    def __init__(self, settings: dict[str, bool]) -> None:
        """Keep what holds meanwhile."""
        self._settings = settings
        self._before: dict[str, bool] = {}

    def __enter__(self) -> None:
        """Change the settings."""
        recorder = current()
        self._before = dict(recorder.settings)
        recorder.settings.update(self._settings)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Change them back."""
        recorder = current()
        for name in self._settings:
            recorder.settings[name] = self._before.get(name, _FLAGS[name])


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Only algorithms that give the same bits each time."""
    del warn_only
    current().settings["deterministic algorithms"] = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether only such are used."""
    return current().settings.get("deterministic algorithms", False)


def _single(name: str, given: int | str | Sequence[int]) -> int:
    if isinstance(given, int):
        return given
    if isinstance(given, str) or len(set(given)) != 1:
        refuse(f"conv2d with {name}={given!r}; it has one number for both sides")
    return given[0]


def _numbers(stride: int, padding: int) -> list[float]:
    settings = {**_FLAGS, **current().settings}
    if not settings["enabled"]:
        refuse("convolutions with torch.backends.cudnn.enabled = False")
    deterministic = settings["deterministic"] or are_deterministic_algorithms_enabled()
    return [
        stride,
        padding,
        settings["benchmark"],
        deterministic,
        settings["allow_tf32"],
    ]


def _same_types(left: Tensor, right: Tensor) -> None:
    if left.dtype is not right.dtype:
        raise RuntimeError(
            f"Input type ({left.dtype}) and weight type ({right.dtype}) should be the "
            "same"
        )
    if not left.dtype.is_floating_point:
        refuse(f"convolutions of {left.dtype}")


def _in_order(tensor: Tensor) -> Tensor:
    """It, in one of the two orders that convolutions know."""
    if layout.is_ordered(tensor, layout.CHANNELS_LAST):
        return tensor
    return contiguous(tensor)


def _is_channels_last(tensor: Tensor) -> bool:
    return layout.is_ordered(tensor, layout.CHANNELS_LAST) and not layout.is_ordered(
        tensor
    )


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve images with filters."""
    if groups != 1 or _single("dilation", dilation) != 1:
        refuse("conv2d with groups or dilation")
    one_device([input, weight, *([] if bias is None else [bias])])
    _same_types(input, weight)
    steps, around = _single("stride", stride), _single("padding", padding)
    try:
        shape = output_shape(input.shape, weight.shape, steps, around)
    except ValueError as problem:
        raise RuntimeError(str(problem)) from None
    input, weight = _in_order(input), _in_order(weight)
    is_last = _is_channels_last(input) or _is_channels_last(weight)
    strides = layout.strides(shape, layout.CHANNELS_LAST) if is_last else None
    result = new(shape, input.dtype, place_of(input.device), strides)
    launch("conv2d", [input, weight], [result], _numbers(steps, around))
    if bias is not None:
        column = of_array(bias, bias.array.reshape(1, -1, 1, 1))
        add(result, column, out=result)
    return result


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
) -> Tensor:
    """The gradient of the filters."""
    one_device([input, grad_output])
    _same_types(input, grad_output)
    steps, around = _single("stride", stride), _single("padding", padding)
    try:
        shape = output_shape(input.shape, weight_size, steps, around)
    except ValueError as problem:
        raise RuntimeError(str(problem)) from None
    if shape != tuple(grad_output.shape):
        raise RuntimeError(
            f"Expected grad_output of shape {list(shape)}, but got "
            f"{list(grad_output.shape)}"
        )
    input, grad_output = _in_order(input), _in_order(grad_output)
    is_last = _is_channels_last(input) or _is_channels_last(grad_output)
    strides = layout.strides(weight_size, layout.CHANNELS_LAST) if is_last else None
    result = new(weight_size, input.dtype, place_of(input.device), strides)
    launch("conv2d_weight", [input, grad_output], [result], _numbers(steps, around))
    return result
