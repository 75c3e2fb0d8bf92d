"""Mistakes are told in PyTorch's own words where it tells them, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.labs.simulated.recording.pair import Body, assert_same, outcome, simulated

X = np.ones((2, 3), np.float32)
Y = np.ones((4, 5), np.float32)


def square(y: Any) -> Any:
    """Some of it, in as many rows as columns."""
    return y.view(-1)[:16].view(4, 4)


#: with so much of the beginning in common
MISTAKES: dict[str, Body] = {
    "shapes": lambda t, x, y: x + y,
    "in place": lambda t, x, y: x[0].clone().add_(x),
    "into whole numbers": lambda t, x, y: x.int().add_(x),
    "product": lambda t, x, y: t.mm(x, y),
    "view": lambda t, x, y: x.view(7),
    "view of columns": lambda t, x, y: x.t().view(6),
    "dimension": lambda t, x, y: x.sum(2),
    "numbers": lambda t, x, y: x.item(),
    "truth": lambda t, x, y: bool(x),
    "mean of whole numbers": lambda t, x, y: x.long().mean(),
    "shared elements": lambda t, x, y: x[:1].expand(4, 3).add_(1),
    "overlap": lambda t, x, y: y.view(-1)[1:].add_(y.view(-1)[:-1]),
    "overlap, turned": lambda t, x, y: square(y).add_(square(y).t()),
    "overlap, row": lambda t, x, y: y.add_(y[:1]),
    "overlap, number": lambda t, x, y: y.sub_(y[0, 0]),
    "overlap, copy": lambda t, x, y: square(y).copy_(square(y).t()),
    "overlap, cat": lambda t, x, y: t.cat([y[:1], y[1:2]], out=y[:2]),
    "overlap, index_select": lambda t, x, y: t.index_select(y, 0, t.arange(4), out=y),
    "overlap, gather": lambda t, x, y: t.gather(y, 0, y.long() * 0, out=y),
    "overlap, index": lambda t, x, y: y.__setitem__(t.tensor([0, 1]), y[1:3]),
    "split": lambda t, x, y: x.split([1, 3]),
    "chunk": lambda t, x, y: x.chunk(0),
    "cat": lambda t, x, y: t.cat([x, y]),
    "where": lambda t, x, y: t.where(x, x, x),
    "fill of many": lambda t, x, y: x.fill_(y),
    "copy of no tensor": lambda t, x, y: x.copy_("3"),
    "length": lambda t, x, y: len(x.sum()),
    "iteration": lambda t, x, y: [*x.sum()],
    "device": lambda t, x, y: t.zeros(3, device="gpu"),
    "negative": lambda t, x, y: t.empty(-1),
    "no clamp": lambda t, x, y: x.clamp(),
    "power": lambda t, x, y: x.int() ** -1,
    "steps": lambda t, x, y: x[::-1],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_as_pytorch_tells_it(name: str) -> None:
    right = outcome(MISTAKES[name], torch, [X, Y])
    got = outcome(MISTAKES[name], simulated(), [X, Y])
    assert isinstance(right, Exception) and type(got) is type(right)
    assert str(got)[:25] == str(right)[:25]


@pytest.mark.parametrize(
    "body",
    [
        lambda t, host, device: host + device,
        lambda t, host, device: device.mul_(host),
        lambda t, host, device: t.mm(host, device.t()),
        lambda t, host, device: t.cat([host, device]),
        lambda t, host, device: t.add(host, host, out=device),
        lambda t, host, device: t.sum(host, 0, out=device[0]),
        lambda t, host, device: t.where(host > 0, device, 0.0),
    ],
)
def test_tensors_of_two_devices_do_not_meet(body: Any) -> None:
    t = simulated()
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same dev"
    ):
        body(t, t.ones(2, 3), t.ones(2, 3, device="cuda"))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (lambda t, a, w: t.matmul(a, w, out=a), "matmul"),
        (lambda t, a, w: t.mm(a, w, out=w), "mm"),
        (lambda t, a, w: t.mm(a, w, out=a.t()), "mm"),
        (lambda t, a, w: t.mm(a[:, :2], w[:2, :2], out=a[:, 1:3]), "mm"),
        (lambda t, a, w: t.bmm(a[None], w[None], out=a[None]), "bmm"),
        (lambda t, a, w: t.addmm(w, a, w * 1, out=a), "addmm"),
        (lambda t, a, w: a.addmm_(a, w), "addmm"),
        (lambda t, a, w: t.addmm(a[0], a * 1, w, out=a), "addmm"),
        (lambda t, a, w: t.baddbmm(w[None], a[None], w[None], out=w[None]), "baddbmm"),
        (lambda t, a, w: t.mv(a, w[0], out=a[0]), "matmul"),
        (lambda t, a, w: t.sum(a, 0, keepdim=True, out=a[:1]), "sum"),
        (lambda t, a, w: t.amax(a, 0, out=a[0]), "amax"),
    ],
)
def test_what_is_read_again_is_not_written_meanwhile(body: Any, name: str) -> None:
    t = simulated()
    words = f"`{name}` writes `out` while it still reads it: give it other memory."
    with pytest.raises(RuntimeError, match=words):
        body(t, t.ones(4, 4, device="cuda"), t.ones(4, 4, device="cuda"))


@pytest.mark.parametrize(
    "body",
    [
        lambda t, a, w: t.addmm(a, w, w, out=a),
        lambda t, a, w: a[None].baddbmm_(w[None], w[None])[0],
        lambda t, a, w: t.mm(a[:, 2:], w[:2, :2], out=a[:, :2]),
        lambda t, a, w: t.add(a[:, 2:], 1, out=a[:, :2]),
        lambda t, a, w: t.mul(a.t(), a.t(), out=a.t()),
        lambda t, a, w: t.sum(a[1:], 0, out=a[0]),
    ],
)
def test_what_is_read_once_or_lies_elsewhere_is_written(body: Body) -> None:
    some = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert_same(body, some, some.T.copy())


def test_what_is_missing_says_what_to_do_where_that_is_known() -> None:
    t = simulated()
    with pytest.raises(AttributeError, match=r"no torch.autocast. Give .* x.half\(\)"):
        t.autocast("cuda")
    with pytest.raises(AttributeError, match="has no torch.Tensor.median. It has str"):
        t.ones(3).median(0)
    with pytest.raises(AttributeError, match="has no gradients"):
        t.ones(3).requires_grad_()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (lambda t: t.round(t.ones(3), decimals=2), "`decimals` of torch.round"),
        (lambda t: t.ones(3).round(decimals=2), "`decimals` of torch.Tensor.round"),
        (lambda t: t.randn(3, generator=7), "`generator` of torch.randn"),
        (
            lambda t: t.nn.functional.softmax(t.ones(3), dim=0, _stacklevel=3),
            "`_stacklevel` of torch.nn.functional.softmax",
        ),
    ],
)
def test_an_option_that_is_missing_is_told_as_all_else_is(body: Any, told: str) -> None:
    with pytest.raises(AttributeError, match=f"The simulated GPU has no {told}. It"):
        body(simulated())


def test_a_number_of_the_host_may_come_along() -> None:
    t = simulated()
    assert (t.ones(3, device="cuda") * t.tensor(2.0)).tolist() == [2, 2, 2]


def test_memory_of_the_gpu_is_no_array() -> None:
    t = simulated()
    with pytest.raises(
        TypeError, match="can't convert cuda:0 device type tensor to nu"
    ):
        t.ones(3, device="cuda").numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        np.asarray(t.ones(3, device="cuda"))


def test_an_array_of_host_memory_is_only_looked_at() -> None:
    array = simulated().ones(3).numpy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2


def test_memory_of_the_gpu_is_not_pinned() -> None:
    t = simulated()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        t.ones(3, device="cuda").pin_memory()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        t.empty(3, device="cuda", pin_memory=True)


def test_there_is_one_gpu_of_bounded_memory() -> None:
    t = simulated()
    assert t.cuda.is_available() and t.cuda.device_count() == 1
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        t.empty(3, device="cuda:1")
    with pytest.raises(RuntimeError, match="out of memory"):
        t.empty(1 << 40, device="cuda")


def test_a_graph_is_captured_before_it_is_replayed_and_once() -> None:
    t = simulated()
    graph = t.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with t.cuda.graph(graph):
        pass
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        with t.cuda.graph(graph):
            pass
    graph.reset()
    with t.cuda.graph(graph):
        assert t.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="captured on a non-default stream"):
        t.cuda.CUDAGraph().capture_begin()
