import signal
import time
from pathlib import Path

import pytest

from warpbook_monitors.errors import RecordingError
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import ReplaySource


def test_records_the_host_for_the_seconds_asked(warpbook, tmp_path: Path) -> None:
    done = warpbook(
        *("record", "a.jsonl.gz", "--host-only"),
        *("--seconds", "1", "--rate", "5", "--label", "a calm second"),
    )
    assert done.returncode == 0, done.stderr
    recording = read_recording(tmp_path / "a.jsonl.gz")
    assert recording.problem is None
    assert recording.hello.rate_hz == 5
    assert [device.kind for device in recording.hello.devices] == ["host"]
    assert {frame.label for frame in recording.frames} == {"a calm second"}
    assert f"{len(recording.frames)} frames" in done.stdout
    assert "the host alone" in done.stdout


def test_what_a_gpu_did_can_be_played(warpbook, stub_nvml, tmp_path: Path) -> None:
    stub_nvml.set(0, power_mw=650_000)
    done = warpbook("record", "a.jsonl.gz", "--seconds", "1", **stub_nvml.env)
    assert done.returncode == 0, done.stderr
    assert "GPU 0 NVIDIA H200" in done.stdout
    assert "warpbook up --replay a.jsonl.gz" in done.stdout
    [probe] = ReplaySource(tmp_path / "a.jsonl.gz").open().probes
    power = [metric.name for metric in probe.device.metrics].index("power_watts")
    assert probe.read(time.monotonic_ns())[power] == 650


def test_without_a_gpu_it_refuses_with_the_reason(warpbook, tmp_path: Path) -> None:
    done = warpbook("record", "a.jsonl.gz")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "No GPU to record. NVML: " in line
    assert "--host-only" in line
    assert not (tmp_path / "a.jsonl.gz").exists()


def test_a_recording_is_never_written_over(warpbook, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_text("mine")
    done = warpbook("record", "a.jsonl.gz", "--host-only")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "is there already" in line
    assert (tmp_path / "a.jsonl.gz").read_text() == "mine"


def test_a_folder_that_is_not_there_is_one_line(warpbook) -> None:
    done = warpbook("record", "nowhere/a.jsonl.gz", "--host-only")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line == "warpbook: nowhere/a.jsonl.gz: No such file or directory."


@pytest.mark.parametrize("rate", ["0", "-1", "1e9", "nan", "often"])
def test_a_rate_that_cannot_be_is_refused(warpbook, rate: str) -> None:
    done = warpbook("record", "a.jsonl.gz", "--rate", rate)
    assert done.returncode == 2
    assert "is not a number from 0.1 to 10" in done.stderr


@pytest.mark.parametrize("ctrl_c", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(start, tmp_path: Path, ctrl_c: int) -> None:
    process = start("record", "a.jsonl.gz", "--host-only")
    wait_for_a_frame(tmp_path / "a.jsonl.gz")
    process.send_signal(ctrl_c)
    output, _ = process.communicate()
    assert process.returncode == 0
    recording = read_recording(tmp_path / "a.jsonl.gz")
    assert recording.problem is None
    assert f"Recorded {len(recording.frames)} frames" in output


def test_what_was_written_survives_a_kill(start, tmp_path: Path) -> None:
    process = start("record", "a.jsonl.gz", "--host-only")
    wait_for_a_frame(tmp_path / "a.jsonl.gz")
    process.kill()
    process.communicate()
    recording = read_recording(tmp_path / "a.jsonl.gz")
    assert recording.frames
    assert "cut off" in str(recording.problem)


def wait_for_a_frame(file: Path) -> None:
    while True:
        try:
            read_recording(file)
        except (OSError, RecordingError):
            time.sleep(0.1)
        else:
            return
