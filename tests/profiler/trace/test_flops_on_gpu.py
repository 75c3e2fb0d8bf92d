"""FLOPs and bytes of operators that only a GPU has: run on torch's meta device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.flops import Work, model

aten = torch.ops.aten
QUERY, KEY, VALUE = (2, 4, 12, 8), (2, 4, 20, 8), (2, 4, 20, 16)


def meta(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.empty(shape, device="meta", dtype=torch.bfloat16)


def swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[0], shape[2], shape[1], shape[3]


def argument_names(operator: str) -> list[str]:
    """In torch's own order."""
    packet = getattr(aten, operator)
    schema = getattr(packet, packet.overloads()[0])._schema
    return [argument.name for argument in schema.arguments]


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
    q, k, v = (torch.randn(shape, requires_grad=True) for shape in (QUERY, KEY, VALUE))
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
    packed = {shape: meta((32, 4, 8)) for shape in shapes}
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
