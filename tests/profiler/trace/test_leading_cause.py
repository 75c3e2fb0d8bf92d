"""Which cause a verdict names where several are close."""

import pytest

from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.verdict.leading_cause import (
    first_of_host,
    leading,
    leads_alone,
    nearly_leading,
)


def test_causes_of_the_host_count_together_beside_the_gpu() -> None:
    shares: dict[Kind, float] = {
        "memory-bound": 0.47,
        "launch-bound": 0.38,
        "host-bound": 0.13,
    }
    assert leading(shares) == "mixed"
    assert leading({**shares, "memory-bound": 0.3}) == "launch-bound"
    assert leading({**shares, "memory-bound": 0.9}) == "memory-bound"


@pytest.mark.parametrize("memory", [0.5, 0.6, 0.7])
def test_what_is_clear_is_not_nearly_something_else(memory: float) -> None:
    assert nearly_leading({"memory-bound": memory, "host-bound": 0.3}) == (
        "memory-bound",
    )


def test_what_is_near_to_the_line_is_between() -> None:
    near: dict[Kind, float] = {"memory-bound": 0.55, "host-bound": 0.55 * 0.79}
    assert nearly_leading(near) == ("memory-bound", "mixed")
    assert nearly_leading({"memory-bound": 0.41}) == ("memory-bound", "mixed")
    assert nearly_leading({"memory-bound": 0.5, "host-bound": 0.5}) == ("mixed",)
    assert nearly_leading({"unknown": 0.41}) == ("unknown",)


def test_time_that_nobody_knows_of_names_no_other_cause() -> None:
    assert leading({"launch-bound": 0.44, "unknown": 0.39}) == "launch-bound"
    assert leading({"unknown": 0.5, "launch-bound": 0.45}) == "launch-bound"
    assert leading({"unknown": 0.7, "launch-bound": 0.2}) == "unknown"
    assert leading({"memory-bound": 0.44, "unknown": 0.39}) == "mixed"
    assert leading({}) == "mixed"


def test_the_first_of_the_host_is_named() -> None:
    assert first_of_host(("launch-bound", "sync-bound")) == "sync-bound"
    assert first_of_host(("host-bound", "memory-bound")) is None
    assert first_of_host(()) is None
    close: dict[Kind, float] = {"launch-bound": 0.5, "sync-bound": 0.4}
    assert leading(close) == "sync-bound"
    assert not leads_alone("sync-bound", close)
    assert leads_alone("launch-bound", {"launch-bound": 0.5, "sync-bound": 0.1})


@pytest.mark.parametrize("waits", [0.22, 0.23, 0.25, 0.26])
def test_a_wait_that_is_nearly_as_long_is_named_in_each_profile(waits: float) -> None:
    shares: dict[Kind, float] = {"launch-bound": 0.4, "sync-bound": waits}
    kinds = nearly_leading(shares)
    assert (first_of_host(kinds) == "sync-bound") is (waits > 0.225)
