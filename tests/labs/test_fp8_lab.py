"""The lab on FP8: codes are PyTorch's, bounds are tight, and mistakes are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.lab_checks import check_all
from warpbook_labs.cases.preparation import OwnPython
from warpbook_labs.cases.sampling import hidden_cases, large_cases, public_cases
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load

FP8 = load(CATALOGUE / "precision" / "fp8_linear")
CASES: dict[str, Any] = FP8.cases.inputs.__globals__
E4M3 = torch.float8_e4m3fn

#: a wrong solution, the public case that shows it, and how what is told begins
MISTAKES = [
    ("divided_in_half", 0, "out["),
    ("does_not_pad", 2, "Line 18: ValueError: 5 x 37 times 37 x 11: 16 must divide"),
    ("does_not_saturate", 1, "out["),
    ("forgets_the_weights_scale", 0, "out["),
    ("largest_after_saturation", 1, "largest[0] is "),
    ("largest_of_signed_numbers", 0, "largest[0] is "),
    ("scale_of_the_last_step_only", 0, "out["),
    ("scale_of_this_step", 0, "out["),
    ("scaled_in_half", 2, "out["),
    ("sums_to_half_before_they_are_scaled", 0, "out["),
    ("two_bits_of_fraction", 0, "out["),
    ("weights_as_whole_numbers", 0, "out["),
]


@pytest.fixture(scope="module")
def given_module() -> dict[str, Any]:
    module: dict[str, Any] = {}
    exec(FP8.given, module)
    return module


@pytest.mark.parametrize(("name", "shown_by", "reason"), MISTAKES)
def test_a_mistake_is_told_as_what_it_is(name: str, shown_by: int, reason: str) -> None:
    case = public_cases(FP8.lab)[shown_by]
    [result] = check_all(FP8, FP8.wrong[f"{name}.py"], [case]).cases
    assert not result.passed
    assert result.message.startswith(reason)


def test_every_wrong_solution_has_its_reason_above() -> None:
    assert {f"{name}.py" for name, *_ in MISTAKES} == set(FP8.wrong)


# codes


def test_in_timed_calls_every_right_division_gives_the_same_codes() -> None:
    """Their bound is that of one call, so no scale may have more ties than another."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    numbers = torch.from_numpy(x[np.abs(x) < 4]).float()
    python, sizes = OwnPython(FP8), {**FP8.lab.speed.sizes, "tokens": 1, "outputs": 1}
    given = python.inputs({**sizes, "steps": 400}, "random", np.random.default_rng(3))
    odd = np.unique(given["past"])
    assert len(odd) > 100
    # an even one, for what is asked not to be asked of nothing
    for most in [*odd.tolist(), 1536 / 256]:
        most_sized = torch.tensor(most)
        exact = numbers / (most_sized / 448)
        # smaller ones are codes without all places, which weigh nothing
        seen = exact.abs() >= 2.0**-6
        divided = exact[seen].to(E4M3).float()
        scaled = (numbers * (448 / most_sized))[seen].to(E4M3).float()
        assert torch.equal(divided, scaled) == (most in odd)


@pytest.mark.parametrize("largest", [448.0, 4.7578125, 5.99, 61.3, 60000.0, 1e-3])
def test_codes_have_the_bits_that_pytorch_gives_them(largest: float) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = torch.from_numpy(every[np.isfinite(every)].copy())
    exact = x.float() / (torch.tensor(largest) / 448)
    exact = exact[exact.abs() <= 448]
    # without a scale each of them, ties and subnormal ones among them
    assert largest != 448 or len(exact) > 48_000
    bits = CASES["bits_of"](exact.numpy().astype(np.float64))
    np.testing.assert_array_equal(bits, exact.to(E4M3).view(torch.uint8).numpy())


def test_every_code_is_the_number_that_it_is_to_pytorch() -> None:
    every = torch.arange(256).to(torch.uint8)
    numbers = every.view(E4M3).float()
    finite = numbers.isfinite()
    assert int(finite.sum()) == 254
    ours = CASES["numbers_of"](every.numpy())
    np.testing.assert_array_equal(ours[finite.numpy()], numbers[finite].numpy())
    again = CASES["bits_of"](ours)[finite.numpy()]
    np.testing.assert_array_equal(again, every[finite].numpy())


def test_what_is_too_large_is_448_whatever_the_cast_does() -> None:
    beyond = np.array([448, 463.9, 464.1, 480, 1e4, np.inf])
    assert CASES["bits_of"](beyond).tolist() == [0x7E] * 6
    assert CASES["bits_of"](-beyond).tolist() == [0xFE] * 6


# values and bounds


def drawn(values: str, seed: int = 1) -> tuple[Any, Any, Any]:
    sizes = {"tokens": 24, "features": 96, "outputs": 32, "steps": 16}
    python = OwnPython(FP8)
    given = python.inputs(sizes, values, np.random.default_rng(seed))
    right = python.expected(given, sizes)
    return given, right, python.tolerance(given, sizes, right)


