"""A replay in which nothing is changed gives the trace again; and what follows what."""

from pathlib import Path

import numpy as np
import pytest

from tests.profiler.replay.exam import TRACES
from tests.profiler.replay.hosts import Trace
from tests.profiler.trace.simulated import Program as Simulated
from warpbook_profiler.events.columns import ON_GPU, Category
from warpbook_profiler.facts.trace import Trace as Recorded
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.replay.program import Program, program_of
from warpbook_profiler.replay.retiming import Retiming
from warpbook_profiler.replay.simulation import (
    HostTimes,
    Replayed,
    as_recorded,
    simulate,
    window_ns,
)

COPY = {"category": Category.COPY, "call": "cudaMemcpyAsync"}


def program(trace: Trace, code_end_ns: int | None = None) -> Program:
    return program_of(trace.read(code_end_ns))


def of_file(path: Path) -> Program:
    return program_of(Recorded(*read_chrome_trace(str(path))))


def scaled(replayed: Program, share: float) -> Replayed:
    return simulate(replayed, as_recorded(replayed).scaled(share))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_a_replay_without_a_change_gives_the_recorded_window(path: Path) -> None:
    recorded = of_file(path)
    again = simulate(recorded, as_recorded(recorded))
    assert again.window_ns == pytest.approx(recorded.window_ns, rel=0.01)
    assert again.piece_start_ns == pytest.approx(recorded.pieces.start_ns, abs=1_000)
    assert again.end_ns == pytest.approx(recorded.host.end_ns, abs=1_000)
    assert window_ns(recorded, as_recorded(recorded)) == pytest.approx(again.window_ns)


@pytest.mark.parametrize("seed", range(6))
def test_so_does_one_of_a_simulated_program(seed: int, tmp_path: Path) -> None:
    simulated = Simulated(seed, host_slow=0.5 + seed, sync_every=(0, 7, 40)[seed % 3])
    recorded = of_file(Path(simulated.write(tmp_path / "trace.json")))
    again = simulate(recorded, as_recorded(recorded))
    assert again.window_ns == pytest.approx(recorded.window_ns, rel=0.01)
    half = scaled(recorded, 0.5).window_ns
    assert scaled(recorded, 0.25).window_ns <= half <= again.window_ns


def test_events_at_the_times_of_such_a_replay_are_those_that_were_recorded() -> None:
    for path in TRACES:
        events, run = read_chrome_trace(str(path))
        recorded = of_file(path)
        again, window = Retiming(events, run, recorded).at(
            simulate(recorded, as_recorded(recorded))
        )
        work = events.only(*ON_GPU)
        assert np.allclose(again.only(*ON_GPU).start_ns, work.start_ns, atol=2_000)
        assert window.code_end_ns == pytest.approx(run.code_end_ns, abs=2_000)
        assert not again.is_in(Category.OVERHEAD).any()


def test_a_fast_host_runs_ahead_of_a_stream() -> None:
    trace = Trace()
    for step in range(10):
        trace.launch(100_000 * step, 100_000 * step + 6_000, 50_000)
    recorded = program(trace)
    assert scaled(recorded, 1.0).window_ns == pytest.approx(956_000)
    # ten kernels of 50 µs, close behind one another
    assert scaled(recorded, 0.01).window_ns == pytest.approx(500_000, rel=0.05)


def test_a_sync_holds_the_host_until_its_stream_is_done() -> None:
    trace = Trace()
    for step in range(10):
        at = 200_000 * step
        trace.launch(at, at + 6_000, 50_000)
        trace.call("cudaStreamSynchronize", at + 10_000, 50_000)
    recorded = program(trace)
    # the host's 140 µs go, and the 50 of each kernel stay
    assert scaled(recorded, 0.0).window_ns == pytest.approx(500_000, rel=0.15)


def test_a_sync_of_all_streams_waits_for_each_of_them() -> None:
    trace = Trace()
    trace.launch(0, 5_000, 400_000, stream=9)
    trace.launch(10_000, 15_000, 50_000)
    trace.call("cudaDeviceSynchronize", 20_000, 390_000)
    trace.launch(500_000, 506_000, 10_000)
    recorded = program(trace)
    again = scaled(recorded, 0.0)
    assert again.piece_start_ns[2] >= again.piece_end_ns[0] >= 400_000


def test_a_copy_to_pageable_memory_holds_the_host() -> None:
    trace = Trace()
    copy = {"name": "Memcpy DtoH (Device -> Pageable)", **COPY}
    for step in range(10):
        at = 400_000 * step
        trace.launch(at, at + 8_000, 200_000, took=210_000, **copy)
    recorded = program(trace)
    again = scaled(recorded, 0.0)
    assert (again.end_ns >= again.piece_end_ns).all()
    assert again.window_ns == pytest.approx(2_000_000, rel=0.1)


