"""The real host, read for real."""

import time
from types import SimpleNamespace

import psutil

from warpbook_monitors.host import HostSource
from warpbook_monitors.metrics import HOST


def test_the_host_gives_what_the_system_says() -> None:
    (probe,) = HostSource().open().probes
    assert [metric.name for metric in probe.device.metrics] == list(HOST)
    first = probe.read(time.monotonic_ns())
    assert first[0] is None, "there is no CPU share before a second look"
    time.sleep(1.1)
    before = used_bytes()
    values = probe.read(time.monotonic_ns())
    assert 0 <= values[0] <= 1
    least, most = sorted((before, used_bytes()))
    assert least - 1e9 < values[1] < most + 1e9
    assert all(value is None or value >= 0 for value in values[2:])
    assert values[4] is not None, "network traffic after a second"


def used_bytes() -> int:
    memory = psutil.virtual_memory()
    return memory.total - memory.available


def test_an_interface_that_comes_or_goes_makes_no_false_rate(monkeypatch) -> None:
    counters = {"eth0": (1_000_000, 10), "tun0": (500_000_000, 10)}

    def counted(pernic: bool) -> dict[str, SimpleNamespace]:
        return {
            name: SimpleNamespace(bytes_recv=received, bytes_sent=sent)
            for name, (received, sent) in counters.items()
        }

    monkeypatch.setattr(psutil, "net_io_counters", counted)
    (probe,) = HostSource().open().probes
    probe.read(0)
    counters = {"eth0": (3_000_000, 10), "wlan0": (900_000_000, 10)}
    assert probe.read(1_000_000_000)[4:] == (2_000_000, 0)
    counters = {"eth0": (5, 5)}
    assert probe.read(2_000_000_000)[4:] == (None, None), "it began anew"
    counters = {"other": (5, 5)}
    assert probe.read(3_000_000_000)[4:] == (None, None)


def test_a_rest_is_not_spanned() -> None:
    (probe,) = HostSource().open().probes
    probe.read(time.monotonic_ns())
    probe.rest()
    assert probe.read(time.monotonic_ns())[0] is None
