"""A recording played back through the sampler, always labelled as one."""

import time
from pathlib import Path

import pytest

from warpbook_monitors.errors import NoReading, Unavailable
from warpbook_monitors.frames import (
    PROTOCOL_VERSION,
    Device,
    Frame,
    Hello,
    Metric,
    Reading,
)
from warpbook_monitors.recordings.recording import RecordingWriter, read_recording
from warpbook_monitors.recordings.replay import SHIPPED, ReplaySource
from warpbook_monitors.sampling.sampler import Sampler

METRICS = (Metric("sm_active_ratio", "ratio", "SM active"),)
HOST = Device("host", "host", "Elsewhere", None, "live", METRICS)
GPU = Device("gpu:1", "gpu", "A GPU", 0, "live", METRICS)
HELLO = Hello(PROTOCOL_VERSION, "0.1.0", 5000.0, 10.0, (HOST, GPU))
MS = 1_000_000


@pytest.fixture
def path(tmp_path) -> Path:
    readings = [
        Reading(1, "ok", (0.1,)),
        Reading(1, "stale", (), "slow"),
        Reading(1, "lost", (), "gone"),
        Reading(1, "ok", (0.4,)),
    ]
    path = tmp_path / "r.jsonl.gz"
    with RecordingWriter(path, HELLO) as writer:
        for seq, reading in enumerate(readings):
            host = Reading(0, "ok", (0.9,))
            frame = Frame(seq, 5000.0 + 100 * seq, (host, reading), f"phase {seq}")
            writer.write(frame)
    return path


def test_only_the_gpus_are_played_and_they_say_they_are_a_replay(path) -> None:
    opened = ReplaySource(path).open()
    assert [probe.device.id for probe in opened.probes] == ["gpu:1"]
    assert opened.probes[0].device.origin == "replay"
    assert opened.replay.name == "r.jsonl.gz"
    assert opened.replay.recorded_ms == 5000.0


def test_what_a_recording_would_have_shown_before_leads_to_its_first_frame(
    path,
) -> None:
    sampler = Sampler([ReplaySource(path)])
    sampler.open()
    try:
        to_ms = time.time() * 1000
        frames = list(sampler.played(to_ms - 1_000, to_ms))
    finally:
        sampler.close()
    assert [frame.seq for frame in frames] == list(range(-10, 0))
    assert [frame.time_ms - to_ms for frame in frames] == [
        pytest.approx(-100.0 * back, abs=0.01) for back in range(10, 0, -1)
    ]
    # four frames, over and over, each with its own label and state
    shown = [(frame.label, frame.readings[0].state) for frame in frames]
    assert len(set(shown)) == 4
    assert shown[0] == shown[4] == shown[8]


def test_what_was_recorded_while_the_clock_was_set_back_is_played(tmp_path) -> None:
    path = tmp_path / "r.jsonl.gz"
    with RecordingWriter(path, HELLO) as writer:
        for seq in range(6):
            set_back_ms = 60_000.0 if seq > 2 else 0.0
            reading = Reading(1, "ok", (seq / 10,))
            writer.write(Frame(seq, 90_000.0 + 100 * seq - set_back_ms, (reading,)))
    (probe,) = ReplaySource(path).open().probes
    begin_ns = probe._playing._begin_ns
    played = [probe.read(begin_ns + (100 * seq + 50) * MS) for seq in range(6)]
    assert played == [(seq / 10,) for seq in range(6)]


def test_it_plays_in_time_and_begins_again(path) -> None:
    opened = ReplaySource(path).open()
    (probe,) = opened.probes
    begin_ns = probe._playing._begin_ns
    assert probe.read(begin_ns) == (0.1,)
    with pytest.raises(NoReading, match="slow") as stale:
        probe.read(begin_ns + 150 * MS)
    assert stale.value.state == "stale"
    with pytest.raises(NoReading, match="gone") as lost:
        probe.read(begin_ns + 250 * MS)
    assert lost.value.state == "lost"
    assert probe.read(begin_ns + 399 * MS) == (0.4,)
    assert probe.read(begin_ns + 400 * MS) == (0.1,)
    assert probe.read(begin_ns + (400 * 1000 + 350) * MS) == (0.4,)
    assert opened.label_at(begin_ns + 150 * MS) == "phase 1"


def test_a_hole_in_a_recording_has_no_readings(tmp_path) -> None:
    path = tmp_path / "r"
    with RecordingWriter(path, HELLO) as writer:
        for seq, time_ms in enumerate([5000, 5100, 5200, 605_000, 605_100]):
            writer.write(Frame(seq, time_ms, (Reading(1, "ok", (0.5,)),), "work"))
    opened = ReplaySource(path).open()
    (probe,) = opened.probes
    begin_ns = probe._playing._begin_ns
    assert probe.read(begin_ns + 250 * MS) == (0.5,)
    with pytest.raises(NoReading, match="Nothing was recorded"):
        probe.read(begin_ns + 300_000 * MS)
    assert opened.label_at(begin_ns + 300_000 * MS) is None
    assert probe.read(begin_ns + 600_000 * MS) == (0.5,)


def test_a_damaged_recording_plays_its_good_part_and_says_so(path) -> None:
    path.write_bytes(path.read_bytes()[:-12])
    opened = ReplaySource(path).open()
    assert opened.probes
    assert "line" in opened.absences[0].message


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file"), (b"garbage\n", "line 1")]
)
def test_what_can_not_be_played_is_told(tmp_path, content, why) -> None:
    path = tmp_path / "r"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Unavailable, match=why):
        ReplaySource(path).open()


def test_a_recording_without_a_gpu_is_refused(tmp_path) -> None:
    path = tmp_path / "r"
    with RecordingWriter(path, Hello(1, "0.1.0", 0, 10, (HOST,))) as writer:
        writer.write(Frame(0, 0, (Reading(0, "ok", (0.5,)),)))
    with pytest.raises(Unavailable, match="no readings of a GPU"):
        ReplaySource(path).open()


def test_without_a_gpu_the_recording_is_played_and_the_reason_is_told(path) -> None:
    class NoGpus:
        what = "NVML"

        def open(self):
            raise Unavailable("NVML", "driver_not_loaded", "No driver.", "Load it.")

        def close(self):
            pass

    sampler = Sampler([NoGpus()], stand_in=ReplaySource(path))
    sampler.open()
    sampler.close()
    assert sampler.replay is not None
    assert sampler.absences[0].reason == "driver_not_loaded"


def test_the_shipped_recording_is_whole_and_shows_what_utilization_hides() -> None:
    recording = read_recording(SHIPPED)
    assert recording.problem is None
    gpu = next(d for d in recording.hello.devices if d.kind == "gpu")
    position = recording.hello.devices.index(gpu)
    names = [metric.name for metric in gpu.metrics]
    utilization = names.index("gpu_utilization_ratio")
    sm_active = names.index("sm_active_ratio")
    values = [
        reading.values
        for frame in recording.frames
        for reading in frame.readings
        if reading.device == position and reading.state == "ok"
    ]
    hidden = [v for v in values if v[utilization] == 1.0 and v[sm_active] == 0.0]
    assert len(hidden) > 10, "100 % in NVML's words while no multiprocessor worked"