def test_a_copy_from_pageable_memory_holds_it_as_long_as_it_is_carried() -> None:
    trace = Trace()
    copy = {"name": "Memcpy HtoD (Pageable -> Device)", **COPY}
    for step in range(10):
        at = 400_000 * step
        trace.launch(at, at + 8_000, 200_000, took=196_000, **copy)
    recorded = program(trace)
    assert scaled(recorded, 0.0).window_ns == pytest.approx(2_000_000, rel=0.1)


def test_streams_that_wait_for_each_other_stay_one_after_the_other() -> None:
    """The host was so slow that no wait showed in the trace."""
    trace = Trace()
    for step in range(20):
        at = 100_000 * step
        trace.launch(at, at + 6_000, 30_000, stream=7 + step % 2)
        trace.call("cudaEventRecord", at + 8_000, 1_000)
        trace.call("cudaStreamWaitEvent", at + 10_000, 1_000)
    recorded = program(trace)
    assert scaled(recorded, 0.0).window_ns >= 20 * 30_000
    # without them, both streams work at the same time
    apart = Trace()
    for step in range(20):
        at = 100_000 * step
        apart.launch(at, at + 6_000, 30_000, stream=7 + step % 2)
    assert scaled(program(apart), 0.0).window_ns < 11 * 30_000


def test_what_started_when_another_stream_ended_waited_for_it() -> None:
    """An event was recorded long before, so that no pair of calls tells the streams."""
    trace = Trace()
    trace.launch(0, 6_000, 10_000, stream=9)
    trace.launch(5_000, 17_000, 300_000, stream=8)
    trace.call("cudaStreamWaitEvent", 10_000, 1_000)
    trace.launch(20_000, 318_000, 10_000, stream=7)
    recorded = program(trace)
    again = scaled(recorded, 0.0)
    assert again.piece_start_ns[2] >= again.piece_end_ns[1]


def test_a_graph_is_one_piece_of_work() -> None:
    trace = Trace()
    for step in range(5):
        at = 300_000 * step
        number = trace.call("cudaGraphLaunch", at, 10_000)
        for kernel in range(40):
            trace.work(at + 14_000 + 3_000 * kernel, 2_000, number)
    recorded = program(trace)
    assert len(recorded.pieces) == 5
    assert scaled(recorded, 0.0).window_ns == pytest.approx(5 * 119_000, rel=0.05)


def test_threads_that_take_turns_are_one_lane() -> None:
    trace = Trace()
    for step in range(10):
        at = 100_000 * step
        trace.operator(at, 40_000, tid=1)
        trace.launch(at + 10_000, at + 16_000, 5_000, tid=1)
        trace.operator(at + 50_000, 40_000, tid=2)
        trace.launch(at + 60_000, at + 66_000, 5_000, tid=2)
    recorded = program(trace)
    assert recorded.host.threads == ((1, 2),)
    assert scaled(recorded, 0.5).window_ns == pytest.approx(
        recorded.window_ns / 2, rel=0.05
    )


def test_threads_that_work_at_the_same_time_are_two() -> None:
    trace = Trace()
    for step in range(10):
        at = 100_000 * step
        for tid in (1, 2):
            trace.operator(at + tid, 80_000, tid=tid)
            trace.launch(at + 10_000 * tid, at + 10_000 * tid + 6_000, 5_000, tid=tid)
    recorded = program(trace)
    assert recorded.launching_lanes == 2
    again = simulate(recorded, as_recorded(recorded))
    assert again.window_ns == pytest.approx(recorded.window_ns, rel=0.01)


def test_one_thread_may_be_slower_than_it_was() -> None:
    """A what-if changes the times of some calls only."""
    trace = Trace()
    for step in range(10):
        trace.launch(100_000 * step, 100_000 * step + 6_000, 5_000)
    recorded = program(trace)
    times = as_recorded(recorded)
    gap_ns = times.gap_ns.copy()
    gap_ns[5] += 1_000_000
    slower = HostTimes(gap_ns, times.cost_ns, times.lag_ns, times.tail_ns)
    again = simulate(recorded, slower)
    assert again.window_ns == pytest.approx(recorded.window_ns + 1_000_000)
    assert (again.piece_start_ns[:5] == recorded.pieces.start_ns[:5]).all()


def test_a_trace_without_calls_or_without_work_is_replayed_too() -> None:
    alone = Trace()
    alone.work(5_000, 10_000, 3)
    recorded = program(alone)
    assert simulate(recorded, as_recorded(recorded)).window_ns == pytest.approx(15_000)
    idle = Trace()
    idle.operator(0, 50_000)
    recorded = program(idle)
    assert simulate(recorded, as_recorded(recorded)).window_ns == pytest.approx(50_000)
    read = idle.read()
    assert (
        len(Retiming(read.events, read.run, recorded).at(scaled(recorded, 0.5))[0]) == 1
    )
