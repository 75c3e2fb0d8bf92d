"""A recording that somebody else made: its names run nothing and steer nothing."""

import gzip
import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.monitors.recordings.test_recording import GPU, HELLO, frame, write
from warpbook.figures.history import history_item
from warpbook_monitors.errors import RecordingError
from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.history.export import to_csv
from warpbook_monitors.history.readings import Readings
from warpbook_monitors.recordings.recording import read_recording

MARKUP = "<img src=x onerror=alert(1)>"
STEERING = "\x1b]0;owned\x07\x1b[31m"


def recorded(path: Path, hello: object, *lines: bytes, packed: bool = True) -> Path:
    """Write a recording whose lines are given."""
    text = b"\n".join([msgspec.json.encode(hello), *lines]) + b"\n"
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


def hello_with(**changes: object) -> dict:
    hello = json.loads(msgspec.json.encode(HELLO))
    hello["devices"][0] |= changes
    return hello


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"metrics": [{"name": MARKUP, "unit": "watts", "label": "x"}]}, "metric"),
        ({"metrics": [{"name": "a{b}", "unit": "watts", "label": "x"}]}, "metric"),
        ({"metrics": [{"name": "a" * 65, "unit": "watts", "label": "x"}]}, "metric"),
        ({"metrics": [{"name": "a", "unit": "watts", "label": "x"}] * 2}, "two"),
        ({"id": f"gpu:{MARKUP}"}, "a device id"),
        ({"id": "=cmd|' /C calc'!A0"}, "a device id"),
        ({"facts": {MARKUP: 1}}, "fact"),
    ],
)
def test_a_name_that_is_none_is_refused_with_its_line(
    tmp_path: Path, changes: dict, why: str
) -> None:
    path = recorded(tmp_path / "r.gz", hello_with(**changes))
    with pytest.raises(RecordingError, match=rf"line 1: .*{why}") as refused:
        read_recording(path)
    assert str(refused.value).replace(str(path), "").isprintable()


def test_what_is_shown_is_one_line_that_steers_no_terminal(tmp_path: Path) -> None:
    metrics = [
        {"name": m.name, "unit": m.unit, "label": STEERING + m.label, "why": STEERING}
        for m in GPU.metrics
    ]
    hello = hello_with(
        name=STEERING * 1000, metrics=metrics, facts={"driver_version": STEERING}
    )
    lost = {"device": 0, "state": "lost", "why": STEERING}
    labelled = {"type": "frame", "seq": 1, "time_ms": 1100, "label": STEERING}
    lines = [
        msgspec.json.encode(frame(0)),
        json.dumps({**labelled, "readings": [lost]}).encode(),
    ]
    recording = read_recording(recorded(tmp_path / "r.gz", hello, *lines))
    (device,) = recording.hello.devices
    last = recording.frames[-1]
    shown = [device.name, str(device.facts["driver_version"]), last.label or ""]
    shown += [m.label for m in device.metrics] + [last.readings[0].why]
    assert all(text.isprintable() and 0 < len(text) <= 200 for text in shown)


@pytest.mark.parametrize("bad", [b"\xff\xfe", b'{"type":"\xc3"}', b"[" * 200_000])
@pytest.mark.parametrize("packed", [False, True])
def test_a_bad_byte_is_damage_with_its_line(
    tmp_path: Path, bad: bytes, packed: bool
) -> None:
    """At 4c6eb8b a plain recording ended in a UnicodeDecodeError."""
    lines = (msgspec.json.encode(frame(0)), bad, msgspec.json.encode(frame(1)))
    path = recorded(tmp_path / "r", HELLO, *lines, packed=packed)
    recording = read_recording(path)
    assert [f.seq for f in recording.frames] == [0, 1], "what is good is kept"
    assert recording.problem is not None and recording.problem.line == 3


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        read_recording(pipe)


def test_no_cell_of_a_csv_is_a_formula() -> None:
    formula = "=cmd|' /C calc'!A0"
    hostile = [msgspec.json.encode(frame(0, -1.5, 2.0))]
    labels = [formula, "+1", "-1", "@x", "\tx", "plain"]
    hostile = [
        msgspec.json.encode(msgspec.structs.replace(frame(0, -1.5, 2.0), label=label))
        for label in labels
    ]
    text = b"".join(to_csv((GPU,), hostile)).decode()
    rows = text.splitlines()[1:]
    assert [row.split(",")[1].strip('"')[0] for row in rows] == ["'"] * 5 + ["p"]
    assert all(",-1.5,2.0" in row for row in rows), "numbers stay numbers"


def test_no_name_reaches_a_tooltip_of_a_figure() -> None:
    """At 4c6eb8b a metric's name was a part of the tooltip's template."""
    metrics = (Metric(MARKUP, "watts", MARKUP), Metric("$x{safe}", "ratio", "@y{safe}"))
    device = Device("gpu:1", "gpu", MARKUP, 0, "replay", metrics)
    ends_ms = np.arange(1000.0, 2000.0, 100.0)
    table = np.ones((10, 2))
    readings = Readings(ends_ms - 100, ends_ms, table, table, table, np.ones((10, 8)))
    item = json.loads(history_item(device, readings, "light", MARKUP))

    def tooltips(node: object) -> list[list[str]]:
        if isinstance(node, dict):
            own = node.get("attributes", {}).get("tooltips") or []
            return [*own, *(t for v in node.values() for t in tooltips(v))]
        if isinstance(node, list):
            return [t for v in node for t in tooltips(v)]
        return []

    templates = [template for _, template in tooltips(item)]
    assert sorted(templates) == ["@metric_0{0}", "@metric_1{0 %}"]


def test_a_recording_of_ours_is_as_it_was(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path / "r.gz", frame(0), frame(1)))
    assert recording.hello == HELLO and recording.problem is None