def outputs(given: dict[str, Any], codes: Any) -> Any:
    """The result with other codes of x."""
    w = CASES["numbers_of"](given["weight"])
    scale = float(given["past"].max()) / 448
    return codes.astype(np.float64) @ w.T * (scale * given["weight_scale"])


@pytest.mark.parametrize("values", ["random", "surprise", "positive", "large"])
def test_what_other_codes_would_give_is_far_outside_the_tolerance(values: str) -> None:
    given, right, allowed = drawn(values)
    exact = given["x"].astype(np.float64) / (float(given["past"].max()) / 448)
    exact = np.clip(exact, -448, 448)
    held = torch.from_numpy(exact.astype(np.float32))
    steps = CASES["numbers_of"](CASES["bits_of"](exact))
    # towards zero: the code before, where the nearest is larger
    bits = CASES["bits_of"](exact) - (np.abs(steps) > np.abs(exact)).astype(np.uint8)
    others = {
        "e5m2": held.to(torch.float8_e5m2).float().numpy(),
        "cut off": CASES["numbers_of"](bits),
        "none": exact,
    }
    assert np.abs(outputs(given, steps) - right["out"]).max() == 0
    for name, codes in others.items():
        ratio = np.abs(outputs(given, codes) - right["out"]) / allowed["out"]
        # of positive numbers roundings to the nearest cancel, and the bound is wider
        assert np.median(ratio) > (1.2 if values == "positive" else 3), name


def test_the_tolerance_is_some_thousandths_of_the_result() -> None:
    for values in FP8.lab.hidden.values:
        _, right, allowed = drawn(values)
        size = np.sqrt((right["out"] ** 2).mean())
        assert 1e-3 < np.median(allowed["out"]) / size < 5e-3 or values == "small_rows"
        assert allowed["largest"] == 0


def test_either_code_is_right_where_a_number_lies_in_the_middle() -> None:
    sizes = {"tokens": 1, "features": 4, "outputs": 1, "steps": 1}
    given = {
        # 17 lies between 16 and 18, 2^-10 between 0 and 2^-9, and 20 is a code
        "x": np.array([[17, 2.0**-10, 20, -448]], np.float16),
        "weight": CASES["bits_of"](np.array([[1.0, 256, 1, 1]])),
        "past": np.array([448], np.float32),
        "weight_scale": 1.0,
    }
    python = OwnPython(FP8)
    right = python.expected(given, sizes)
    allowed = python.tolerance(given, sizes, right)["out"][0, 0]
    # halves to even
    assert right["out"][0, 0] == 16 + 0 + 20 - 448
    near = 2 + 2.0**-9 * 256
    roundings = 2.0**-9 * np.hypot(16, np.hypot(20, 448)) + 3 * 2.0**-10 * 412
    assert near < allowed < near + roundings


def as_tensor_cores_add(codes: Any, w: Any, is_fast: bool) -> Any:
    """Give sums as an H200 was seen to add them up.

    32 products and the sum so far lose what is below 2^-13 of the largest of them. Of
    128 products what is left is added in float32, unless sums are to be fast.
    """
    spare = [(0, 0), (0, -codes.shape[1] % 32)]
    codes, w = np.pad(codes, spare), np.pad(w, spare)
    total = np.zeros((len(codes), len(w)))
    held = total.copy()
    for begin in range(0, codes.shape[1], 32):
        if begin % 128 == 0 and not is_fast:
            total, held = total + held, np.zeros_like(held)
        part = slice(begin, begin + 32)
        products = codes[:, None, part] * w[None, :, part]
        addends = np.concatenate([products, held[..., None]], axis=2)
        _, exponents = np.frexp(np.abs(addends).max(axis=2, keepdims=True))
        last = np.ldexp(1.0, exponents - 1 - 13)
        held = (np.trunc(addends / last) * last).sum(axis=2)
    return total + held


def of_tolerance(features: int, is_fast: bool) -> Any:
    """Give how much of the tolerance sums of positive products on tensor cores take."""
    sizes = {"tokens": 300, "features": features, "outputs": 100, "steps": 16}
    python = OwnPython(FP8)
    given = python.inputs(sizes, "positive", np.random.default_rng(features))
    right = python.expected(given, sizes)
    scale = float(given["past"].max()) / 448
    codes = CASES["numbers_of"](CASES["bits_of"](given["x"].astype(float) / scale))
    sums = as_tensor_cores_add(codes, CASES["numbers_of"](given["weight"]), is_fast)
    out = (sums * (scale * given["weight_scale"])).astype(np.float16).astype(float)
    allowed = python.tolerance(given, sizes, right)["out"]
    return np.abs(out - right["out"]) / allowed


