"""Convolutions of the simulated machine: their results, and a model of their time.

The model is no cuDNN. It assumes, and says so wherever its numbers are shown:

- the fastest algorithm of a convolution reaches the roof: arithmetic or memory;
- without `benchmark` one is picked by rules of thumb, and takes 1.35 times as long;
- with `benchmark` each new shape has 8 algorithms tried first, while the host waits;
- weight gradients are fastest with atomic additions, whose order is left to chance;
  `deterministic` forbids them, and takes 1.5 times as long;
- kernels for half precision read and write channels_last: all else is converted before
  and after, at the speed of memory; those for FP32 and TF32 take both layouts;
- FP32 is computed in TF32, where that is allowed, with inputs of 10 binary places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

import torch
from msgspec import Struct

from warpbook_labs.engines.simulated.program import HOST, Launch, View, item_bytes
from warpbook_labs.results.findings import top_lines

#: what the model calls an H200: operations and bytes in a nanosecond
SIMT_PER_NS, TF32_PER_NS, HALF_PER_NS, BYTES_PER_NS = 50e3, 380e3, 750e3, 4.1e3
PICKED_BY_RULE = 1.35
DETERMINISTIC = 1.5
ALGORITHMS_TRIED = 8
#: of the host, for one algorithm: to plan it, to run it, to wait for it
TRY_NS = 250_000.0
NAMES = ("conv2d", "conv2d_weight")
#: what time goes to, beside computing
_BY_RULE = "algorithms picked by a rule of thumb"
_DETERMINISTIC = "deterministic algorithms"
_TURNED = "turning to channels_last and back for each convolution"
_CONVERTED = "copies to another dtype or order"
_TUNING = "tuning"

Tensors = Sequence[Any]
Numbers = tuple[float, ...]


class Settings(Struct, frozen=True):
    """What a convolution was asked with: the numbers of its launch."""

    stride: int
    padding: int
    benchmark: bool
    deterministic: bool
    allow_tf32: bool

    @classmethod
    def of(cls, numbers: Numbers) -> Settings:
        """Read them, and refuse what no convolution has.

        Raises:
            ValueError: they are not five, or make no sense.
        """
        stride, padding, benchmark, deterministic, allow_tf32 = numbers
        if not (1 <= stride <= 64 and 0 <= padding <= 64):
            raise ValueError("A stride of 1 to 64 and a padding of 0 to 64 are known.")
        return cls(
            int(stride),
            int(padding),
            bool(benchmark),
            bool(deterministic),
            bool(allow_tf32),
        )


def output_shape(
    x: Sequence[int], weight: Sequence[int], stride: int, padding: int
) -> tuple[int, int, int, int]:
    """Give the shape of what a convolution writes.

    Raises:
        ValueError: the shapes don't fit.
    """
    if len(x) != 4 or len(weight) != 4 or x[1] != weight[1]:
        raise ValueError(f"An image of {tuple(x)} has no filters {tuple(weight)}.")
    height, width = (
        (x[side] + 2 * padding - weight[side]) // stride + 1 for side in (2, 3)
    )
    if min(height, width) < 1:
        raise ValueError("The filters are larger than the image.")
    return x[0], weight[0], height, width


def conv2d(reads: Tensors, writes: Tensors, numbers: Numbers) -> None:
    """Convolve images with filters: y of x and w.

    Raises:
        ValueError: shapes or numbers don't fit.
    """
    settings = Settings.of(numbers)
    (x, weight), (y,) = (_rounded(read, settings) for read in reads), writes
    _fits(x.shape, weight.shape, y.shape, settings)
    how = {"stride": settings.stride, "padding": settings.padding}
    y.copy_(torch.nn.functional.conv2d(x, weight, **how))


def conv2d_weight(reads: Tensors, writes: Tensors, numbers: Numbers) -> None:
    """Give the gradient of the filters, of x and the gradient of y.

    Raises:
        ValueError: shapes or numbers don't fit.
    """
    settings = Settings.of(numbers)
    (x, grad), (weight,) = (_rounded(read, settings) for read in reads), writes
    _fits(x.shape, weight.shape, grad.shape, settings)
    how = {"stride": settings.stride, "padding": settings.padding}
    weight.copy_(torch.nn.grad.conv2d_weight(x, weight.shape, grad, **how))


def conv2d_flops(
    reads: Sequence[View], writes: Sequence[View], numbers: Numbers
) -> float:
    """Count two for each product of a convolution."""
    (_, weight), (y,) = reads, writes
    return 2.0 * prod(y.shape) * prod(weight.shape[1:])


def conv2d_weight_flops(
    reads: Sequence[View], writes: Sequence[View], numbers: Numbers
) -> float:
    """Count two for each product of a gradient: as many as the convolution has."""
    (_, grad), (weight,) = reads, writes
    return 2.0 * prod(grad.shape) * prod(weight.shape[1:])


def conv2d_scratch(
    reads: Sequence[View], writes: Sequence[View], numbers: Numbers
) -> float:
    """Say how much memory a convolution takes, beside its operands.

    Raises:
        ValueError: shapes or numbers don't fit.
    """
    (x, weight), (y,) = reads, writes
    return _scratch(x.shape, weight.shape, y.shape, Settings.of(numbers))


def conv2d_weight_scratch(
    reads: Sequence[View], writes: Sequence[View], numbers: Numbers
) -> float:
    """Say how much memory a gradient takes, beside its operands.

    Raises:
        ValueError: shapes or numbers don't fit.
    """
    (x, grad), (weight,) = reads, writes
    return _scratch(x.shape, weight.shape, grad.shape, Settings.of(numbers))


def _scratch(
    x: Sequence[int], weight: Sequence[int], y: Sequence[int], settings: Settings
) -> float:
    """Count images with their margin, and each window, which is laid out anew."""
    _fits(x, weight, y, settings)
    around = 2 * settings.padding
    padded = prod(x[:2]) * (x[2] + around) * (x[3] + around)
    windows = y[0] * y[2] * y[3] * prod(weight[1:])
    return 4.0 * (padded + windows)


def _fits(
    x: Sequence[int], weight: Sequence[int], y: Sequence[int], settings: Settings
) -> None:
    if output_shape(x, weight, settings.stride, settings.padding) != tuple(y):
        raise ValueError("The output of a convolution has another shape.")


def _rounded(numbers: Any, settings: Settings) -> Any:
    """Give what tensor cores see of numbers; sums are always of FP32."""
    if numbers.dtype is not torch.float32 or not settings.allow_tf32:
        return numbers.float()
    bits = numbers.contiguous().view(torch.int32)
    # to nearest, ties to even; infinities and NaN stay
    halfway = 0xFFF + ((bits >> 13) & 1)
    nearest = ((bits + halfway) & ~0x1FFF).view(torch.float32)
    return torch.where(torch.isfinite(numbers), nearest, numbers)


class Cost(Struct, frozen=True):
    """What the model says of one convolution, without what a launch costs."""

    #: nanoseconds by what they are for
    parts: dict[str, float]
    #: of the fastest algorithm in half precision, with channels last
    fastest_ns: float

    @property
    def ns(self) -> float:
        return sum(self.parts.values())


def cost(
    views: Sequence[View], total_flops: float, numbers: Numbers, is_gradient: bool
) -> Cost:
    """Say how long a convolution takes, once its shape is known.

    Args:
        is_gradient: of the filters, which is where `deterministic` matters.

    Raises:
        ValueError: the numbers make no sense.
    """
    settings = Settings.of(numbers)
    is_half = views[0].dtype == "float16"
    moved = sum(_bytes(view) for view in views) / BYTES_PER_NS
    elements = sum(prod(view.shape) for view in views)
    fastest = max(total_flops / HALF_PER_NS, 2 * elements / BYTES_PER_NS)
    rate = TF32_PER_NS if settings.allow_tf32 else SIMT_PER_NS
    took = max(total_flops / (HALF_PER_NS if is_half else rate), moved)
    is_tf32 = views[0].dtype == "float32" and settings.allow_tf32
    parts = {f"computing in {'TF32' if is_tf32 else views[0].dtype}": took}
    if not settings.benchmark:
        parts[_BY_RULE] = (PICKED_BY_RULE - 1) * took
    if is_gradient and settings.deterministic:
        parts[_DETERMINISTIC] = (DETERMINISTIC - 1) * sum(parts.values())
    if is_half:
        turned = (view for view in views if not is_channels_last(view))
        parts[_TURNED] = sum(2 * _bytes(view) for view in turned) / BYTES_PER_NS
    return Cost(parts, fastest)


def conv2d_ns(reads: Sequence[View], writes: Sequence[View], numbers: Numbers) -> float:
    """Give the model's time of a convolution."""
    total = conv2d_flops(reads, writes, numbers)
    return cost((*reads, *writes), total, numbers, is_gradient=False).ns


