"""A trial's promise is of the bare run, as the trial itself is."""

from __future__ import annotations

import msgspec
import pytest

from tests.profiler.replay.exam import TIMES_MS, read
from warpbook.kernel.trying.trials import promise_of
from warpbook_profiler.verdict.analysis import analyse


def test_a_promise_is_what_the_report_predicts_of_that_change() -> None:
    profile = analyse(*read("fp32_linear_stack"))
    promise = promise_of(profile, "bf16")
    assert promise is not None
    times_ms = TIMES_MS["fp32_linear_stack"]
    least, most = promise.speed
    assert promise.bound_ns is None
    assert promise.bare_ns / 1e6 == pytest.approx(times_ms["before"][0], rel=0.1)
    assert least <= times_ms["before"][0] / times_ms["fixed"][0] <= most
    assert promise_of(profile, "pinned") is None
    # what another change of the technique gives is not its own
    others = tuple(change for change in profile.changes if change.name != "bf16")
    assert any(change.name == "tf32" for change in others)
    profile = msgspec.structs.replace(profile, changes=others)
    assert promise_of(profile, "bf16") is None


def test_of_a_bound_only_the_most_is_promised() -> None:
    promise = promise_of(analyse(*read("loss_item_each_step")), "cuda-graph")
    assert promise is not None
    assert promise.speed[0] == 1 and promise.speed[1] > 5
    assert promise.bound_ns is not None
    assert promise.bound_ns / 1e6 < TIMES_MS["loss_item_each_step"]["fixed"][0]
    # one that says nothing is not promised
    profile = analyse(*read("adam_loop_over_tensors"))
    assert promise_of(profile, "fused-optimizer") is None
