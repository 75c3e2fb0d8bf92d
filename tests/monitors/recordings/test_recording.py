"""Recordings: written, killed, cut, damaged, foreign and too new."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from warpbook_monitors.errors import RecordingError
from warpbook_monitors.frames import (
    PROTOCOL_VERSION,
    Device,
    Devices,
    Frame,
    Gap,
    Hello,
    Metric,
    Reading,
)
from warpbook_monitors.recordings.recording import RecordingWriter, read_recording

METRICS = (
    Metric("sm_active_ratio", "ratio", "SM active"),
    Metric("power_watts", "watts", "Power"),
)
GPU = Device("gpu:1", "gpu", "A GPU", 0, "live", METRICS, {"driver_version": "1"})
HELLO = Hello(PROTOCOL_VERSION, "0.1.0", 1000.0, 10.0, (GPU,))


def frame(seq: int, *values: float | None) -> Frame:
    return Frame(seq, 1000.0 + 100 * seq, (Reading(0, "ok", values or (0.5, 100.0)),))


def write(path: Path, *messages) -> Path:
    with RecordingWriter(path, HELLO) as writer:
        for message in messages:
            writer.write(message)
    return path


def test_what_is_written_is_read(tmp_path) -> None:
    messages = (
        frame(0),
        Gap(1000, 1100, "not_watched", "Nobody."),
        frame(2, None, 3.0),
    )
    recording = read_recording(write(tmp_path / "r.gz", *messages))
    assert recording.hello == HELLO
    assert recording.frames == [messages[0], messages[2]]
    assert recording.problem is None
    assert recording.duration_ms == 200


def test_a_recording_is_the_wire_format_in_gzip_lines(tmp_path) -> None:
    path = write(tmp_path / "r.gz", frame(0))
    lines = gzip.decompress(path.read_bytes()).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["hello", "frame"]
    assert lines[1] == msgspec.json.encode(frame(0))


def test_a_plain_file_reads_too(tmp_path) -> None:
    packed = write(tmp_path / "r.gz", frame(0), frame(1))
    plain = tmp_path / "r.jsonl"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    assert len(read_recording(plain).frames) == 2


def test_a_recording_is_never_written_over(tmp_path) -> None:
    path = write(tmp_path / "r.gz", frame(0))
    with pytest.raises(FileExistsError):
        RecordingWriter(path, HELLO)


def test_a_device_that_came_later_is_read(tmp_path) -> None:
    new = Device("mig:1", "mig", "An instance", None, "live", METRICS[:1])
    both = Frame(1, 1100.0, (*frame(1).readings, Reading(1, "ok", (0.25,))))
    messages = (frame(0), Devices(1050, (GPU, new)), both)
    recording = read_recording(write(tmp_path / "r.gz", *messages))
    assert recording.hello.devices == (GPU, new)
    assert recording.frames == [messages[0], both]
    assert recording.problem is None


def test_a_killed_writer_leaves_what_it_had_flushed(tmp_path) -> None:
    path = tmp_path / "r.gz"
    script = f"""
import os, signal, sys, time
sys.path[:0] = {sys.path!r}
from pathlib import Path
import msgspec
from warpbook_monitors.frames import Frame, Hello
from warpbook_monitors.recordings.recording import RecordingWriter
hello = msgspec.json.decode({msgspec.json.encode(HELLO)!r}, type=Hello)
frame = msgspec.json.decode({msgspec.json.encode(frame(0))!r}, type=Frame)
writer = RecordingWriter(Path({str(path)!r}), hello)
writer.write(frame)
time.sleep(1.1)
writer.write(frame)
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    recording = read_recording(path)
    assert len(recording.frames) == 2
    assert recording.problem is not None
    assert "cut off" in str(recording.problem)


@pytest.mark.parametrize("kept_ratio", [0.3, 0.6, 0.9])
def test_a_cut_file_plays_up_to_the_cut(tmp_path, kept_ratio) -> None:
    whole = [frame(n, n / 1e4, float(n * 7919 % 701)) for n in range(2000)]
    path = write(tmp_path / "r.gz", *whole)
    packed = path.read_bytes()
    path.write_bytes(packed[: int(len(packed) * kept_ratio)])
    recording = read_recording(path)
    assert recording.frames == whole[: len(recording.frames)]
    assert len(recording.frames) > 2000 * kept_ratio / 2
    assert recording.problem.line == len(recording.frames) + 2


