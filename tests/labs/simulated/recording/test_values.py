"""What is computed has the values, types and orders that PyTorch's results have."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.labs.simulated.recording.pair import Body, assert_same

DTYPES = [
    *("float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "bool"),
]


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    """None of them 0, by which whole numbers can't be divided."""
    drawn = np.random.default_rng(seed).uniform(-4, 4, shape)
    drawn = np.where(np.abs(drawn) < 1, 2.0, drawn)
    if dtype == "bool":
        return np.ones(shape, bool) if seed % 2 else drawn > 0
    if dtype == "uint8":
        drawn = np.abs(drawn)
    return (drawn if dtype.startswith("float") else drawn.round()).astype(dtype)


def method(name: str, *arguments: Any, **options: Any) -> Body:
    return lambda t, x, *others: getattr(x, name)(*others, *arguments, **options)


def function(name: str, *arguments: Any, **options: Any) -> Body:
    return lambda t, *tensors: getattr(t, name)(*tensors, *arguments, **options)


def functional(name: str, *arguments: Any, **options: Any) -> Body:
    return lambda t, *tensors: getattr(t.nn.functional, name)(
        *tensors, *arguments, **options
    )


_SYMBOLS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "lt",
    "ne",
    "and_",
]
_ROUNDED = ["floor", "ceil", "round", "neg", "abs", "relu", "bitwise_not"]
_FLOATS = ["sqrt", "rsqrt", "exp", "log", "log2", "tanh", "sigmoid", "reciprocal"]
_TESTS = ["isnan", "isfinite", "isinf", "logical_not"]

