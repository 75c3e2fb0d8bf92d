"""What the labs on precision promise beyond what every lab does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.lab_checks import check_all
from warpbook_labs.cases.preparation import OwnPython
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.engines.simulated.judging.calls import convolution
from warpbook_labs.engines.simulated.program import Launch, View
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load_all
from warpbook_labs.results.check import CaseResult

MOST_HALF = 65504.0
REPEAT, FIXED, CHANGING, HALF = 1, 2, 3, 4


@pytest.fixture(scope="module")
def labs() -> dict[str, LoadedLab]:
    return load_all()


# mixed precision


def trained(given: dict[str, Any]) -> list[list[Any]]:
    """The gradients of each step in float64, if no step moves a weight by much."""
    w1, w2 = given["w1"].astype(float), given["w2"].astype(float)
    steps = []
    for x, y in zip(given["x"].astype(float), given["y"].astype(float), strict=True):
        h = np.tanh(x @ w1.T)
        d = 2 * given["weight"] * (h @ w2.T - y)
        dz = d @ w2 * (1 - h * h)
        steps.append([d, dz, dz.T @ x, d.T @ h, x])
    return steps


def spoiled(step: list[Any], scale: float) -> bool:
    """Whether float16 has no number for something in it."""
    return any(
        np.abs(array).max() * by > MOST_HALF
        for array, by in zip(step, [scale] * 4 + [1.0], strict=True)
    )


def test_float16_learns_nothing_without_a_scale_and_overflows_where_it_is_planted(
    labs: dict[str, LoadedLab],
) -> None:
    loaded = labs["mixed-precision"]
    python = OwnPython(loaded)
    seen = set()
    for case in (case for seed in range(8) for case in hidden_cases(loaded.lab, seed)):
        given = python.inputs(case.sizes, case.values, np.random.default_rng(case.seed))
        steps = trained(given)
        first, halved = (
            [spoiled(step, scale) for step in steps] for scale in (65536.0, 32768.0)
        )
        skipped = sum(first)
        has_outlier = case.values == "outlier" or skipped == 2
        assert sum(halved) == skipped - has_outlier
        if has_outlier:
            # it fits in where a glitch before it has halved the scale
            outlier = [a != b for a, b in zip(first, halved, strict=True)].index(True)
            # with room on both sides
            assert spoiled(steps[outlier], 0.8 * 65536.0)
            assert not spoiled(steps[outlier], 1.2 * 32768.0)
            if case.values == "both":
                assert halved.index(True) < outlier
                skipped = 1
        right = python.expected(given, case.sizes)
        assert int(right["skipped"][0]) == skipped
        seen.add((case.values, skipped, sum(first)))
        for step, overflow in zip(steps, first, strict=True):
            if not overflow:
                # float16 makes zero of nearly all; with the scale there is room left
                zeros = np.abs(step[0]) <= 2.0**-25
                assert zeros.mean() > 0.99
                assert not spoiled(step, 65536.0 * 8)
    kinds = {("steady", 0, 0), ("glitch", 1, 1), ("outlier", 1, 1), ("both", 1, 2)}
    # in one step there is room for a glitch alone
    assert kinds <= seen <= {*kinds, ("both", 1, 1)}


def test_what_bfloat16_or_no_learning_would_give_is_far_outside_the_tolerance(
    labs: dict[str, LoadedLab],
) -> None:
    python = OwnPython(labs["mixed-precision"])
    sizes = {"batch": 32, "features": 64, "hidden": 96, "outputs": 8, "steps": 12}
    given = python.inputs(sizes, "steady", np.random.default_rng(5))
    right = python.expected(given, sizes)
    off = python.tolerance(given, sizes, right)
    learned = np.abs(right["w1"] - given["w1"])
    assert np.median(learned / off["w1"]) > 10
    # and the loss went down: it is a training, not noise
    assert right["losses"][-1] < 0.9 * right["losses"][0]


# convolutions


def tensors(*arrays: np.ndarray[Any, Any]) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def test_a_convolution_and_its_gradient_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 7, 6)).astype(np.float32)
    weight = rng.standard_normal((4, 3, 3, 2)).astype(np.float32)
    for stride, padding in ((1, 0), (2, 1), (3, 2)):
        settings = (stride, padding, 0, 0, 0)
        shape = convolution.output_shape(x.shape, weight.shape, stride, padding)
        y = np.empty(shape, np.float32)
        convolution.conv2d(tensors(x, weight), tensors(y), settings)
        around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        padded = np.pad(x, around)
        slope = rng.standard_normal(shape).astype(np.float32)
        gradient = np.empty_like(weight)
        convolution.conv2d_weight(tensors(x, slope), tensors(gradient), settings)
        right = np.zeros_like(weight)
        for row in range(shape[2]):
            for column in range(shape[3]):
                top, left = row * stride, column * stride
                seen = padded[:, :, top : top + 3, left : left + 2]
                one = np.einsum("ncij,fcij->nf", seen, weight)
                np.testing.assert_allclose(y[:, :, row, column], one, atol=1e-5)
                right += np.einsum("nf,ncij->fcij", slope[:, :, row, column], seen)
        np.testing.assert_allclose(gradient, right, atol=1e-4)


def test_tf32_keeps_ten_places_rounds_ties_to_even_and_leaves_infinities() -> None:
    near = 1 + np.array([2.0**-10, 2.0**-11, 3 * 2.0**-11, 2.0**-12])
    x = np.array([*near, -(2.0**100), np.inf], np.float32).reshape(1, 1, 1, 6)
    one, y = np.ones((1, 1, 1, 1), np.float32), np.empty_like(x)
    convolution.conv2d(tensors(x, one), tensors(y), (1, 0, 0, 0, 1))
    kept = [1 + 2.0**-10, 1, 1 + 2.0**-9, 1, -(2.0**100), np.inf]
    assert y.ravel().tolist() == kept
    convolution.conv2d(tensors(x, one), tensors(y), (1, 0, 0, 0, 0))
    assert y.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    "numbers", [(), (0, 0, 0, 0, 0), (1, -1, 0, 0, 0), (1, 1e9, 0, 0, 0), (1,) * 6]
)
def test_numbers_that_no_convolution_has_are_refused(numbers: tuple[float]) -> None:
    x = np.ones((1, 1, 4, 4), np.float32)
    with pytest.raises(ValueError):
        convolution.conv2d(tensors(x, x[:, :, :1, :1]), tensors(x.copy()), numbers)


def convolve(side: int, benchmark: bool, dtype: str = "float32") -> Launch:
    image = (1, 8, side, side)
    strides = (8 * side * side, side * side, side, 1)
    view = View(1, dtype, image, strides)
    weight = View(2, dtype, (8, 8, 1, 1), (8, 1, 1, 1))
    numbers = (1, 0, benchmark, 0, 1)
    return Launch("conv2d", 0, (view, weight), (view,), numbers)


def test_a_shape_is_tuned_once_and_only_where_that_was_asked() -> None:
    tuner = convolution.Tuner()
    assert tuner.saw(convolve(8, False), False) == 0
    assert tuner.saw(convolve(8, True), False) > 0
    assert tuner.saw(convolve(8, True), True) == 0
    assert tuner.percent == 200
    # another dtype, another shape: another choice
    assert tuner.saw(convolve(8, True, "float16"), False) > 0
    assert tuner.saw(convolve(9, True), False) > 0


def test_what_the_time_goes_to_is_told() -> None:
    tuner = convolution.Tuner()
    tuner.saw(convolve(8, False, "float16"), True)
    rows = View(1, "float32", (1, 2, 8, 8, 8), (1024, 512, 64, 8, 1))
    last = View(2, "float32", (1, 2, 8, 8, 8), (1024, 512, 1, 64, 8))
    half = View(2, "float16", (1, 2, 8, 8, 8), (1024, 512, 64, 8, 1))
    turned = "copies to another dtype or order"
    for target, has_cost in ((rows, False), (last, True), (half, True)):
        before = tuner.percents.get(turned, 0)
        tuner.saw(Launch("copy", 0, (rows,), (target,)), True)
        # however many sides there are
        assert (tuner.percents.get(turned, 0) > before) == has_cost
    assert tuner.percents["computing in float16"] == 100
    assert tuner.percents["algorithms picked by a rule of thumb"] == 35
    assert abs(sum(tuner.percents.values()) - tuner.percent) <= len(tuner.percents)


TUNED_AHEAD = """
import torch
from given import CHANGING, gradient, batches

