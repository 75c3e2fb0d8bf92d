"""A trial's promise is of the bare run, as the trial itself is."""

from __future__ import annotations

from tests.monitors.bare.exam import TIMES_MS, read
from warpbook.kernel.trying.promises import promised_speed
from warpbook_monitors.trace.analysis import analyse


def test_a_promise_is_what_the_report_predicts_of_that_change() -> None:
    profile = analyse(*read("fp32_linear_stack"))
    promise = promised_speed(profile, "bf16")
    assert promise is not None
    times_ms = TIMES_MS["fp32_linear_stack"]
    least, most = promise
    assert least <= times_ms["before"][0] / times_ms["fixed"][0] <= most
    assert promised_speed(profile, "pinned") is None


def test_of_a_bound_only_the_most_is_promised() -> None:
    promise = promised_speed(
        analyse(*read("adam_loop_over_tensors")), "fused-optimizer"
    )
    assert promise is not None
    assert promise[0] == 1 and promise[1] > 10