ONE = {
    **{
        name: function(name)
        for name in [*_ROUNDED, *_FLOATS, "sin", "cos", "erf", *_TESTS]
    },
    **{
        f"x {symbol} {number}": (
            lambda t, x, s=symbol, n=number: getattr(operator, s)(x, n)
        )
        for symbol in _SYMBOLS
        for number in (3, 1.5)
    },
    **{
        f"{number} {symbol} x": (
            lambda t, x, s=symbol, n=number: getattr(operator, s)(n, x)
        )
        for symbol in _SYMBOLS
        for number in (3, 1.5)
    },
    **{f"{name}(2.5)": method(name, 2.5) for name in ("add_", "mul_", "div_", "fill_")},
    **{name: function(name) for name in ("sum", "mean", "prod", "amax", "amin")},
    **{name: function(name) for name in ("all", "any", "max", "min")},
    **{name: function(name) for name in ("argmax", "argmin")},
    **{
        f"{name}({dim}, {kept})": method(name, dim, keepdim=kept)
        for name in ("sum", "mean", "amax", "argmin", "any")
        for dim in (0, -1)
        for kept in (False, True)
    },
    "max and where": lambda t, x: t.stack([*map(t.Tensor.float, x.max(1))]),
    "sum of both": method("sum", (0, 1)),
    "sum in double": lambda t, x: x.sum(dtype=t.float64),
    "cumsum": method("cumsum", 1),
    "softmax": method("softmax", 0),
    "log_softmax": functional("log_softmax", dim=-1),
    "clamp": method("clamp", -1, 2),
    "clamp float": method("clamp", -1.5, 2),
    "clamp min": method("clamp", min=0.5),
    "clamp_": method("clamp_", max=1),
    "clamp_max_": method("clamp_max_", 1),
    "where": lambda t, x: t.where(x > 0, x, 0.5),
    "gelu": functional("gelu"),
    "gelu tanh": functional("gelu", approximate="tanh"),
    "silu": functional("silu"),
    "transposed": lambda t, x: x.t() * 2,
    "of a slice": lambda t, x: x[:, ::2] + 1,
    "index": lambda t, x: x[t.tensor([2, 0])],
    "mask": lambda t, x: x.float().masked_fill(x > 1, -7),
    "half": method("half"),
    "to int": method("int"),
    "to bool": method("bool"),
    "to double": lambda t, x: x.to(t.float64),
    "eye": lambda t, x: t.eye(4) + x[0],
    "arange": lambda t, x: t.arange(1, 12, 3) * x[0],
    "arange float": lambda t, x: t.arange(0.5, 2.5, 0.5) + x[0],
    "full": lambda t, x: t.full((3, 4), 2) * x,
    "like": lambda t, x: t.zeros_like(x.t()) + t.ones_like(x.t()),
    **{
        f"{name}({dim}, {kept})": method(name, dim, keepdim=kept)
        for name in ("std", "var")
        for dim in (0, (0, 1))
        for kept in (False, True)
    },
    "std, biased": lambda t, x: x.std(1, unbiased=False),
    "var, biased": lambda t, x: t.var(x, dim=1, correction=0),
    "std of all": method("std"),
    "aminmax": lambda t, x: t.stack([*t.aminmax(x, dim=1)]),
    "norm": method("norm"),
    "norm of rows": lambda t, x: t.norm(x, dim=1, keepdim=True),
    "norm 1": method("norm", 1, 0),
    "norm inf": method("norm", float("inf"), (0, 1)),
    "vector_norm": lambda t, x: t.linalg.vector_norm(x, 3, dim=0),
    "normalize": functional("normalize"),
    "normalize, inf": functional("normalize", p=float("inf"), dim=0),
    "topk": lambda t, x: x.topk(2, 1).values,
    "topk, smallest": lambda t, x: x.topk(2, dim=0, largest=False)[0],
    "topk, too many": lambda t, x: x.topk(5, 1),
    "sort": lambda t, x: t.sort(x, descending=True).values,
    "nan_to_num": method("nan_to_num"),
    "nan_to_num_": method("nan_to_num_", 3.0),
    "flip": lambda t, x: x.t().flip(0, -1),
    "flip, twice": lambda t, x: t.flip(x, (1, -1)),
    "pad": functional("pad", (1, 2, 0, 1), value=3.0),
    "linspace": lambda t, x: t.linspace(-1, 3, 4) + x[0],
    "new_full": lambda t, x: x.new_full((2, 3), 2),
    "new_tensor": lambda t, x: x.new_tensor([1, 0]),
    "requires_grad_": lambda t, x: x.requires_grad_(False) * 2,
    "finfo": lambda t, x: (
        t.finfo(x.dtype).max,
        t.finfo(x.dtype).tiny,
        t.finfo(x.dtype).eps,
        t.finfo(x.dtype).bits,
    ),
    "einsum, turned": lambda t, x: t.einsum("ij->ji", x),
    "broadcast_to": lambda t, x: t.broadcast_to(x[0], (2, 4)).swapaxes(0, 1) * 2,
    "is_floating_point": lambda t, x: t.is_floating_point(x),
    "iinfo": lambda t, x: (t.iinfo(x.dtype).max, t.iinfo(x.dtype).min),
    "new": lambda t, x: x.new_zeros(2, 3) + x.new_ones((2, 3)),
}
TWO = {
    **{
        name: function(name)
        for name in ("add", "sub", "mul", "div", "maximum", "minimum", "remainder")
    },
    **{
        name: function(name) for name in ("eq", "le", "gt", "logical_xor", "bitwise_or")
    },
    **{name: method(name) for name in ("add_", "mul_", "sub_", "div_", "copy_")},
    "divided down": function("div", rounding_mode="floor"),
    "divided to 0": function("div", rounding_mode="trunc"),
    "filled": lambda t, x, y: x.fill_(y[0, 0]),
    "no dimensions": lambda t, x, y: x + y[0, 0],
    "a row": lambda t, x, y: x * y[1],
    "lerp": function("lerp", 0.3),
    "where": lambda t, x, y: t.where(x > 0, x, y),
    "cat": lambda t, x, y: t.cat([x, y], 1),
    "stack": lambda t, x, y: t.stack([x, y], -1),
    "mm": lambda t, x, y: x @ y.t(),
    "mv": lambda t, x, y: x @ y[0],
    "dot": lambda t, x, y: x[0] @ y[0],
    "bmm": lambda t, x, y: t.bmm(x.view(3, 2, 2), y.view(3, 2, 2)),
    "batch": lambda t, x, y: x.view(3, 1, 2, 2) @ y.view(3, 2, 2),
    "linear": lambda t, x, y: t.nn.functional.linear(x, y, y[:, 0]),
    "linear, more sides": lambda t, x, y: t.nn.functional.linear(
        x.view(3, 2, 2), y[:, :2]
    ),
    "mv and dot": lambda t, x, y: t.mv(x, y[0]) + t.dot(x[1], y[2]),
    "dot, wrong": lambda t, x, y: t.dot(x[0], y[:, 0]),
    "outer": lambda t, x, y: t.outer(x[0], y[:, 1]),
    "vstack": lambda t, x, y: t.vstack([x, y[0]]),
    "hstack": lambda t, x, y: t.hstack((x, y)),
    **{
        f"einsum {form}": lambda t, x, y, form=form: t.einsum(form, x, y).contiguous()
        for form in (
            "ij,kj->ik",
            "ij,kj->ki",
            "ij,ij->ij",
            "ij,ij->j",
            "ij,kl",
            "ij,ij",
        )
    },
    "einsum, more sides": lambda t, x, y: t.einsum(
        "nij,nkj->nik", x.view(3, 2, 2), y.view(3, 2, 2)
    ).contiguous(),
    "einsum, shapes": lambda t, x, y: t.einsum("ij,jk->ik", x, y),
    "einsum, sides": lambda t, x, y: t.einsum("ij,j->i", x, y),
    "addcmul": lambda t, x, y: t.addcmul(x, x, y, value=2),
    "addcdiv": lambda t, x, y: t.addcdiv(x, x, y),
    "addcdiv_": lambda t, x, y: x.addcdiv_(x.clone(), y, value=2),
    "baddbmm": lambda t, x, y: t.baddbmm(
        x.view(3, 1, 4), x.view(3, 2, 2), y.view(3, 2, 2).repeat(1, 1, 2), alpha=2
    ),
    "addmm": lambda t, x, y: t.addmm(x[:, :3], x, y.t(), beta=2, alpha=3),
    "both turned": lambda t, x, y: x.t() + y.t(),
    "one turned": lambda t, x, y: x.t() + y.reshape(4, 3),
    "assigned": lambda t, x, y: (x.__setitem__((slice(None), 1), y[:, 2]), x)[1],
    "out": lambda t, x, y: t.mul(x, y, out=t.empty_like(x)),
    "out of float": lambda t, x, y: t.mul(x, y, out=t.empty(3, 4)),
}
#: PyTorch's processor divides no whole number by False; GPUs do
_DIVIDES = ("div", "remainder", "mod x", "floordiv x", "divided")


