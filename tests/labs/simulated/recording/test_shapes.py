"""Views are the same memory in the same order as PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.labs.simulated.recording.pair import Body, assert_same, simulated

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

VIEWS: dict[str, Body] = {
    "chunk": lambda t, x: x.chunk(3, 2)[1],
    "chunk, fewer": lambda t, x: x.chunk(5, 2)[-1],
    "split": lambda t, x: x.split(3, -1)[1],
    "split, lengths": lambda t, x: x.split([1, 3], dim=2)[1],
    "split, wrong": lambda t, x: x.split([1, 2], dim=2),
    "unbind": lambda t, x: x.unbind(1)[2],
    "iterate": lambda t, x: [*x][1],
    "narrow": lambda t, x: x.narrow(2, 1, 2),
    "narrow, too far": lambda t, x: x.narrow(2, 3, 2),
    "select": lambda t, x: x.select(1, -1),
    "view": lambda t, x: x.view(6, -1),
    "view, wrong": lambda t, x: x.view(5, 5),
    "view, turned": lambda t, x: x.transpose(0, 1).view(-1),
    "view as bytes": lambda t, x: x.view(t.int32).view(t.uint8),
    "reshape": lambda t, x: x.reshape((4, 6)),
    "reshape, turned": lambda t, x: x.transpose(0, 1).reshape(6, 4),
    "flatten": lambda t, x: x.flatten(),
    "flatten, some": lambda t, x: x.flatten(1),
    "unflatten": lambda t, x: x.unflatten(2, (2, -1)),
    "unflatten, wrong": lambda t, x: x.unflatten(-1, (3, 2)),
    "ravel": lambda t, x: x.ravel(),
    "ravel, turned": lambda t, x: x.mT.ravel(),
    "view_as": lambda t, x: x.view_as(t.empty(6, 4)),
    "reshape_as": lambda t, x: x.mT.reshape_as(t.empty(6, 4)),
    "permute": lambda t, x: x.permute(2, 0, 1),
    "permute, twice one": lambda t, x: x.permute(2, 0, 0),
    "transpose": lambda t, x: x.transpose(-1, 0),
    "mT": lambda t, x: x.mT,
    "t, too many": lambda t, x: x.t(),
    "unsqueeze": lambda t, x: x.unsqueeze(-1),
    "squeeze": lambda t, x: x[:1].squeeze(),
    "squeeze, one": lambda t, x: x[:1].squeeze(0),
    "squeeze, none": lambda t, x: x.squeeze(1),
    "squeeze, wrong": lambda t, x: x.squeeze(3),
    "expand": lambda t, x: x[:, :1].expand(-1, 5, 4),
    "expand, wrong": lambda t, x: x.expand(2, 5, 4),
    "repeat": lambda t, x: x.repeat(2, 1, 3),
    "repeat, more": lambda t, x: x[0].t().repeat(2, 1, 3),
    "contiguous": lambda t, x: x.permute(2, 0, 1).contiguous(),
    "clone": lambda t, x: x.permute(2, 0, 1).clone(),
    "clone, sliced": lambda t, x: x[:, ::2].clone(),
    "none and dots": lambda t, x: x[None, ..., 1:3],
    "0 dimensions": lambda t, x: x[0, 1, 2],
    "too many": lambda t, x: x[0, 1, 2, 0],
    "beyond": lambda t, x: x[2],
    "backwards": lambda t, x: x[::-1],
    "float": lambda t, x: x[1.0],
    "channels last": lambda t, x: x[None].to(memory_format=t.channels_last),
    "channels last, back": lambda t, x: (
        x[None].contiguous(memory_format=t.channels_last).contiguous()
    ),
    "channels last, kept": lambda t, x: (
        x[None].contiguous(memory_format=t.channels_last) * 2
    ),
    "channels last, empty": lambda t, x: t.empty(
        x[None].shape, memory_format=t.channels_last
    ).copy_(x),
    "channels last, empty of 3": lambda t, x: t.empty(
        x.shape, memory_format=t.channels_last
    ),
    "preserved, empty": lambda t, x: t.empty(2, memory_format=t.preserve_format),
    "channels last, alike": lambda t, x: t.empty_like(
        x[None], dtype=t.float16, memory_format=t.channels_last
    ).copy_(x),
    "channels last, zeros": lambda t, x: t.zeros_like(
        x[None], memory_format=t.channels_last
    ),
    "rows, ones": lambda t, x: t.ones_like(
        x[None].to(memory_format=t.channels_last), memory_format=t.contiguous_format
    ),
    "channels last, half": lambda t, x: x[None].half(memory_format=t.channels_last),
    "no format": lambda t, x: x.contiguous(memory_format="channels_last"),
    "strided": lambda t, x: t.empty_strided((2, 3), (7, 2)).fill_(1),
    "strided, new": lambda t, x: x.new_empty_strided(
        (2, 3), (1, 2), dtype=t.float16
    ).fill_(1),
    "strided, negative": lambda t, x: t.empty_strided((2, 3), (-1, 1)),
    "strided, no side": lambda t, x: t.empty_strided((-2, 3), (1, 1)),
    "strided, too few": lambda t, x: t.empty_strided((2, 3), (1,)),
    "channels last, 3": lambda t, x: x.contiguous(memory_format=t.channels_last),
    "size": lambda t, x: x.size(-1),
    "sizes": lambda t, x: tuple(x.size()),
    "bytes": lambda t, x: (x.nbytes, x.element_size(), x.numel(), x.shape.numel()),
    "length": lambda t, x: len(x),
    "offset": lambda t, x: x[1, 1:].storage_offset(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_as_pytorchs(name: str) -> None:
    assert_same(VIEWS[name], CUBE)


@pytest.mark.parametrize(
    "name", ["chunk", "narrow", "permute", "expand", "none and dots"]
)
def test_writing_into_a_view_changes_its_tensor(name: str) -> None:
    def body(t: Any, x: Any) -> Any:
        if name == "expand":
            return VIEWS[name](t, x).fill_(7)
        VIEWS[name](t, x).fill_(7)
        return x

    assert_same(body, CUBE)


@given(
    st.lists(
        st.one_of(
            st.integers(-4, 4),
            st.none(),
            st.just(Ellipsis),
            st.slices(4).filter(lambda s: s.step is None or s.step > 0),
        ),
        max_size=3,
    ).filter(lambda parts: parts.count(Ellipsis) < 2)
)
def test_any_slices_are_the_same_elements(parts: list[Any]) -> None:
    assert_same(lambda t, x: x[tuple(parts)], CUBE)


def test_a_single_number_is_written_copied_and_shaped() -> None:
    def body(t: Any, x: Any) -> Any:
        x[0, 0, 1] = 5
        x[0, 0, 2].fill_(6)
        x[0, 0, 3] = x.sum().cpu()
        x[1, 0, 0].copy_(t.tensor(7))
        x[1, 0, 1].zero_().add_(x[0].max().view(1, 1).squeeze())
        return x + x.mean().reshape(-1).expand(4).clone()[0].t()

    assert_same(body, CUBE)
    torch = simulated()
    x = torch.tensor(2.5).cuda(non_blocking=True)
    x.copy_(torch.tensor(3.5, pin_memory=True), non_blocking=True)
    assert x.half().cpu().item() == 3.5


def test_a_tensor_tells_where_it_is() -> None:
    torch = simulated()
    host, pinned = torch.empty(3), torch.empty(3, pin_memory=True)
    device = torch.empty(3, device="cuda")
    assert [t.is_cuda for t in (host, pinned, device)] == [False, False, True]
    assert [t.is_pinned() for t in (host, pinned, device)] == [False, True, False]
    assert device.device == torch.device("cuda", 0) != torch.device("cuda")
    assert host.device.type == "cpu" and str(device.device) == "cuda:0"
    assert host.pin_memory().is_pinned() and pinned.pin_memory() is pinned
    assert torch.empty_like(device).is_cuda and device.new_empty(2).is_cuda
