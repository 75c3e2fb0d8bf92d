"""FLOPs and bytes from shapes, against what torch counts of the same operators.

torch runs them on the CPU, or on its meta device, which runs nothing; the operands are
read from its profiler's raw events as those of a cell are.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd.profiler import profile
from torch.utils.flop_counter import FlopCounterMode

from warpbook_profiler.capture.kineto_events import operands_of
from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.flops import Work, is_modelled, model
from warpbook_profiler.facts.traffic import least_bytes

aten = torch.ops.aten
small = st.integers(1, 9)
few = settings(max_examples=40)


def recorded(run: Callable[[], object]) -> list[tuple[str, Operands]]:
    """The operators that have a formula and are not within another that has one."""
    with profile(use_kineto=True, record_shapes=True) as profiler:
        run()
    events = [
        event
        for event in profiler.kineto_results.events()
        if is_modelled(event.name()) and event.shapes()
    ]
    events.sort(key=lambda event: (event.start_ns(), -event.duration_ns()))
    calls, ends = [], dict[int, int]()
    for event in events:
        thread = event.start_thread_id()
        if event.start_ns() >= ends.get(thread, 0):
            ends[thread] = event.end_ns()
            calls.append((event.name(), operands_of(event, event.name())))
    return calls


def works(run: Callable[[], object]) -> list[Work]:
    modelled = [model(name, operands) for name, operands in recorded(run)]
    assert None not in modelled, recorded(run)
    return [work for work in modelled if work is not None]


def counted(run: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


def agrees(run: Callable[[], object]) -> None:
    mine, torchs = sum(work.flops for work in works(run)), counted(run)
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
    ids=lambda module: type(module).__name__ if isinstance(module, nn.Module) else "",
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
    convolved = Operands(((2, 6, 14, 9), (8, 6, 3, 2)), ("float", "float"))
    assert model("aten::cudnn_convolution", convolved) is None
    garbled = Operands(convolved.dims, convolved.dtypes, ("x",) * 9)
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
    (call,) = recorded(lambda: torch.mm(a, b, out=torch.empty(8, 6)))
    assert model(*plain) == model(*call)
    assert model(*call) == Work(2 * 8 * 4 * 6, 4 * (8 * 4 + 4 * 6 + 8 * 6), "float")
