"""Work of known size on a GPU.

Numbers are random, because zeros draw less power and run faster than real work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle

import torch
import torch.nn.functional as F

from warpbook_profiler.capture.work_times import Call, Work

_MIB = 1 << 20
_DTYPES = {
    "double": torch.float64,
    "float": torch.float32,
    "tf32": torch.float32,
    "c10::Half": torch.half,
    "c10::BFloat16": torch.bfloat16,
}
_PASSES = tuple(
    size * _MIB // 64 for size in (1, 16, 64, 256, 1024, 2048, 3072, 4096, 8192, 65536)
)
_SIDES = (128, 256, 512, 1024, 2048, 4096, 8192)
_ODD_SIDES = (509, 1023, 2047, 4095)
_COPIES = (4 << 10, 64 << 10, _MIB, 16 * _MIB, 128 * _MIB)
#: batch, heads and length of attentions
_ATTENTIONS = ((1, 8, 256), (2, 8, 1024), (4, 16, 2048), (8, 16, 4096))
#: by axes: batch, channels and side of convolutions with kernels of 3
_CONVOLUTIONS = {
    2: (
        *((4, 64, 56), (16, 64, 56), (64, 64, 56), (128, 64, 112)),
        *((8, 256, 14), (32, 256, 14), (128, 256, 14), (64, 256, 56)),
    ),
    3: ((1, 32, 32), (4, 32, 32), (8, 64, 32)),
}
_GRAPH_KERNELS = 40
#: of tensors that are passed over in turn: more than any cache holds
_COLD_BYTES = 192 * _MIB


def gpu_work() -> Iterator[Work]:
    """Give all that is measured of a GPU."""
    yield from _small()
    yield from _passes()
    yield Work("pass", 64 * _MIB, partial(_fused, 64 * _MIB // 3, torch.float32))
    yield Work("pass", 256 * _MIB, partial(_fused, 256 * _MIB // 3, torch.half))
    yield from _copies()
    yield from _products()
    for name in _dtypes("float", "tf32", "c10::Half"):
        for axes, shapes in _CONVOLUTIONS.items():
            for shape in shapes:
                yield from _convolutions(name, shape, axes)
    for name in ("float", "c10::Half"):
        for head in (64, 128):
            for batch in _ATTENTIONS:
                yield from _attentions(name, head, batch)


def ceilings_work() -> Iterator[Work]:
    """Give what a datasheet would say, with dtypes that only labs multiply."""
    for work in (*_passes(), *_products()):
        is_large = work.curve == "pass" and work.amount >= 256 * _MIB
        if is_large or work.curve.startswith("multiply"):
            yield work
    capability = torch.cuda.get_device_capability()
    for side in _SIDES[3:]:
        if capability >= (7, 5):
            yield Work("multiply.signed char", 2.0 * side**3, partial(_int8, side))
        if capability >= (8, 9):
            yield Work(
                "multiply.c10::Float8_e4m3fn", 2.0 * side**3, partial(_fp8, side)
            )


def _dtypes(*names: str) -> Iterator[str]:
    """Choose those that the GPU has a unit for."""
    has_ampere = torch.cuda.get_device_capability() >= (8, 0)
    for name in names:
        if has_ampere or name not in ("tf32", "c10::BFloat16"):
            yield name


def _small() -> Iterator[Work]:
    def kernels() -> Call:
        x = torch.randn(256, device="cuda")
        return lambda: x.add_(1)

    def softmax() -> Call:
        x = torch.randn(16, 64, device="cuda", dtype=torch.half)
        return lambda: x.softmax(-1)

    def graph(size: int) -> Call:
        replayed = graph_of(_GRAPH_KERNELS, size)
        return lambda: replayed.replay()

    def queue() -> Call:
        x = torch.randn(256, device="cuda")

        def several() -> None:
            torch.cuda._sleep(4_000_000)
            for _ in range(_GRAPH_KERNELS):
                x.add_(1)

        return several

    yield Work("kernel", 1, kernels)
    yield Work("kernel", 1, softmax)
    for size in (256, 1 << 20, 1 << 22):
        yield Work("graph_step", 1, partial(graph, size), True)
    yield Work("step", 1, queue, True)


def graph_of(kernels: int, size: int = 256) -> torch.cuda.CUDAGraph:
    """Capture so many kernels over so many numbers."""
    x = torch.randn(size, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(kernels):
            x.add_(1)
    return graph


def _passes() -> Iterator[Work]:
    for name in _dtypes("float", "c10::BFloat16"):
        dtype = _DTYPES[name]
        for size in _PASSES:
            yield Work("pass", size, partial(_in_place, size // 2, dtype))
            yield Work("pass", size, partial(_sum_of_two, size // 3, dtype))
            if size < _COLD_BYTES:
                yield Work("pass", size, partial(_cold, size // 2, dtype))
            yield Work("reduce", size, partial(_softmax, size // 2, dtype))
            yield Work("reduce", size, partial(_normalized, size // 2, dtype))


def _tensor(size_bytes: int, dtype: torch.dtype) -> torch.Tensor:
    rows = max(size_bytes // dtype.itemsize // 1024, 1)
    return torch.randn(rows, 1024, device="cuda").to(dtype)


def _in_place(size_bytes: int, dtype: torch.dtype) -> Call:
    x = _tensor(size_bytes, dtype)
    return lambda: x.mul_(-1)


def _cold(size_bytes: int, dtype: torch.dtype) -> Call:
    """Pass over one tensor after the other, so that none is in a cache."""
    count = min(_COLD_BYTES // size_bytes + 1, 64)
    tensors = cycle([_tensor(size_bytes, dtype) for _ in range(count)])
    return lambda: next(tensors).mul_(-1)


def _sum_of_two(size_bytes: int, dtype: torch.dtype) -> Call:
    a, b, out = (_tensor(size_bytes, dtype) for _ in range(3))
    return lambda: torch.add(a, b, out=out)


def _softmax(size_bytes: int, dtype: torch.dtype) -> Call:
    x = _tensor(size_bytes, dtype)
    return lambda: x.softmax(-1)


def _normalized(size_bytes: int, dtype: torch.dtype) -> Call:
    x = _tensor(size_bytes, dtype)
    return lambda: F.layer_norm(x, (1024,))


def _fused(size_bytes: int, dtype: torch.dtype) -> Call:
    a, b = (_tensor(size_bytes, dtype) for _ in range(2))
    chain = compiled()
    return lambda: chain(a, b)


def compiled() -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Compile a chain of pointwise operators."""

    def chain(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(a * 2 + b) * torch.sigmoid(b)

    made: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.compile(
        chain, dynamic=False
    )
    return made


def _copies() -> Iterator[Work]:
    for memory in ("pinned", "pageable"):
        for size in _COPIES:
            for is_to_gpu in (True, False):
                way = "to_gpu" if is_to_gpu else "to_host"
                make = partial(_copied, size, memory == "pinned", is_to_gpu)
                yield Work(f"copy.{way}.{memory}", size, make)


def _copied(size_bytes: int, is_pinned: bool, is_to_gpu: bool) -> Call:
    there = torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
    here = torch.ones(size_bytes, dtype=torch.uint8)
    if is_pinned:
        here = here.pin_memory()
    target, source = (there, here) if is_to_gpu else (here, there)
    return lambda: target.copy_(source, non_blocking=True)


def _products() -> Iterator[Work]:
    for name in _dtypes(*_DTYPES):
        for side in _SIDES:
            shapes = [(side, side, side, False)]
            if side >= 512:
                # tiles of the chip fit badly, a wide product, and a layer
                shapes.append((side + 8, side + 8, side + 8, False))
                shapes.append((side // 4, side, 4 * side, False))
                shapes.append((side, 4 * side, side // 4, True))
            for rows, depth, columns, is_linear in shapes:
                make = partial(_product, name, rows, depth, columns, is_linear)
                yield Work(f"multiply.{name}", 2.0 * rows * depth * columns, make)
        if name in ("tf32", "c10::Half"):
            for side in _ODD_SIDES:
                make = partial(_product, name, side, side, side)
                yield Work(f"odd.{name}", 2.0 * side**3, make)


def _product(
    name: str, rows: int, depth: int, columns: int, is_linear: bool = False
) -> Call:
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    a = torch.randn(rows, depth, device="cuda").to(_DTYPES[name])
    b = torch.randn(depth, columns, device="cuda").to(_DTYPES[name])
    if is_linear:
        # a layer's weight has its rows by output, and a bias is added
        weight, bias = b.t().contiguous(), torch.randn(columns, device="cuda")
        bias = bias.to(_DTYPES[name])
        return lambda: F.linear(a, weight, bias)
    out = torch.empty(rows, columns, device="cuda", dtype=_DTYPES[name])
    return lambda: torch.mm(a, b, out=out)


def _int8(side: int) -> Call:
    a = torch.randint(-128, 127, (side, side), dtype=torch.int8, device="cuda")
    # the tensor cores want the second one by columns
    b = a.clone().t()
    return lambda: torch._int_mm(a, b)


def _fp8(side: int) -> Call:
    a = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(side, side, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(
        a,
        b,
        scale_a=one,
        scale_b=one,
        out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )


def _convolutions(name: str, shape: tuple[int, int, int], axes: int) -> Iterator[Work]:
    batch, channels, side = shape
    flops = 2.0 * batch * channels**2 * 3**axes * side**axes
    kind = f"{name}.{axes}" if axes == 3 else f"{name}.{axes}.{channels}"
    for is_backward in (False, True):
        make = partial(_convolved, name, shape, axes, is_backward)
        curve = "convolve_backward" if is_backward else "convolve"
        yield Work(f"{curve}.{kind}", flops * (1 + is_backward), make)


def _convolved(
    name: str, shape: tuple[int, int, int], axes: int, is_backward: bool
) -> Call:
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    batch, channels, side = shape
    x = torch.randn(batch, channels, *(side,) * axes, device="cuda")
    weight = torch.randn(channels, channels, *(3,) * axes, device="cuda")
    x, weight = (one.to(_DTYPES[name]) for one in (x, weight))
    convolve = F.conv2d if axes == 2 else F.conv3d
    if is_backward:
        return _backward((x, weight), lambda: convolve(x, weight, padding=1))
    return lambda: convolve(x, weight, padding=1)


def _attentions(name: str, head: int, batch: tuple[int, int, int]) -> Iterator[Work]:
    flops = 4.0 * batch[0] * batch[1] * batch[2] ** 2 * head
    make, again = (
        partial(_attended, name, head, batch, backward) for backward in (False, True)
    )
    yield Work(f"attend.{name}.{head}", flops, make)
    yield Work(f"attend_backward.{name}.{head}", 2.5 * flops, again)


def _attended(
    name: str, head: int, batch: tuple[int, int, int], is_backward: bool
) -> Call:
    operands = tuple(
        torch.randn(*batch, head, device="cuda").to(_DTYPES[name]) for _ in range(3)
    )
    if is_backward:
        return _backward(operands, lambda: F.scaled_dot_product_attention(*operands))
    return lambda: F.scaled_dot_product_attention(*operands)


def _backward(operands: Sequence[torch.Tensor], forward: Call) -> Call:
    for one in operands:
        one.requires_grad_()
    result = forward()
    assert isinstance(result, torch.Tensor)
    gradient = torch.randn_like(result)
    return lambda: torch.autograd.grad(result, operands, gradient, retain_graph=True)
