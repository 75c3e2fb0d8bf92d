"""Which of a window's promises are told, in which order, and as what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.advice.chip import Chip, Convolved, Span
from warpbook_profiler.advice.prediction import Prediction
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.techniques.gpu.precision import precision
from warpbook_profiler.techniques.host.optimizer import optimizer


def of_ten() -> Cell:
    """Lay out ten kernels of a millisecond."""
    cell = Cell()
    for _ in range(10):
        cell.call("aten::mm", 1_000_000)
    cell.wait()
    return cell


@pytest.mark.parametrize(("usual_ns", "is_told"), [(970_000, False), (400_000, True)])
def test_a_gain_that_only_the_best_case_has_is_none(
    tmp_path: Path, usual_ns: int, is_told: bool
) -> None:
    evidence = of_ten().evidence(tmp_path)
    ways = Ways(evidence)
    for edit, time_ns in zip(
        (ways.best, ways.usual, ways.worst), (1e5, usual_ns, 1e6), strict=True
    ):
        edit.resize(
            np.arange(10), evidence.gpu.duration_ns, np.full(10, float(time_ns))
        )
    advice = Prediction(evidence).of(Proposal("fuse", "", "", ways))
    assert (advice is not None) is is_told


def test_a_bound_comes_after_a_prediction_of_use(tmp_path: Path) -> None:
    evidence = of_ten().evidence(tmp_path)
    places = []
    for kept, is_bound in ((5, False), (1, True)):
        ways = Ways(evidence)
        ways.drop(np.arange(kept, 10))
        advice = Prediction(evidence).of(Proposal("fuse", "", "", ways, is_bound))
        assert advice is not None
        places.append(advice.place)
    assert places == sorted(places)


def test_what_is_exact_comes_before_what_rounds_and_gains_little_more(
    tmp_path: Path,
) -> None:
    evidence = of_ten().evidence(tmp_path)

    def place(kept: int, rounds: bool) -> tuple[int, float]:
        ways = Ways(evidence)
        ways.drop(np.arange(kept, 10))
        proposal = Proposal("bf16", "", "", ways, rounds=rounds)
        advice = Prediction(evidence).of(proposal)
        assert advice is not None
        return advice.place

    assert place(5, rounds=False) < place(4, rounds=True)
    assert place(2, rounds=True) < place(5, rounds=False)


@pytest.mark.parametrize(("left_us", "are_named"), [(97, []), (93, [False])])
def test_digits_are_not_given_for_less_than_a_tenth(
    tmp_path: Path, left_us: int, are_named: list[bool]
) -> None:
    cell = Cell()
    for time_us in (left_us, 100 - left_us):
        cell.call("aten::mm", time_us * 10_000)
    cell.wait()
    evidence = cell.evidence(tmp_path)
    ways = Ways(evidence)
    ways.drop(np.array([1]))
    rounded = (Proposal("tf32", "", "", ways, rounds=one) for one in (False, True))
    named = [one.rounds for one in rounded if Prediction(evidence).of(one)]
    assert named == are_named


def test_what_a_change_leaves_takes_as_long_as_before(tmp_path: Path) -> None:
    evidence = of_ten().evidence(tmp_path)
    ways = Ways(evidence)
    old_ns = evidence.gpu.duration_ns[:2]
    for edit in ways.all:
        edit.resize(np.arange(2), old_ns, np.full(2, 1e5))
    advice = Prediction(evidence).of(Proposal("fuse", "", "", ways))
    assert advice is not None
    low_ns, high_ns = advice.change.low_ns, advice.change.high_ns
    assert low_ns is not None and high_ns is not None
    # eight of ten kernels stay; the error of the other two is unknown
    assert 0.94 * 8e6 <= low_ns <= 8e6
    assert high_ns > 1.2 * 8.2e6


def test_what_the_host_decides_afterwards_is_a_range(tmp_path: Path) -> None:
    cell = of_ten()
    for _ in range(100):
        cell.call("aten::relu", 1_000)
    cell.wait()
    evidence = cell.evidence(tmp_path, is_timed=False)
    ways = Ways(evidence)
    ways.drop(np.arange(10))
    advice = Prediction(evidence).of(Proposal("fuse", "", "", ways))
    assert advice is not None
    change = advice.change
    assert (change.basis, change.time_ns) == ("predicted", None)
    assert change.low_ns is not None and change.high_ns is not None
    assert "depending on the host" in change.sentence


@pytest.mark.parametrize(
    ("left_us", "is_timed", "is_number"),
    [
        (1_000, True, False),
        (2_000, True, False),
        (5_000, True, True),
        (1_000, False, True),
    ],
)
def test_a_cell_that_gets_short_is_no_number_beside_measured_times(
    tmp_path: Path, left_us: int, is_timed: bool, is_number: bool
) -> None:
    """By itself a cell takes some 0.7 ms longer than what is replayed of it."""
    cell = Cell()
    for _ in range(3):
        cell.call("aten::mm", 9_000_000)
    cell.wait()
    evidence = cell.evidence(tmp_path, is_timed=is_timed)
    ways = Ways(evidence)
    ways.drop(np.arange(1, 3))
    took = np.array([left_us * 1e3])
    for edit in ways.all:
        edit.resize(np.arange(1), evidence.gpu.duration_ns[:1], took)
    advice = Prediction(evidence).of(Proposal("fuse", "", "", ways))
    assert advice is not None
    change = advice.change
    assert (change.time_ns is not None) is is_number
    assert change.low_ns is not None and change.high_ns is not None
    if not is_number:
        assert change.low_ns < took[0] < took[0] + 700_000 < change.high_ns


def test_calls_that_come_once_may_be_faster_the_next_time(tmp_path: Path) -> None:
    cell = of_ten()
    for _ in range(10):
        cell.call("aten::relu", 1_000)
        cell.python(60_000)
    cell.wait()
    evidence = cell.evidence(tmp_path, is_timed=False)
    ways = Ways(evidence)
    ways.drop(np.arange(10))
    advice = Prediction(evidence).of(Proposal("fuse", "", "", ways))
    assert advice is not None and advice.change.low_ns is not None
    assert advice.change.low_ns < 10 * 60_000 / 2


def test_a_measured_time_does_not_tell_what_of_it_stays(tmp_path: Path) -> None:
    cell = Cell()
    for _ in range(400):
        cell.call("aten::relu", 1_000)
        cell.item()
    evidence = cell.evidence(tmp_path)
    ways = Ways(evidence)
    read = np.flatnonzero(evidence.operators.named("aten::item"))
    ways.drop_operators(read[:-1])
    advice = Prediction(evidence).of(Proposal("read-once", "", "", ways))
    assert advice is not None
    change, kept_ns = advice.change, 400 * 10_000
    # of the run before it operators took as long as here, or a third of it
    assert change.time_ns is None and "depending on the host" in change.sentence
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns < kept_ns / 2 < kept_ns < change.high_ns


def test_what_gains_nothing_varies_as_the_cell_does(tmp_path: Path) -> None:
    evidence = of_ten().evidence(tmp_path)
    ways = Ways(evidence)
    ways.drop_calls(np.empty(0, np.int64))
    proposal = Proposal("float32", "", "", ways, is_shown_without_gain=True)
    advice = Prediction(evidence).of(proposal)
    assert advice is not None and advice.change.gains_nothing
    low_ns, high_ns = advice.change.low_ns, advice.change.high_ns
    assert low_ns is not None and high_ns is not None
    assert low_ns < 0.97 * evidence.bare_run.time_ns
    assert high_ns > 1.03 * evidence.bare_run.time_ns


def test_a_fused_step_moves_each_tensor(tmp_path: Path) -> None:
    cell = Cell()
    with cell.operator("Optimizer.step#AdamW.step", category="user_annotation"):
        for _ in range(40):
            dims = ((4096, 4096),) * 3
            cell.call("aten::addcdiv_", *10 * [50_000], dims=dims)
    cell.wait()
    change = changes_of(optimizer, cell.evidence(tmp_path))["fused-optimizer"]
    # 40 tensors of 64 MiB, seven times, at 4,800 bytes per ns
    least_ns = 40 * 7 * (64 << 20) / 4_800
    assert change.low_ns is not None
    assert 0.9 * least_ns < change.low_ns < 1.1 * least_ns


def test_convolutions_reach_less_than_products() -> None:
    chip = Chip.of(Run(0, 1, 1, gpus=(GpuLimits("NVIDIA H200"),)))
    assert chip is not None
    for dtype in ("c10::BFloat16", "tf32", "float"):
        products = chip.multiply(1e12, dtype)
        convolutions = chip.multiply(1e12, dtype, convolved=Convolved(2, 64, False))
        assert products is not None and convolutions is not None
        assert convolutions.usual_ns > 1.2 * products.usual_ns


def test_a_last_wave_that_is_not_full_counts(tmp_path: Path) -> None:
    """On an H200 six products of 5,000 rows and columns take 4.9 ms in TF32."""
    depths = (6400, 5600, 5200, 4800, 4400, 4000)

    def ns_of_all(rows: int) -> float:
        cell = Cell()
        for depth in depths:
            dims = ((rows, rows), (rows, depth), (depth, rows), (), ())
            with cell.operator("aten::addmm_", dims):
                cell.kernel(20_000_000, "ampere_sgemm_128x64_tn")
        cell.wait()
        change = changes_of(precision, cell.evidence(tmp_path, is_timed=False))["tf32"]
        return float(change.time_ns or 0)

    assert ns_of_all(5000) == pytest.approx(4.9e6, rel=0.05)
    # waves that are full are faster
    assert ns_of_all(8192) / 8192**2 < 0.9 * ns_of_all(5000) / 5000**2


@pytest.mark.parametrize(("usual_ns", "added_ns"), [(4e5, 140_000), (7e5, 0)])
def test_first_calls_that_hid_show_after_a_change(
    tmp_path: Path, usual_ns: float, added_ns: float
) -> None:
    """A cell's first calls are slow; ten milliseconds of the GPU's work hide them."""

    def predicted_ns(is_timed: bool) -> float:
        evidence = of_ten().evidence(tmp_path, is_timed)
        ways = Ways(evidence)
        ways.resize(np.arange(10), Span(*[10 * usual_ns] * 3))
        advice = Prediction(evidence).of(Proposal("fuse", "", "", ways))
        assert advice is not None and advice.change.time_ns is not None
        return advice.change.time_ns

    shown_ns = predicted_ns(is_timed=True) - predicted_ns(is_timed=False)
    assert shown_ns == pytest.approx(added_ns, abs=30_000)
