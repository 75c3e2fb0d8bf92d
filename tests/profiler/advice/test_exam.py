"""The advice for everyday cells on an H100, beside what an expert's change gave.

Each cell's time before and after the change was measured on the GPU that its trace is
from. See `tests/profiler/replay/exam.py`.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.profiler.replay.exam import TIMES_MS, TRACES, read, times
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.bare_words import took
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.change import Change
from warpbook_profiler.report.profile_view import view_of
from warpbook_profiler.verdict.analysis import analyse

#: by cell: the expert's change
EXPERT = {
    "adam_loop_over_tensors": "fused-optimizer",
    "attention_by_hand": "sdpa",
    "batches_from_pageable": "pinned",
    "fp32_linear_stack": "bf16",
    "loss_item_each_step": "read-once",
    "resnet18_one_image": "cuda-graph",
    "wait_on_side_stream": "one-stream",
}
#: of these the GPU decides how long they take after the change
PREDICTED = (
    "attention_by_hand",
    "batches_from_pageable",
    "fp32_linear_stack",
    "resnet18_one_image",
    "wait_on_side_stream",
)
#: a prediction is good within this factor
NEAR = 1.25


def profiled(name: str, is_measured: bool) -> CellProfile:
    events, run = read(name)
    if is_measured:
        run = replace(run, bare=times(name))
    return analyse(events, run)


def change_of(profile: CellProfile, name: str) -> Change:
    (change,) = [change for change in profile.changes if change.name == name]
    return change


@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize("name", EXPERT)
def test_the_experts_change_is_among_the_first_two(
    name: str, is_measured: bool
) -> None:
    names = [change.name for change in profiled(name, is_measured).changes[:2]]
    assert EXPERT[name] in names


@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize("name", PREDICTED)
def test_the_promised_time_comes_true(name: str, is_measured: bool) -> None:
    change = change_of(profiled(name, is_measured), EXPERT[name])
    fixed_ns = TIMES_MS[name]["fixed"][0] * 1e6
    assert change.basis == "predicted"
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns <= fixed_ns <= change.high_ns
    # of a measured cell the host may decide afterwards: a range is told
    assert change.time_ns is not None or is_measured
    if change.time_ns is not None:
        assert 1 / NEAR <= change.time_ns / fixed_ns <= NEAR


def test_a_bound_that_says_nothing_is_not_told() -> None:
    """A fused step's host code is in no trace, and the GPU takes next to nothing."""
    change = change_of(profiled("adam_loop_over_tensors", True), "fused-optimizer")
    assert (change.basis, change.low_ns, change.high_ns) == ("unknown", None, None)
    assert "Only a trial shows" in change.sentence


def test_what_gains_nothing_is_said_to_gain_nothing() -> None:
    """Measured: without the 50 `.item()` the loop is no faster."""
    change = change_of(profiled("loss_item_each_step", True), "read-once")
    assert change.speed_low == change.speed_high == 1.0
    assert change.sentence.startswith("No gain")


@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize("name", EXPERT)
def test_a_profile_with_changes_can_be_sent(name: str, is_measured: bool) -> None:
    profile = profiled(name, is_measured)
    sent = msgspec.json.decode(msgspec.json.encode(profile), type=CellProfile)
    assert sent.changes == profile.changes


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_nothing_is_promised_above_the_bare_time(path) -> None:
    profile = analyse(*read_chrome_trace(str(path)))
    for change in profile.changes:
        assert profile.bare is not None
        if change.low_ns is not None:
            assert change.low_ns <= profile.bare.low_ns or change.speed_high == 1.0
        if change.high_ns is not None:
            assert change.low_ns is not None
            assert (change.time_ns or change.low_ns) <= change.high_ns
            assert change.high_ns <= profile.bare.high_ns


def test_the_first_change_is_in_the_verdict() -> None:
    profile = profiled("attention_by_hand", True)
    assert profile.verdict is not None
    assert "scaled_dot_product_attention" in profile.verdict.sentence
    assert profile.changes[0].sentence in profile.verdict.sentence


def test_line_and_names_are_the_cells_own() -> None:
    events, run = read("batches_from_pageable")
    source = '%%gpuprof\nfor images in batches:\n    net(images.to("cuda")).mean()'
    profile = analyse(events, replace(run, source=source))
    change = change_of(profile, "pinned")
    assert change.line == 3


def test_what_is_made_where_it_is_copied_is_not_pinned() -> None:
    events, run = read("batches_from_pageable")
    source = "for _ in range(8):\n    net(torch.randn(9, 3).half().cuda())"
    changes = analyse(events, replace(run, source=source)).changes
    assert "pinned" not in [change.name for change in changes]


def test_the_worst_case_of_an_estimated_host_is_that_of_its_bare_run() -> None:
    cell_profile = profiled("resnet18_one_image", False)
    change = change_of(cell_profile, "channels-last")
    bare = cell_profile.bare
    assert bare is not None and bare.limit == "host"
    assert change.high_ns is not None and change.speed_high is not None
    # from 10.6 to 32.3 ms: a change of some percent can't end at 19
    assert change.high_ns > 0.9 * bare.high_ns / change.speed_high
    assert change.high_ns <= bare.high_ns


def test_a_time_far_below_the_work_of_the_gpu_is_of_something_else() -> None:
    events, run = read("resnet18_one_image")
    tiny = BareTimes(1, 100_000, 100_000, 100_000, "executions")
    cell_profile = analyse(events, replace(run, bare=tiny))
    bare = cell_profile.bare
    assert bare is not None and bare.basis == "estimated"
    assert any("different work" in caution for caution in bare.cautions)
    assert "cuda-graph" in [change.name for change in cell_profile.changes[:2]]


def test_the_base_of_an_estimated_host_shows_the_range() -> None:
    cell_profile = profiled("resnet18_one_image", False)
    assert cell_profile.bare is not None
    base = view_of(cell_profile, {}).base
    assert f"without the profiler, the middle of {took(cell_profile.bare)};" in base
