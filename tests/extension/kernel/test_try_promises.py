"""A trial's promise is of the bare run, as the trial itself is."""

from __future__ import annotations

import pytest

from tests.monitors.bare.exam import read
from warpbook.kernel.trying.promises import promised_speed
from warpbook_monitors.trace.analysis import analyse


def test_promise_is_no_more_than_the_bare_time_allows() -> None:
    """The profiled window of this cell is 1.14 times as long as its bare run."""
    profile = analyse(*read("fp32_linear_stack"))
    assert profile.bare is not None and profile.bare.profiled_ns > profile.bare.time_ns
    (finding,) = [each for each in profile.findings if each.kind == "compute-bound"]
    assert finding.bound_ns
    promise = promised_speed(profile, "tf32")
    assert promise is not None
    least, most = promise
    assert least == 1
    assert most * finding.bound_ns == pytest.approx(profile.bare.time_ns)
    assert promised_speed(profile, "pinned") is None
