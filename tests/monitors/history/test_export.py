"""Files of a history with every kind of device, made without holding all of it."""

import csv
import io
import itertools
import json
from collections.abc import Iterator

import msgspec
import pytest

from warpbook_monitors.frames import (
    Device,
    Devices,
    Event,
    Frame,
    Gap,
    Hello,
    Metric,
    Reading,
)
from warpbook_monitors.history.export import to_chrome_trace, to_csv, to_jsonl
from warpbook_monitors.history.history import History

POWER = Metric("power_watts", "watts", "Power")
SM = Metric("sm_active_ratio", "ratio", "SM")
CPU = Metric("cpu_ratio", "ratio", "CPU")
NEVER = Metric("fan_ratio", "ratio", "Fan", "not_supported", "It has none.")
DEVICES = (
    Device("gpu:a", "gpu", "NVIDIA H200", 0, "live", (POWER, NEVER)),
    Device("mig:b", "mig", '1g.18gb ", 7', None, "live", (SM,), {"parent": "gpu:a"}),
    Device(
        "host", "host", "Host", None, "live", (Metric("cpu_ratio", "ratio", "CPU"),)
    ),
)
MESSAGES = [
    Frame(
        1,
        1000.0,
        (
            Reading(0, "ok", (300.0, None)),
            Reading(1, "ok", (0.5,)),
            Reading(2, "stale"),
        ),
        'a label, with "quotes"',
    ),
    Gap(1000.0, 2000.0, "not_watched", "Nobody watched."),
    Event(2000.0, "gpu:a", "xid", 79, "fault", "t", "m", "r"),
    Devices(2000.0, DEVICES),
    # a description that was other: what is whose is not known any more
    Frame(2, 2000.0, (Reading(0, "ok", (1.0, 2.0, 3.0)), Reading(1, "ok", (0.7,)))),
]
ENCODED = [msgspec.json.encode(message) for message in MESSAGES]


def test_csv_names_each_device_and_leaves_what_is_unknown_empty() -> None:
    text = b"".join(to_csv(DEVICES, ENCODED)).decode()
    first, second = csv.DictReader(io.StringIO(text))
    assert first == {
        "time_ms": "1000.0",
        "label": 'a label, with "quotes"',
        "gpu:a power_watts": "300.0",
        "mig:b sm_active_ratio": "0.5",
        "host cpu_ratio": "",
    }
    assert second["gpu:a power_watts"] == ""
    assert second["mig:b sm_active_ratio"] == "0.7"


def test_chrome_has_a_track_for_each_device_and_no_zero_for_what_is_unknown() -> None:
    events = json.loads(b"".join(to_chrome_trace(DEVICES, ENCODED)))["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert names == ["NVIDIA H200 (live)", '1g.18gb ", 7 (live)', "Host (live)"]
    counters = [
        (event["pid"], event["ts"], event["args"])
        for event in events
        if event["ph"] == "C"
    ]
    assert counters == [
        (0, 1_000_000.0, {"watts": 300.0}),
        (1, 1_000_000.0, {"ratio": 0.5}),
        (1, 2_000_000.0, {"ratio": 0.7}),
    ]


def test_jsonl_is_the_stream_itself() -> None:
    hello = Hello(1, "1.0", 0.0, 10.0, DEVICES)
    lines = b"".join(to_jsonl(hello, ENCODED)).splitlines()
    assert lines[0] == msgspec.json.encode(hello)
    assert lines[1:] == ENCODED


@pytest.mark.parametrize("export", [to_csv, to_chrome_trace])
def test_a_file_is_begun_before_all_of_the_history_is_unpacked(export) -> None:
    taken = 0

    def messages() -> Iterator[bytes]:
        nonlocal taken
        for encoded in itertools.cycle(ENCODED):
            taken += 1
            yield encoded

    pieces = export(DEVICES, messages())
    for _ in range(100):
        assert next(pieces)
    assert taken < 1000, "of an endless history"


def test_the_history_is_unpacked_only_as_far_as_it_is_taken() -> None:
    history = History(3600, 10)
    for seq in range(1000):
        history.append(100.0 * seq, ENCODED[0])
    entries = history.entries(0, 1e9)
    next(entries)
    for seq in range(1000, 80_000):
        history.append(100.0 * seq, b"{}")
    assert len(list(entries)) == 999
