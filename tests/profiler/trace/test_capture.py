"""The capture, with the real torch on the CPU."""

import gc
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.capture.kineto_events import inferred_kind
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.errors import CaptureFailed, ProfilerBusy
from warpbook_profiler.verdict.analysis import analyse


def captured() -> CellProfile:
    capture = Capture()
    capture.start()
    for _ in range(5):
        torch.ones(3) @ torch.ones(3)
    return analyse(*capture.stop())


def test_operators_are_counted_exactly_every_time() -> None:
    for _ in range(3):
        calls = {row.name: row.calls for row in captured().operators}
        assert calls["aten::ones"] == 10
        assert calls["aten::dot"] == 5
        assert not any("warpbook" in name for name in calls)


def test_without_cuda_the_gpu_is_unknown_not_idle() -> None:
    cell_profile = captured()
    assert (
        cell_profile.gpu_name
        is cell_profile.gpu_busy_ns
        is cell_profile.peak_allocated_bytes
        is None
    )
    # beside other programs it says so, which is no warning about the GPU
    warnings = [
        warning
        for warning in cell_profile.completeness.warnings
        if "no core" not in warning
    ]
    assert warnings == []


def test_operator_times_fit_the_cell() -> None:
    cell_profile = captured()
    assert (
        0 < sum(row.self_ns for row in cell_profile.operators) <= cell_profile.wall_ns
    )
    (lane,) = cell_profile.lanes
    assert lane.starts_ns[0] >= 0
    assert lane.starts_ns[-1] + lane.durations_ns[-1] <= cell_profile.wall_ns


def test_only_the_first_start_of_a_process_is_told_apart() -> None:
    captured()
    assert captured().first_start_ns is None


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    captured()
    assert capfd.readouterr() == ("", "")


def test_a_running_profiler_is_left_alone() -> None:
    with torch_profile(activities=[ProfilerActivity.CPU]) as users:
        with pytest.raises(ProfilerBusy, match="already running"):
            Capture().start()
        torch.ones(3)
    assert "aten::ones" in {event.name() for event in raw_events(users)}
    captured()


def raw_events(profiler: torch_profile) -> list[Any]:
    return profiler.profiler.kineto_results.events()


def test_a_profiler_inside_the_cell_wins_and_the_next_capture_works() -> None:
    capture = Capture()
    capture.start()
    with torch_profile(activities=[ProfilerActivity.CPU]) as users:
        torch.ones(3)
    with pytest.raises(CaptureFailed, match="its own profiler"):
        capture.stop()
    assert "aten::ones" in {event.name() for event in raw_events(users)}
    captured()


def test_a_profiler_left_running_by_the_cell_gives_no_figures() -> None:
    capture = Capture()
    capture.start()
    torch_profile(activities=[ProfilerActivity.CPU]).start()
    with pytest.raises(CaptureFailed, match="left it running"):
        capture.stop()
    captured()


def test_backward_on_its_own_thread_is_seen() -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    capture = Capture()
    capture.start()
    (weight @ torch.ones(4, 4)).sum().backward()
    names = {row.name for row in analyse(*capture.stop()).operators}
    assert "MmBackward0" in names


def test_what_older_torch_does_not_tell_is_inferred() -> None:
    """Before 2.13 an event does not say of which kind it is."""
    with torch_profile(activities=[ProfilerActivity.CPU]) as profiler:
        with torch.profiler.record_function("mine"):
            (torch.ones(4, 4, requires_grad=True) @ torch.ones(4, 4)).sum().backward()
    events = raw_events(profiler)
    assert {event.activity_type() for event in events} == {"cpu_op", "user_annotation"}
    assert {inferred_kind(event) for event in events} == {"cpu_op"}


def test_another_threads_operators_do_not_disturb() -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.001):
            torch.ones(2)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        calls = {row.name: row.calls for row in captured().operators}
    finally:
        stop.set()
        thread.join()
    assert calls["aten::dot"] == 5


def test_a_saved_trace_is_read_as_the_recording_was(tmp_path: Path) -> None:
    path = str(tmp_path / "trace.json")
    capture = Capture()
    capture.start()
    torch.ones(3) @ torch.ones(3)
    columns, _ = capture.stop()
    capture.save(path)
    read, run = read_chrome_trace(path)
    assert sorted(columns.names[at] for at in columns.name.tolist()) == sorted(
        read.names[at] for at in read.name.tolist()
    )
    assert run.start_ns <= read.start_ns.min()


def test_full_collections_of_garbage_are_noted(tmp_path: Path) -> None:
    before = list(gc.callbacks)
    capture = Capture()
    capture.start()
    gc.collect(0)
    for _ in range(2):
        torch.ones(3)
        gc.collect()
    _, run = capture.stop()
    assert gc.callbacks == before
    assert len(run.collections) >= 2
    assert all(begun_ns >= 0 and took_ns > 0 for begun_ns, took_ns in run.collections)
    path = str(tmp_path / "trace.json")
    capture.save(path)
    assert read_chrome_trace(path)[1].collections == run.collections