# 2^-10 of the result was too little: of 128 products an H200 needed 1.2 times as much
@pytest.mark.parametrize("features", [32, 64, 100, 128, 131, 160, 256, 512, 2048])
def test_sums_of_tensor_cores_are_right_with_room(features: int) -> None:
    assert of_tolerance(features, is_fast=False).max() < 0.85


@pytest.mark.parametrize("features", [512, 2048])
def test_fast_sums_of_many_positive_products_are_wrong(features: int) -> None:
    assert of_tolerance(features, is_fast=True).min() > 1


def test_results_are_within_float16_and_past_says_what_the_kind_of_values_is() -> None:
    python = OwnPython(FP8)
    seen = set()
    for seed in range(4):
        for case in [*hidden_cases(FP8.lab, seed), *large_cases(FP8.lab, seed)]:
            given = python.inputs(
                case.sizes, case.values, np.random.default_rng(case.seed)
            )
            right = python.expected(given, case.sizes)
            assert np.isfinite(right["out"]).all()
            assert np.abs(right["out"]).max() < 60_000
            past = float(given["past"].max())
            assert past > 0
            assert (right["largest"][0] > 2 * past) == (case.values == "surprise")
            assert (right["largest"][0] > past) == (case.values == "surprise")
            assert not np.isin(given["weight"], (0x7F, 0xFF)).any()
            seen.add(case.values)
    assert seen == set(FP8.lab.hidden.values)


@pytest.mark.parametrize("values", ["random", "positive", "large"])
def test_nobody_knows_the_largest_number_of_a_large_x(values: str) -> None:
    sizes = {"tokens": 64, "features": 4096, "outputs": 16, "steps": 4}
    largest = [
        float(np.abs(given["x"]).max())
        for seed in range(8)
        for given in [FP8.cases.inputs(sizes, values, np.random.default_rng(seed))]
    ]
    assert len(set(largest)) > 4


def test_the_case_of_a_mistake_about_past_has_room_for_it() -> None:
    for case in public_cases(FP8.lab)[:1]:
        given = OwnPython(FP8).inputs(
            case.sizes, case.values, np.random.default_rng(case.seed)
        )
        past, x = given["past"], given["x"].astype(float)
        assert past.argmax() != len(past) - 1 and past.max() > past[-1] * 1.05
        assert x.max() < np.abs(x).max() < past.max()


# given.py


def ready(rows: int = 3, depth: int = 32, columns: int = 16) -> list[Any]:
    a, b = torch.ones(rows, depth), torch.full((columns, depth), 2.0)
    return [a.to(E4M3), b.to(E4M3).t(), torch.tensor(0.5), torch.tensor([0.25])]


def test_the_product_is_scaled_in_fp32_and_rounded_once(
    given_module: dict[str, Any],
) -> None:
    result = given_module["fp8_matmul"](*ready())
    assert result.dtype == torch.float16 and result.shape == (3, 16)
    assert (result == 32 * 2 / 8).all()
    a, b, *_ = ready(depth=2048)
    # 448 * 448 * 2,048 is beyond what float16 holds, until it is scaled
    a.copy_(torch.full(a.shape, 448.0)), b.copy_(torch.full(b.shape, 448.0))
    small = torch.tensor(1 / 448)
    fast = given_module["fp8_matmul"](a, b, small, small, fast_sums=True)
    assert (fast == 2048).all()


@pytest.mark.parametrize(
    ("place", "other", "words"),
    [
        (0, torch.ones(3, 32), "a is torch.float32, and must be float8_e4m3fn"),
        (1, torch.ones(32, 16).byte(), "b is torch.uint8, and must be float8_e4m3fn"),
        (0, torch.ones(32).to(E4M3), "a has 1 sides, and must have 2"),
        (0, torch.ones(3, 16).to(E4M3), "3 x 16 times 32 x 16: 16 is not 32"),
        (1, torch.ones(11, 32).to(E4M3).t(), "16 must divide 32 and 11"),
        (0, torch.ones(32, 3).to(E4M3).t(), "rows of a must lie in one piece"),
        (1, torch.ones(32, 16).to(E4M3), "columns of b must lie in one piece"),
        (2, 0.5, "scale_a must be a tensor of one element"),
        (3, torch.ones(16), "scale_b must be a tensor of one element"),
        (3, torch.ones(1).half(), "scale_b is torch.float16 on cpu, and must be"),
    ],
)
def test_what_fp8_matmul_does_not_take_is_refused_in_words(
    given_module: dict[str, Any], place: int, other: Any, words: str
) -> None:
    arguments = ready()
    arguments[place] = other
    with pytest.raises(ValueError) as raised:
        given_module["fp8_matmul"](*arguments)
    assert words in str(raised.value)
    odd = [torch.ones(3, 37).to(E4M3), torch.ones(16, 37).to(E4M3).t(), *ready()[2:]]
    with pytest.raises(ValueError, match="16 must divide 37 and 16"):
        given_module["fp8_matmul"](*odd)