@pytest.mark.parametrize("name", ONE)
def test_one_tensor_of_any_type(name: str) -> None:
    for dtype in DTYPES:
        if dtype == "bool" and any(word in name for word in ("mod", "pow", "floordiv")):
            continue
        assert_same(ONE[name], numbers(dtype, (3, 4), len(name)))


@pytest.mark.parametrize("name", TWO)
def test_two_tensors_of_any_types(name: str) -> None:
    some = ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"]
    for types in itertools.product(some, repeat=2):
        if "bool" in types and (name.startswith(_DIVIDES) or name == "remainder"):
            continue
        if types == ("bool", "bool") and name == "out of float":
            continue
        arrays = [numbers(dtype, (3, 4), seed) for seed, dtype in enumerate(types)]
        assert_same(TWO[name], *arrays)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_whole_numbers_are_shifted(dtype: str) -> None:
    some = numbers(dtype, (3, 4), 1)
    places = np.abs(numbers(dtype, (3, 4), 2))
    for shift in (operator.lshift, operator.rshift, operator.ilshift):
        assert_same(lambda t, x, s=shift: s(x, 2), some)
        assert_same(lambda t, x, y, s=shift: s(x, y), some, places)
    assert_same(lambda t, x: 2 << x, places)


def test_half_precision_is_rounded_once_after_sums_in_single_precision() -> None:
    ones = np.full(4096, 1.0009765625, np.float16)
    assert_same(lambda t, x: x.sum(), ones)
    assert_same(lambda t, x: x.view(1, -1) @ x.view(-1, 1), ones)


def test_what_is_not_finite_goes_on_as_in_pytorch() -> None:
    strange = np.array([np.nan, np.inf, -np.inf, -0.0, 1e38], np.float32)
    for name in ("relu", "sigmoid", "tanh", "sqrt", "sign", "exp"):
        assert_same(function(name), strange)
    assert_same(method("clamp", -1, 1), strange)
    for dtype in ("float16", "float32", "float64"):
        some = strange[:4].astype(dtype)
        assert_same(method("nan_to_num"), some)
        assert_same(method("nan_to_num", 1.5, neginf=-2.0), some)
    assert_same(lambda t, x: x.topk(3).values, strange)
    assert_same(function("maximum"), strange, strange[::-1].copy())
    assert_same(method("sum"), strange)
    assert_same(method("amax"), strange)
    assert_same(method("mean", 0), np.empty((0, 3), np.float32))
