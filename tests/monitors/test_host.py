"""The real host, read for real."""

import time

import psutil

from warpbook_monitors.host import HostSource
from warpbook_monitors.metrics import HOST


def test_the_host_gives_what_the_system_says() -> None:
    (probe,) = HostSource().open().probes
    assert [metric.name for metric in probe.device.metrics] == list(HOST)
    first = probe.read(time.monotonic_ns())
    assert first[0] is None, "there is no processor share before a second look"
    time.sleep(1.1)
    values = probe.read(time.monotonic_ns())
    assert 0 <= values[0] <= 1
    used = psutil.virtual_memory().total - psutil.virtual_memory().available
    assert abs(values[1] - used) < 1e9
    assert all(value is None or value >= 0 for value in values[2:])
    assert values[4] is not None, "network traffic after a second"


def test_a_rest_is_not_spanned() -> None:
    (probe,) = HostSource().open().probes
    probe.read(time.monotonic_ns())
    probe.rest()
    assert probe.read(time.monotonic_ns())[0] is None