def test_a_damaged_line_is_named_and_the_rest_plays(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    good = [
        msgspec.json.encode(message)
        for message in (HELLO, frame(0), frame(1), frame(2))
    ]
    good[2] = b'{"type":"frame","seq":' + b"\xff\xfe garbage"
    path.write_bytes(b"\n".join(good) + b"\n")
    recording = read_recording(path)
    assert [frame_read.seq for frame_read in recording.frames] == [0, 2]
    assert recording.problem.line == 3
    assert str(path) in str(recording.problem)


def test_a_clock_that_was_set_back_and_right_again_loses_no_frame(tmp_path) -> None:
    def at(seq: int, off_ms: float) -> Frame:
        right = frame(seq, seq / 100, 1.0)
        return msgspec.structs.replace(right, time_ms=right.time_ms + 1e9 + off_ms)

    off = [0.0] * 5 + [-3_600_000.0] * 5 + [-3_600_500.0] * 5 + [0.0] * 5
    path = write(tmp_path / "r.gz", *(at(seq, off[seq]) for seq in range(20)))
    recording = read_recording(path)
    assert recording.problem is None
    assert recording.frames == [at(seq, 0.0) for seq in range(20)]
    assert recording.duration_ms == 1900


def test_damage_inside_gzip_plays_up_to_it(tmp_path) -> None:
    path = write(tmp_path / "r.gz", *(frame(n, n / 7, n * 1.7) for n in range(3000)))
    packed = bytearray(path.read_bytes())
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    recording = read_recording(path)
    assert recording.frames
    assert recording.problem is not None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"type":"frame","seq":1,"time_ms":1,"readings":[]}', "backwards"),
        (
            b'{"type":"frame","seq":1,"time_ms":9e9,"readings":'
            b'[{"device":7,"state":"ok","values":[1,2]}]}',
            "device 7",
        ),
        (
            b'{"type":"frame","seq":1,"time_ms":9e9,"readings":'
            b'[{"device":0,"state":"ok","values":[1]}]}',
            "1 values instead of 2",
        ),
        (b'{"type":"frame","seq":1,"time_ms":NaN,"readings":[]}', "malformed"),
        (b'{"type":"frame","seq":1,"time_ms":1e308,"readings":[]}', "not a Unix time"),
        (b'{"type":"nonsense"}', "nonsense"),
        (msgspec.json.encode(HELLO), "second hello"),
    ],
)
def test_a_line_that_lies_is_refused_with_its_number(tmp_path, line, why) -> None:
    path = tmp_path / "r.jsonl"
    lines = [msgspec.json.encode(HELLO), msgspec.json.encode(frame(5)), line]
    path.write_bytes(b"\n".join(lines) + b"\n")
    problem = read_recording(path).problem
    assert problem.line == 3
    assert why in str(problem)


def test_a_newer_recording_says_so_and_plays_what_is_known(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    newer = json.loads(msgspec.json.encode(HELLO)) | {"protocol": 99, "version": "9.0"}
    lines = [
        json.dumps(newer),
        json.dumps({"type": "hologram", "x": 1}),
        msgspec.json.encode(frame(0)).decode(),
    ]
    path.write_text("\n".join(lines) + "\n")
    recording = read_recording(path)
    assert len(recording.frames) == 1
    assert recording.problem.line == 1
    assert "made by warpbook 9.0 with protocol 99" in str(recording.problem)
    assert "Upgrade" in str(recording.problem)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"not a recording\n", b"\x1f\x8b", b"\x00" * 100]
)
def test_a_file_that_is_no_recording_is_refused(tmp_path, content) -> None:
    path = tmp_path / "r"
    path.write_bytes(content)
    with pytest.raises(RecordingError) as refused:
        read_recording(path)
    assert refused.value.line >= 1


def test_a_changed_state_of_a_metric_is_kept(tmp_path) -> None:
    off = msgspec.structs.replace(METRICS[1], state="no_permission", why="No.")
    changed = msgspec.structs.replace(GPU, metrics=(METRICS[0], off))
    path = write(tmp_path / "r.gz", frame(0), Devices(1050, (changed,)), frame(1))
    recording = read_recording(path)
    assert recording.problem is None
    assert recording.hello.devices == (changed,)


def test_devices_that_become_others_are_refused(tmp_path) -> None:
    other = msgspec.structs.replace(GPU, metrics=METRICS[:1])
    path = write(tmp_path / "r.gz", frame(0), Devices(1050, (other,)), frame(1))
    recording = read_recording(path)
    assert recording.problem.line == 3
    assert len(recording.frames) == 2


@pytest.mark.parametrize(
    "hello",
    [
        msgspec.structs.replace(HELLO, time_ms=1e300),
        msgspec.structs.replace(HELLO, devices=(GPU,) * 201),
        msgspec.structs.replace(
            HELLO, devices=(msgspec.structs.replace(GPU, metrics=METRICS * 101),)
        ),
    ],
)
def test_a_hello_that_no_view_could_show_is_refused(tmp_path, hello) -> None:
    path = tmp_path / "r"
    lines = [msgspec.json.encode(hello), msgspec.json.encode(frame(0))]
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(RecordingError, match="line 1"):
        read_recording(path)


def test_more_frames_than_can_be_played_are_cut(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("warpbook_monitors.recordings.recording.MAX_FRAMES", 3)
    recording = read_recording(write(tmp_path / "r", *map(frame, range(5))))
    assert [frame_read.seq for frame_read in recording.frames] == [0, 1, 2]
    assert recording.problem.line == 5


def test_a_bomb_is_bounded(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        "warpbook_monitors.recordings.recording.MAX_LINE_BYTES", 100_000
    )
    path = tmp_path / "bomb.gz"
    good = msgspec.json.encode(HELLO) + b"\n" + msgspec.json.encode(frame(0)) + b"\n"
    path.write_bytes(gzip.compress(good + b"0" * 50_000_000))
    recording = read_recording(path)
    assert len(recording.frames) == 1
    assert "larger" in str(recording.problem)