def conv2d_weight_ns(
    reads: Sequence[View], writes: Sequence[View], numbers: Numbers
) -> float:
    """Give the model's time of a gradient."""
    total = conv2d_weight_flops(reads, writes, numbers)
    return cost((*reads, *writes), total, numbers, is_gradient=True).ns


def is_channels_last(view: View) -> bool:
    """Whether the channels of a pixel lie side by side."""
    return len(view.shape) == 4 and (view.shape[1] == 1 or view.strides[1] == 1)


def _bytes(view: View) -> int:
    return prod(view.shape) * item_bytes(view.dtype)


class Tuner:
    """Which shapes cuDNN has tried, and what convolutions of a program cost."""

    def __init__(self) -> None:
        self._tried: set[tuple[Any, ...]] = set()
        self._parts: dict[str, float] = defaultdict(float)
        self._fastest_ns = 0.0
        self._ns_of_lines: Counter[int] = Counter()
        self._unrepeatable_lines: Counter[int] = Counter()
        #: launches whose algorithm is non-deterministic
        self.unrepeatable = 0

    def saw(self, launch: Launch, in_last_call: bool) -> float:
        """Take a launch; give the nanoseconds for which the host tries algorithms."""
        if in_last_call and _turns(launch):
            moved = sum(_bytes(view) for view in (*launch.reads, *launch.writes))
            self._add({_CONVERTED: moved / BYTES_PER_NS}, launch.line)
        if launch.operation not in NAMES:
            return 0.0
        settings = Settings.of(launch.numbers)
        is_gradient = launch.operation == "conv2d_weight"
        count = conv2d_weight_flops if is_gradient else conv2d_flops
        total = count(launch.reads, launch.writes, launch.numbers)
        views = (*launch.reads, *launch.writes)
        costs = cost(views, total, launch.numbers, is_gradient)
        if is_gradient and not settings.deterministic:
            self.unrepeatable += 1
            self._unrepeatable_lines[launch.line] += 1
        tuning_ns = 0.0
        key = _key(launch)
        if settings.benchmark and key not in self._tried:
            self._tried.add(key)
            tuning_ns = ALGORITHMS_TRIED * (TRY_NS + costs.ns)
        if in_last_call:
            self._add({**costs.parts, _TUNING: tuning_ns}, launch.line)
            self._fastest_ns += costs.fastest_ns
        return tuning_ns

    def lines(self) -> dict[str, tuple[int, ...]]:
        """Give by count the lines that most of it comes of."""
        return {
            "convolution_percent": top_lines(self._ns_of_lines),
            "unrepeatable": top_lines(self._unrepeatable_lines),
        }

    @property
    def percent(self) -> int:
        """The last call's convolutions, tuning and copies over the fastest; or 0.

        The fastest is half precision, channels_last, tuned before, nothing converted.
        """
        if not self._fastest_ns:
            return 0
        return ceil(100 * sum(self._parts.values()) / self._fastest_ns)

    @property
    def percents(self) -> dict[str, int]:
        """What the percent is spent on, the most first."""
        rounded = {
            name: round(100 * ns / (self._fastest_ns or ns))
            for name, ns in sorted(self._parts.items(), key=lambda item: -item[1])
            if ns
        }
        return {name: percent for name, percent in rounded.items() if percent}

    def _add(self, parts: Mapping[str, float], line: int) -> None:
        for name, ns in parts.items():
            self._parts[name] += ns
            self._ns_of_lines[line] += round(ns)


def _key(launch: Launch) -> tuple[Any, ...]:
    """Say what cuDNN's choice is kept for."""
    views = (*launch.reads, *launch.writes)
    seen = ((view.shape, view.dtype, is_channels_last(view)) for view in views)
    return (launch.operation, launch.numbers, *seen)


def _turns(launch: Launch) -> bool:
    """Whether a copy on the GPU gives anything another order or dtype."""
    if launch.operation != "copy" or launch.stream == HOST:
        return False
    return any(
        source.dtype != target.dtype or _steps(source) != _steps(target)
        for source, target in zip(launch.reads, launch.writes, strict=True)
    )


def _steps(view: View) -> list[int]:
    """Its strides, where there is more than one element to step to."""
    pairs = zip(view.shape, view.strides, strict=True)
    return [stride for side, stride in pairs if side > 1]
