"""FLOPs and bytes from shapes, against what torch counts of the same operators.

torch runs them on the CPU, or on its meta device, which runs nothing; the operands are
read from its profiler's raw events as those of a cell are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd.profiler import profile
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

from warpbook_monitors.trace.columns import Operands
from warpbook_monitors.trace.flops import Work, is_modelled, model
from warpbook_monitors.trace.kineto_operands import operands_of
from warpbook_monitors.trace.traffic import least_bytes

aten = torch.ops.aten
small = st.integers(1, 9)
few = settings(max_examples=40, deadline=None)


def recorded(run: Callable[[], object]) -> list[tuple[str, Operands]]:
    """The operators that have a formula and are not within another that has one."""
    with profile(use_kineto=True, record_shapes=True) as profiler:
        run()
    events = [
        each
        for each in profiler.kineto_results.events()
        if is_modelled(each.name()) and each.shapes()
    ]
    events.sort(key=lambda each: (each.start_ns(), -each.duration_ns()))
    found, ends = [], dict[int, int]()
    for each in events:
        thread = each.start_thread_id()
        if each.start_ns() >= ends.get(thread, 0):
            ends[thread] = each.end_ns()
            found.append((each.name(), operands_of(each, each.name())))
    return found


def works(run: Callable[[], object]) -> list[Work]:
    told = [model(name, operands) for name, operands in recorded(run)]
    assert None not in told, recorded(run)
    return [each for each in told if each is not None]


def counted(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


def agrees(run: Callable[[], object]) -> None:
    mine, torchs = sum(each.flops for each in works(run)), counted(run)
    assert mine == torchs > 0


class Attention(nn.Module):  # type: ignore[misc]
    """Attention in plain products, with a masked and scaled sum."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(32, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).chunk(3, dim=-1)
        scores = torch.baddbmm(torch.zeros(1, 1, 1), q, k.transpose(1, 2), alpha=0.2)
        return torch.einsum("bqk,bkd->bqd", scores.softmax(-1), v)


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5)), (7, 20)),
        # a batch of sequences, without a bias: another product
        (nn.Linear(16, 8, bias=False), (3, 4, 16)),
        (nn.Conv2d(3, 8, 3, stride=2, padding=1), (2, 3, 9, 9)),
        (nn.Conv2d(4, 4, 3, padding=2, dilation=2), (1, 4, 11, 8)),
        (nn.Conv1d(4, 6, 5), (2, 4, 30)),
        (nn.Conv3d(2, 3, 2), (2, 2, 5, 6, 7)),
        (nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), (2, 4, 5, 5)),
        (Attention(), (2, 10, 32)),
        (nn.MultiheadAttention(16, 4, batch_first=True), (2, 6, 16)),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, nn.Module) else "",
)
def test_networks_forward_and_backward(
    network: nn.Module, shape: tuple[int, ...]
) -> None:
    x = torch.randn(shape, requires_grad=True)

    def step() -> None:
        if isinstance(network, nn.MultiheadAttention):
            out = network(x, x, x)[0]
        else:
            out = network(x)
        out.sum().backward()

    agrees(step)


@few
@given(small, small, small, small)
def test_products_of_any_shape(b: int, m: int, k: int, n: int) -> None:
    one, other = torch.randn(b, m, k), torch.randn(b, k, n)
    agrees(lambda: torch.mm(one[0], other[0]))
    agrees(lambda: torch.addmm(torch.zeros(n), one[0], other[0]))
    agrees(lambda: torch.bmm(one, other))
    agrees(lambda: torch.baddbmm(torch.zeros(b, m, n), one, other))
    # in place and by a vector are not in torch's list: by hand
    (in_place,) = works(lambda: torch.zeros(m, n).addmm_(one[0], other[0]))
    assert in_place.flops == 2 * m * k * n
    (vector,) = works(lambda: torch.mv(one[0], torch.ones(k)))
    assert (vector.flops, vector.size_bytes) == (2 * m * k, 4 * (m * k + k + m))


