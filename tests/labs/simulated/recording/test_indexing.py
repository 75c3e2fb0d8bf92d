"""Rows and elements that are chosen by tensors of numbers are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.labs.simulated.recording.pair import Body, assert_same, outcome, simulated
from tests.labs.simulated.recording.running import kinds, of_kind, record
from tests.labs.simulated.recording.test_judged_again import assert_judged
from warpbook_labs.simulated.program import Allocate, Copy, Launch
from warpbook_labs.simulated.recording.refusing import Missing

X = np.random.default_rng(1).standard_normal((3, 4, 4)).astype(np.float32)
I = np.array([2, 0], np.int64)  # noqa: E741 - as short as in the bodies
G = np.array([[0, 1], [1, 0]], np.int64)

#: of a cube x, numbers i and a matrix of numbers g
CHOSEN: dict[str, Body] = {
    "rows": lambda t, x, i, g: x[i],
    "rows from the end": lambda t, x, i, g: x[i - 1],
    "rows, int32": lambda t, x, i, g: x[i.int()],
    "rows, int16": lambda t, x, i, g: x[i.short()],
    "rows, float": lambda t, x, i, g: x[i.float()],
    "rows, beyond": lambda t, x, i, g: x[i + 2],
    "rows, before": lambda t, x, i, g: x[i - 5],
    "rows of some columns": lambda t, x, i, g: x[i, 0:2],
    "rows of one column": lambda t, x, i, g: x[i, 1],
    "rows of no column": lambda t, x, i, g: x[i, 5],
    "one row's elements": lambda t, x, i, g: x[1, i],
    "columns": lambda t, x, i, g: x[:, i],
    "the last side": lambda t, x, i, g: x[..., i],
    "before the last": lambda t, x, i, g: x[:, i, 1:3],
    "a new side": lambda t, x, i, g: x[i, None],
    "a new side first": lambda t, x, i, g: x[None, i],
    "pairs": lambda t, x, i, g: x[i, i],
    "pairs, wide": lambda t, x, i, g: x[g, i],
    "pairs, crossed": lambda t, x, i, g: x[i[:, None], i],
    "pairs apart": lambda t, x, i, g: x[i, :, i],
    "pairs about a number": lambda t, x, i, g: x[i, 0, i],
    "pairs that don't meet": lambda t, x, i, g: x[i, t.tensor([0, 1, 2])],
    "triples": lambda t, x, i, g: x[i, i, i],
    "too many": lambda t, x, i, g: x[i, i, i, i],
    "a number": lambda t, x, i, g: x[t.tensor(1)],
    "a number and numbers": lambda t, x, i, g: x[t.tensor(1), i],
    "a list": lambda t, x, i, g: x[[2, 0]],
    "a list of nothing": lambda t, x, i, g: x[[]],
    "lists": lambda t, x, i, g: x[[2, 0], [1, 1]],
    "a range": lambda t, x, i, g: x[range(2)],
    "an array": lambda t, x, i, g: x[np.array([2, 0])],
    "turned": lambda t, x, i, g: x.mT[i],
    "turned, of columns": lambda t, x, i, g: x.permute(2, 0, 1)[:, i],
    "turned numbers": lambda t, x, i, g: x[g.t()],
    "both turned": lambda t, x, i, g: x.permute(2, 0, 1)[g.t(), g],
    "index_select": lambda t, x, i, g: t.index_select(x, -1, i),
    "gather": lambda t, x, i, g: t.gather(x[0], 1, g),
    "gather rows": lambda t, x, i, g: x.gather(0, i[:, None, None].expand(-1, 4, 2)),
    "gather, int32": lambda t, x, i, g: x[0].gather(0, g.int()),
    "gather, int16": lambda t, x, i, g: x[0].gather(0, g.short()),
    "gather, turned": lambda t, x, i, g: x[0].t().gather(1, g.t()),
    "gather, sides": lambda t, x, i, g: x.gather(0, i),
    "gather, too wide": lambda t, x, i, g: x[0].gather(0, g.repeat(1, 3)),
    "gather, one number": lambda t, x, i, g: x[0, 0, 0].gather(0, i * 0),
    "gather, out": lambda t, x, i, g: t.gather(x[0], 1, g, out=t.empty(2, 2)),
    "gather, out of double": lambda t, x, i, g: t.gather(
        x[0], 1, g, out=t.empty(2, 2, dtype=t.float64)
    ),
    "take_along_dim": lambda t, x, i, g: t.take_along_dim(x[0], g[:1], 1),
    "take_along_dim, sorted": lambda t, x, i, g: x.take_along_dim(x.argsort(1), 1),
    "take_along_dim, end": lambda t, x, i, g: x[0].take_along_dim(g[:1] - 1, dim=0),
    "take_along_dim, flat": lambda t, x, i, g: t.take_along_dim(x, i),
    "take_along_dim, int32": lambda t, x, i, g: t.take_along_dim(x[0], g.int(), 0),
    "take_along_dim, sides": lambda t, x, i, g: t.take_along_dim(x, i, 0),
    "take_along_dim, shapes": lambda t, x, i, g: t.take_along_dim(x[0], g, 0),
    "take": lambda t, x, i, g: t.take(x, g * 20),
    "take, from the end": lambda t, x, i, g: x.take(g.t() - 2),
    "take, int32": lambda t, x, i, g: t.take(x, g.int()),
    "take, beyond": lambda t, x, i, g: t.take(x, g + 50),
    "embedding": lambda t, x, i, g: t.embedding(x[0], g),
    "embedding, from the end": lambda t, x, i, g: t.embedding(x[0], g - 1),
    "embedding, float": lambda t, x, i, g: t.embedding(x[0], g.float()),
    "F.embedding": lambda t, x, i, g: t.nn.functional.embedding(g.t(), x[0]),
    "nn.Embedding": lambda t, x, i, g: t.nn.Embedding.from_pretrained(x[0])(g),
    "nn.Embedding, sides": lambda t, x, i, g: t.nn.Embedding.from_pretrained(x),
    "argsort": lambda t, x, i, g: t.argsort(x.round(), 0, True),
    "argsort, stable": lambda t, x, i, g: x.round().argsort(stable=True),
    "sort, equal ones": lambda t, x, i, g: t.sort(x > 0, dim=2, descending=True)[1],
}


def _written(write: Callable[..., Any]) -> Body:
    def body(t: Any, x: Any, i: Any, g: Any) -> Any:
        write(t, x, i, g)
        return x

    return body


PUT: dict[str, Body] = {
    name: _written(write)
    for name, write in {
        "rows": lambda t, x, i, g: x.__setitem__(i, x[:2] * 2),
        "rows from the end": lambda t, x, i, g: x.__setitem__(i - 1, x[:2] * 2),
        "one row": lambda t, x, i, g: x.__setitem__(i, x[1, 1] * 2),
        "a number": lambda t, x, i, g: x.__setitem__(i, 2),
        "a tensor of a number": lambda t, x, i, g: x.__setitem__(i, t.tensor(2.0)),
        "ones first": lambda t, x, i, g: x.__setitem__((0, i), x[None, None, :1, 1]),
        "columns": lambda t, x, i, g: x.__setitem__((slice(None), i), x[:, :2] * 2),
        "pairs": lambda t, x, i, g: x.__setitem__((i, i), x[0, :2] * 2),
        "pairs apart": lambda t, x, i, g: x.__setitem__((i, slice(2), i), -1.0),
        "another type": lambda t, x, i, g: x.__setitem__(i, x[:2].double()),
        "whole numbers": lambda t, x, i, g: x.__setitem__(i, t.tensor(2)),
        "shapes": lambda t, x, i, g: x.__setitem__(i, t.ones(3)),
        "its own rows": lambda t, x, i, g: x.__setitem__(i, x[:2]),
        "beyond": lambda t, x, i, g: x.__setitem__(i + 2, 1.0),
        "added": lambda t, x, i, g: x.__setitem__(i, x[i] + 1),
        "index_put_": lambda t, x, i, g: x.index_put_((i, i), t.tensor(3.0)),
        "index_put_, slice": lambda t, x, i, g: x.index_put_((slice(1),), x[0]),
        "index_copy_": lambda t, x, i, g: x.index_copy_(1, i, x[:, :2] * 2),
        "index_copy_, end": lambda t, x, i, g: x.index_copy_(0, i - 1, x[:2] * 2),
        "index_copy_, shapes": lambda t, x, i, g: x.index_copy_(0, i, x[:2, :1] * 2),
        "index_copy_, count": lambda t, x, i, g: x.index_copy_(0, i, x * 2),
        "index_copy_, int32": lambda t, x, i, g: x.index_copy_(0, i.int(), x[:2] * 2),
        "index_copy_, matrix": lambda t, x, i, g: x.index_copy_(0, g, x[:2] * 2),
        "index_copy_, double": lambda t, x, i, g: x.index_copy_(0, i, x[:2].double()),
        "index_copy_, own": lambda t, x, i, g: x.index_copy_(0, i, x[:2]),
        "index_copy_, number": lambda t, x, i, g: x.index_copy_(0, i, 2),
        "index_copy": lambda t, x, i, g: t.index_copy(x, 0, i, x[:2] * 2).mul_(2),
    }.items()
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_chosen_is_pytorchs(name: str) -> None:
    assert_same(CHOSEN[name], X, I, G)


@pytest.mark.parametrize("name", PUT)
def test_what_is_put_somewhere_is_pytorchs(name: str) -> None:
    assert_same(PUT[name], X, I, G)


@pytest.mark.parametrize(
    "name", ["pairs, crossed", "pairs apart", "gather", "take", "embedding", "turned"]
)
def test_it_is_computed_again_by_the_numbers_that_count(name: str) -> None:
    assert_judged(CHOSEN[name], X, I, G)


@pytest.mark.parametrize("name", ["rows", "pairs apart", "index_copy_", "a number"])
def test_it_is_put_again_where_the_numbers_that_count_say(name: str) -> None:
    assert_judged(PUT[name], X, I, G)


@pytest.mark.parametrize("place", ["host", "pinned"])
@pytest.mark.parametrize("use", ["y = d[i]", "d[i] = d[:2] * 1", "y = d[i, 1:3]"])
def test_numbers_of_the_host_are_copied_and_waited_for(place: str, use: str) -> None:
    program = record(f"import torch\n{use}", {"i": (I, place), "d": (X[0], "device")})
    (copy,) = of_kind(program, Copy)
    assert not copy.is_asynchronous and copy.source.shape == (2,)
    assert kinds(program)[-1] in ("index", "index_put", "Release")


def test_numbers_of_python_are_copied_as_pytorch_copies_them() -> None:
    program = record("d[[2, 0]] = 5.0\ny = d[:2, [1]]", {"d": (X[0], "device")})
    names = [each.operation for each in of_kind(program, Launch)]
    assert names == ["constant", "constant", "index_put", "constant", "index"]
    assert [one.is_asynchronous for one in of_kind(program, Copy)] == [False] * 3
    places = [one.place for one in of_kind(program, Allocate)]
    assert places == ["pageable", "device"] * 3 + ["device"]


def test_numbers_of_the_gpu_choose_nothing_on_the_host() -> None:
    t = simulated()
    with pytest.raises(RuntimeError, match="indices should be either on cpu or on the"):
        t.ones(3)[t.zeros(2, dtype=t.int64, device="cuda")]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (lambda t, x: x[x > 0], r"masks but x\[mask\] = number.* Use `torch.where`"),
        (lambda t, x: x[[True, False, True]], "masks"),
        (lambda t, x: x[[[0, 1], [1, 0]]], "lists of anything but numbers"),
        (lambda t, x: x.mT.take(t.tensor([1])), r"not contiguous.* Use x.contiguous\("),
        (lambda t, x: t.nn.Embedding(3, 4), "from_pretrained"),
        (lambda t, x: x.scatter_(0), "Use `x.index. = rows` or `x.index_copy_`"),
    ],
)
def test_what_can_not_be_chosen_so_has_another_way(body: Body, told: str) -> None:
    got = outcome(body, simulated(), [X])
    assert isinstance(got, Missing)
    with pytest.raises(Missing, match=told):
        raise got
