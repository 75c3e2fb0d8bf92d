"""Whatever a file says, a replay ends, and its times are numbers."""

import random

import numpy as np
import pytest

from tests.profiler.replay.hosts import Trace
from warpbook_profiler.events.columns import Category
from warpbook_profiler.replay.program import program_of
from warpbook_profiler.replay.simulation import as_recorded, simulate
from warpbook_profiler.verdict.analysis import analyse

CALLS = (
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
    "cudaMemcpy",
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaEventRecord",
    "cudaStreamWaitEvent",
    "cudaStreamBeginCapture",
    "hipStreamWaitEvent",
)
WORK = ("k", "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pageable -> Device)")
LONGEST_NS = 10**15


def nonsense(seed: int) -> Trace:
    """Calls within calls, work before its launch, numbers used twice, far-off times."""
    drawn = random.Random(seed)
    trace = Trace()

    def moment() -> int:
        return drawn.choice((0, drawn.randrange(10**6), drawn.randrange(LONGEST_NS)))

    for _ in range(drawn.randrange(1, 120)):
        tid = drawn.randrange(1, 1 + seed % 50)
        what = drawn.random()
        if what < 0.2:
            trace.operator(moment(), moment(), tid)
        elif what < 0.3:
            trace.overhead(moment(), moment())
        elif what < 0.6:
            trace.call(drawn.choice(CALLS), moment(), moment(), tid)
        else:
            number = drawn.choice((-1, 0, drawn.randrange(1, trace.correlation + 2)))
            name = drawn.choice(WORK)
            kind = Category.KERNEL if name == "k" else Category.COPY
            stream = drawn.choice((-1, 7, drawn.randrange(2**60)))
            trace.work(moment(), moment(), number, stream, name, kind)
    return trace


@pytest.mark.parametrize("seed", range(1, 200, 2))
def test_nonsense_is_replayed(seed: int) -> None:
    recorded = nonsense(seed).read()
    program = program_of(recorded)
    for share in (1.0, 0.5, 0.0):
        again = simulate(program, as_recorded(program).scaled(share))
        assert np.isfinite(again.window_ns) and again.window_ns >= 0
        assert np.isfinite(again.piece_start_ns).all()
        assert np.isfinite(again.end_ns).all()
    profile = analyse(recorded.events, recorded.run)
    if profile.bare is not None:
        assert 0 <= profile.bare.low_ns <= profile.bare.time_ns <= profile.bare.high_ns


def test_many_streams_and_many_waits_take_no_longer_than_either() -> None:
    """A wait for all streams does not look at each of them."""
    trace = Trace()
    for step in range(5_000):
        trace.launch(10_000 * step, 10_000 * step + 5_000, 1_000, stream=step)
        trace.call("cudaDeviceSynchronize", 10_000 * step + 6_000, 3_000)
    program = program_of(trace.read())
    again = simulate(program, as_recorded(program))
    assert again.window_ns == pytest.approx(program.window_ns, rel=0.01)