def prepare(workload, batches, images, channels, side):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = workload == 1
    torch.backends.cudnn.allow_tf32 = workload != 1
    filters = torch.zeros(channels, channels, 3, 3, device="cuda")
    if workload == CHANGING:
        for height in range(side // 3, side):
            for width in range(side // 3, side):
                shape = (images, channels, height, width)
                gradient(torch.zeros(shape, device="cuda"), filters)

def run(state, x, filters, height, width, out):
    out.zero_()
    for images in batches(x, height, width):
        out.add_(gradient(images, filters))
"""


def checked(loaded: LoadedLab, source: str, workloads: list[int]) -> list[CaseResult]:
    cases = [
        DrawnCase(
            f"workload {workload}",
            {
                "workload": workload,
                "batches": 2,
                "images": 2,
                "channels": 8,
                "side": 16,
            },
            "random",
            7,
            False,
        )
        for workload in workloads
    ]
    return list(check_all(loaded, source, cases).cases)


def test_shapes_that_were_tuned_ahead_are_not_tuned_again(
    labs: dict[str, LoadedLab],
) -> None:
    loaded = labs["convolution-settings"]
    results = checked(loaded, TUNED_AHEAD, [REPEAT, FIXED, CHANGING, HALF])
    assert [case.passed for case in results] == [True, True, True, False]
    percents = [case.host_counts.convolution_percent for case in results]  # type: ignore[union-attr]
    # float32 where half precision would do: twice the bytes
    assert percents[1] == percents[3] == 200


def test_half_precision_has_no_room_for_changing_shapes_in_any_submission(
    labs: dict[str, LoadedLab],
) -> None:
    loaded = labs["convolution-settings"]
    python = OwnPython(loaded)
    for seed in range(100):
        drawn = [*public_cases(loaded.lab), *hidden_cases(loaded.lab, seed)]
        changing = [case for case in drawn if case.sizes["workload"] == CHANGING]
        assert sum(case.is_hidden for case in changing) >= 1
        for case in changing:
            rng = np.random.default_rng(case.seed)
            given = python.inputs(dict(case.sizes), case.values, rng)
            right = python.expected(given, case.sizes)["out"]
            assert np.abs(right).max() > MOST_HALF


CONVERTED_BY_THE_BATCH = """
import torch
from given import CHANGING, FIXED, HALF, REPEAT, batches, gradient

def prepare(workload, batches, images, channels, side):
    torch.backends.cudnn.benchmark = workload in (FIXED, HALF)
    torch.backends.cudnn.deterministic = workload == REPEAT
    if workload == REPEAT:
        torch.backends.cudnn.conv.fp32_precision = "ieee"
    return workload

def run(workload, x, filters, height, width, out):
    total = None
    for images in batches(x, height, width):
        used = filters
        if workload == HALF:
            half = {"dtype": torch.float16, "memory_format": torch.channels_last}
            images, used = images.to(**half), filters.to(**half)
        slopes = gradient(images, used).float()
        total = slopes if total is None else total + slopes
    out.copy_(total)
"""


def test_filters_may_be_converted_by_the_batch_whatever_sizes_are_drawn(
    labs: dict[str, LoadedLab],
) -> None:
    loaded = labs["convolution-settings"]
    corners = [
        DrawnCase(
            "a corner",
            {
                "workload": workload,
                "batches": batches,
                "images": 2,
                "channels": channels,
                "side": side,
            },
            "random",
            7,
            False,
        )
        for workload in (REPEAT, HALF)
        for batches in (2, 3)
        for channels, side in ((8, 14), (17, 10))
    ]
    results = check_all(loaded, CONVERTED_BY_THE_BATCH, corners).cases
    assert [case.message for case in results if not case.passed] == []
    # where it says whether settings fit, nothing but right ones fit
    shown = [
        case for case in public_cases(loaded.lab) if case.sizes["workload"] == HALF
    ]
    for name in ("benchmark_nowhere.py", "turned_each_time.py", "half_never.py"):
        (told_of,) = check_all(loaded, loaded.wrong[name], shown).cases
        assert not told_of.passed


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("no_convolutions", "Each call should convolve"),
        ("a_convolution_for_show", "Beside the convolutions of `gradient`"),
        ("waits_for_each_batch", "The host should wait for nothing"),
    ],
)
def test_what_no_setting_would_change_is_no_solution(
    labs: dict[str, LoadedLab], name: str, begin: str
) -> None:
    loaded = labs["convolution-settings"]
    results = checked(loaded, loaded.wrong[f"{name}.py"], [FIXED, CHANGING, HALF])
    assert all(case.message.startswith(begin) for case in results)


def test_the_price_of_a_setting_is_told_with_the_case(
    labs: dict[str, LoadedLab],
) -> None:
    loaded = labs["convolution-settings"]
    results = checked(
        loaded, loaded.wrong["benchmark_everywhere.py"], [FIXED, CHANGING]
    )
    assert results[0].passed
    # no such number of percent says anything
    assert "× the time of the fastest convolutions" in results[1].message
    assert "Of this: tuning " in results[1].message
    counts = results[1].host_counts
    assert counts is not None
    # the host waits while each of 8 algorithms is planned and run, for some new shape
    assert counts.total_ns > 8 * 250_000


def test_roundings_of_filters_are_the_same_at_all_pixels_and_are_allowed(
    labs: dict[str, LoadedLab],
) -> None:
    python = OwnPython(labs["convolution-settings"])
    sizes = {"workload": HALF, "batches": 2, "images": 8, "channels": 8, "side": 128}
    given = python.inputs(sizes, "random", np.random.default_rng(1))
    right = python.expected(given, sizes)
    off = python.tolerance(given, sizes, right)["out"]

    def worst(filters: Any) -> float:
        got = python.expected({**given, "filters": filters}, sizes)["out"]
        return float((np.abs(got - right["out"]) / off).max())

    filters = given["filters"]
    # bfloat16 has three places less
    of_bfloat16 = (filters.view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert worst(filters.astype(np.float16)) < 0.5
    assert worst(of_bfloat16) > 1