@few
@given(
    st.tuples(small, small, small),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(1, 2)),
    st.integers(1, 3),
    st.booleans(),
)
def test_convolutions_of_any_shape(
    sizes: tuple[int, int, int],
    kernel: tuple[int, int],
    how: tuple[int, int, int],
    groups: int,
    transposed: bool,
) -> None:
    batch, channels, outs = sizes
    stride, padding, dilation = how
    data = torch.randn(batch, channels * groups, 9, 11, device="meta")
    per_group = (outs, channels * groups) if transposed else (channels, outs * groups)
    weight = torch.randn(per_group[1], per_group[0], *kernel, device="meta")
    convolve = F.conv_transpose2d if transposed else F.conv2d

    def run() -> torch.Tensor:
        return convolve(
            data,
            weight,
            stride=stride,
            padding=padding if not transposed else 0,
            dilation=dilation,
            groups=groups,
        )

    agrees(run)
    (work,) = works(run)
    elements = data.numel() + weight.numel() + run().numel()
    assert work.size_bytes == 4 * elements


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("wanted", [(True, True), (False, True), (True, False)])
def test_each_gradient_of_a_convolution_is_as_much_work(
    groups: int, wanted: tuple[bool, bool]
) -> None:
    data = torch.randn(2, 8, 9, 9, requires_grad=wanted[0])
    weight = torch.randn(12, 8 // groups, 3, 3, requires_grad=wanted[1])
    forward = counted(lambda: F.conv2d(data, weight, groups=groups))
    out = F.conv2d(data, weight, groups=groups).sum()
    (work,) = works(lambda: out.backward(retain_graph=True))
    assert work.flops == sum(wanted) * forward
    if groups == 1:
        agrees(lambda: out.backward(retain_graph=True))


QUERY, KEY, VALUE = (2, 4, 12, 8), (2, 4, 20, 8), (2, 4, 20, 16)


def meta(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.empty(shape, device="meta", dtype=torch.bfloat16)


def swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[0], shape[2], shape[1], shape[3]


def argument_names(operator: str) -> list[str]:
    """In torch's own order."""
    packet = getattr(aten, operator)
    schema = getattr(packet, packet.overloads()[0])._schema
    return [each.name for each in schema.arguments]


def operands(operator: str, **given: Any) -> Operands:
    """As the profiler writes a call down."""
    names = argument_names(operator)
    assert set(given) <= set(names)
    values: list[Any] = [given.get(name) for name in names]
    tensors = [isinstance(value, torch.Tensor) for value in values]
    return Operands(
        tuple(
            tuple(value.shape) if is_one else ()
            for value, is_one in zip(values, tensors, strict=True)
        ),
        tuple("c10::BFloat16" if is_one else "Scalar" for is_one in tensors),
        tuple(
            "" if is_one or value is None else str(value)
            for value, is_one in zip(values, tensors, strict=True)
        ),
    )


FORWARD = [
    ("_scaled_dot_product_flash_attention", "is_causal", False),
    ("_scaled_dot_product_efficient_attention", "is_causal", False),
    ("_scaled_dot_product_cudnn_attention", "is_causal", False),
    ("_cudnn_attention_forward", "is_causal", False),
    ("_flash_attention_forward", "is_causal", True),
    ("_efficient_attention_forward", "custom_mask_type", True),
]
BACKWARD = [
    ("_scaled_dot_product_flash_attention_backward", "is_causal", False),
    ("_scaled_dot_product_efficient_attention_backward", "is_causal", False),
    ("_scaled_dot_product_cudnn_attention_backward", "is_causal", False),
    ("_cudnn_attention_backward", "is_causal", False),
    ("_flash_attention_backward", "is_causal", True),
    ("_efficient_attention_backward", "custom_mask_type", True),
]


def attention(
    operator: str, mask: str, rows_first: bool, causal: bool
) -> tuple[Work | None, tuple[torch.Tensor, ...]]:
    turn = swapped if rows_first else tuple
    tensors = tuple(meta(turn(shape)) for shape in (QUERY, KEY, VALUE))
    given = dict(zip(("query", "key", "value"), tensors, strict=True))
    if "backward" in operator:
        name = "grad_out_" if "efficient" in operator else "grad_out"
        given[name] = meta(turn((*QUERY[:3], VALUE[3])))
    said = causal if mask == "is_causal" else int(causal)
    return model(
        f"aten::{operator}", operands(operator, **{mask: said}, **given)
    ), tensors


@pytest.mark.parametrize(("operator", "mask", "rows_first"), FORWARD + BACKWARD)
def test_attention_by_any_kernel(operator: str, mask: str, rows_first: bool) -> None:
    q, k, v = (torch.randn(each, requires_grad=True) for each in (QUERY, KEY, VALUE))
    # the same in plain products, which torch counts
    with FlopCounterMode(display=False) as forward:
        scores = q @ k.transpose(-1, -2)
        out = scores.softmax(-1) @ v
    with FlopCounterMode(display=False) as backward:
        out.sum().backward()
    torchs = forward.get_total_flops()
    if "backward" in operator:
        # those kernels compute the scores again, where this kept them
        again = 2 * scores.numel() * QUERY[3]
        torchs = backward.get_total_flops() + again
    work, _ = attention(operator, mask, rows_first, causal=False)
    assert work is not None
    assert work.flops == torchs


@pytest.mark.parametrize(("operator", "mask", "rows_first"), FORWARD + BACKWARD)
def test_of_a_causal_attention_only_what_is_looked_at_counts(
    operator: str, mask: str, rows_first: bool
) -> None:
    """Else such a kernel would run beyond the peak of its chip."""
    whole, _ = attention(operator, mask, rows_first, causal=False)
    causal, _ = attention(operator, mask, rows_first, causal=True)
    assert whole is not None and causal is not None
    looked_at = int(torch.ones(QUERY[2], KEY[2]).tril().sum())
    assert causal.flops * QUERY[2] * KEY[2] == whole.flops * looked_at
    assert causal.size_bytes == whole.size_bytes


def test_attention_with_other_masks_is_not_known() -> None:
    shapes = {"query": meta(QUERY), "key": meta(KEY), "value": meta(VALUE)}
    name = "_efficient_attention_forward"
    other = operands(name, custom_mask_type=2, **shapes)
    assert model(f"aten::{name}", other) is None
    # several sequences in a row, whose lengths are in the data
    packed = {each: meta((32, 4, 8)) for each in shapes}
    several = operands("_flash_attention_forward", is_causal=False, **packed)
    assert model("aten::_flash_attention_forward", several) is None


DATA, WEIGHT = (2, 6, 14, 9), (8, 6, 3, 2)
LISTS = {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]}
EXTRA = {"transposed": False, "output_padding": [0, 0], "groups": 1}


@pytest.mark.parametrize(
    "operator",
    [
        "convolution",
        "_convolution",
        "cudnn_convolution",
        "cudnn_convolution_relu",
        "cudnn_convolution_add_relu",
        "_conv_depthwise2d",
        "_slow_conv2d_forward",
    ],
)
def test_what_convolves_on_a_gpu(operator: str) -> None:
    names = argument_names(operator)
    lists = {name: value for name, value in LISTS.items() if name in names}
    out = F.conv2d(meta(DATA), meta(WEIGHT), **lists)
    extra = {name: value for name, value in EXTRA.items() if name in names}
    data = {"self" if "self" in names else "input": meta(DATA)}
    called = operands(operator, weight=meta(WEIGHT), **data, **lists, **extra)
    work = model(f"aten::{operator}", called)
    assert work is not None
    assert work.flops == conv_flop_count(DATA, WEIGHT, list(out.shape))
    sizes = meta(DATA).numel() + meta(WEIGHT).numel() + out.numel()
    assert work.size_bytes == 2 * sizes


@pytest.mark.parametrize(
    "operator", ["cudnn_convolution_transpose", "slow_conv_transpose2d"]
)
def test_what_convolves_the_other_way_on_a_gpu(operator: str) -> None:
    names, weight = argument_names(operator), (DATA[1], 4, 3, 2)
    lists = LISTS | {"output_padding": [1, 0]}
    out = F.conv_transpose2d(meta(DATA), meta(weight), **lists)
    groups = {"groups": 1} if "groups" in names else {}
    called = operands(operator, self=meta(DATA), weight=meta(weight), **lists, **groups)
    work = model(f"aten::{operator}", called)
    assert work is not None
    assert work.flops == conv_flop_count(DATA, weight, list(out.shape), True)
    sizes = meta(DATA).numel() + meta(weight).numel() + out.numel()
    assert work.size_bytes == 2 * sizes


def test_eight_bit_products_and_how_large_their_results_are() -> None:
    a, b = torch.ones(32, 16, dtype=torch.int8), torch.ones(16, 32, dtype=torch.int8)
    (work,) = works(lambda: torch._int_mm(a, b))
    moved = 32 * 16 + 16 * 32 + 4 * 32 * 32
    assert work == Work(2 * 32 * 16 * 32, moved, "signed char")

    fp8 = torch.float8_e4m3fn
    one = torch.empty(32, 16, dtype=fp8, device="meta")
    other = torch.empty(32, 16, dtype=fp8, device="meta").t()
    scale = torch.ones((), device="meta")

    def scaled() -> None:
        aten._scaled_mm(one, other, scale, scale, out_dtype=torch.bfloat16)

    agrees(scaled)
    (work,) = works(scaled)
    assert work.size_bytes == 32 * 16 + 16 * 32 + 2 * 32 * 32
    assert work.dtype == "c10::Float8_e4m3fn"


def test_what_is_not_known_stays_so() -> None:
    shapes = ((4, 4), (4, 4))
    assert model("aten::mm", Operands(shapes, ("float", "float"))) is not None
    assert model("mine::mm", Operands(shapes, ("float", "float"))) is None
    # a product of complex numbers is another count
    assert model("aten::mm", Operands(shapes, ("c10::complex<float>",) * 2)) is None
    assert model("aten::mm", Operands(((), ()), ("float", "float"))) is None
    assert model("aten::mm", Operands((), ())) is None
    # a trace of an older torch has no scalars
    convolved = Operands((DATA, WEIGHT), ("float", "float"))
    assert model("aten::cudnn_convolution", convolved) is None
    garbled = Operands((DATA, WEIGHT), ("float", "float"), ("x",) * 9)
    assert model("aten::cudnn_convolution", garbled) is None


@pytest.mark.parametrize(
    ("name", "dims", "size_bytes"),
    [
        # read twice, written once
        ("aten::add", ((100,), (100,)), 3 * 400),
        ("aten::add_", ((100,), (100,)), 3 * 400),
        ("aten::mul", ((100, 8), (8,)), 2 * 3200 + 32),
        # `out=`, which is an argument more: it is written, not read
        ("aten::add", ((100,), (100,), (), (100,)), 3 * 400),
        ("aten::mul", ((100,), (), (100,)), 2 * 400),
        ("aten::exp", ((100,), (100,)), 2 * 400),
        # the source is read and the target written
        ("aten::copy_", ((100,), (100,)), 2 * 400),
        ("aten::fill_", ((100,), ()), 400),
        # the result is small
        ("aten::sum", ((100, 8),), 3200),
        ("aten::_softmax", ((100, 8),), 2 * 3200),
        # a lookup reads a part of its table
        ("aten::embedding", ((50_000, 1024), (16,)), None),
        ("mine::add", ((100,),), None),
        ("aten::add", ((), ()), None),
    ],
)
def test_what_only_passes_over_its_operands(
    name: str, dims: tuple[tuple[int, ...], ...], size_bytes: int | None
) -> None:
    assert least_bytes(name, Operands(dims, ("float",) * len(dims))) == size_bytes
    unknown = Operands(dims, ("something",) * len(dims))
    assert least_bytes(name, unknown) is None


def test_a_product_that_is_told_where_to_go_moves_no_more() -> None:
    a, b = torch.randn(8, 4), torch.randn(4, 6)
    (plain,) = recorded(lambda: torch.mm(a, b))
    (told,) = recorded(lambda: torch.mm(a, b, out=torch.empty(8, 6)))
    assert model(*plain) == model(*told)
    assert model(*told) == Work(2 * 8 * 4 * 6, 4 * (8 * 4 + 4 * 6 + 8 * 6), "float")
