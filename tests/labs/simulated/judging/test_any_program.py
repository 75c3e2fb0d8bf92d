"""Whatever a program says, it is judged or refused, and in time."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.labs.simulated.judging.writing import CALLS
from warpbook_labs.engines.simulated import program as recorded
from warpbook_labs.engines.simulated.judging.calls.operations import OPERATIONS
from warpbook_labs.engines.simulated.judging.judge import judge
from warpbook_labs.engines.simulated.messages import Buffer, Verdict
from warpbook_labs.engines.simulated.program import ProgramRefused, View
from warpbook_labs.results.findings import MOST_FINDINGS

N = 16
X, OUT = View(1, "float32", (N,), (1,)), View(2, "float32", (N,), (1,))
BUFFERS = [
    Buffer("x", "device", "float32", (N,), True, False),
    Buffer("out", "device", "float32", (N,), False, True),
]
#: storages that the program may begin with, so that more of it makes sense
BEGIN = (
    recorded.Allocate(3, 64, "device", 0, 1),
    recorded.Allocate(4, 64, "device", 1, 2),
    recorded.Allocate(5, 64, "pinned", -1, 3),
    recorded.Allocate(6, 64, "pageable", -1, 4),
)

few = st.integers(0, 3)
lines = st.integers(-1, 40)
streams = st.sampled_from([0, 0, 1, 1, 2, 3, -1, 70])
sizes = st.sampled_from([0, 1, 2, 4, 8, 16, 16, 16, 17, -1, 1 << 40, 1 << 62])
numbers = st.sampled_from([0.0, 1.0, -1.0, 2.5, 1e300, float("inf"), float("nan")])
views = st.one_of(
    st.sampled_from([View(number, "float32", (N,), (1,)) for number in range(1, 7)]),
    st.sampled_from(
        [View(number, "float32", (4, 4), (4, 1)) for number in range(1, 7)]
    ),
    st.builds(
        View,
        st.integers(0, 8),
        st.sampled_from(
            ["float32", "float16", "bfloat16", "int64", "bool", "uint8", "O"]
        ),
        st.lists(sizes, max_size=4).map(tuple),
        st.lists(
            st.sampled_from([0, 1, 2, 4, 8, -1, 1 << 40, 1 << 62]), max_size=4
        ).map(tuple),
        st.integers(-1, 20),
        st.booleans(),
    ),
    st.just(View(5, "float32", (4, 4), (4, 1), 0, True)),
)
several = st.lists(views, max_size=3).map(tuple)
instructions = st.one_of(
    st.builds(
        recorded.Allocate,
        st.integers(0, 12),
        sizes,
        st.sampled_from(["device", "pinned", "pageable"]),
        streams,
        lines,
    ),
    st.builds(recorded.Release, st.integers(0, 8)),
    st.builds(recorded.UseOn, st.integers(1, 8), streams),
    st.builds(
        recorded.Launch,
        st.sampled_from([*OPERATIONS, "copy", "fill", "nothing"]),
        streams,
        several,
        several,
        st.lists(numbers, max_size=5).map(tuple),
        lines,
    ),
    st.builds(
        lambda call, stream, reads, writes, line: recorded.Launch(
            call[0], stream, reads, writes, (), line, call[1]
        ),
        st.sampled_from([*CALLS.values(), ("aten.neg_.default", '[[{"w": 0}], {}]')]),
        streams,
        several,
        several,
        lines,
    ),
    st.builds(
        lambda stream, source, target, line: recorded.Launch(
            "copy", stream, (source,), (target,), (), line
        ),
        streams,
        views,
        views,
        lines,
    ),
    st.builds(recorded.Copy, views, views, streams, st.booleans(), lines),
    st.builds(recorded.Read, views, st.text(max_size=3), lines, streams),
    st.builds(recorded.RecordEvent, few, streams, lines),
    st.builds(recorded.WaitEvent, few, streams, lines),
    st.builds(
        recorded.Synchronize,
        st.sampled_from(["device", "stream", "event"]),
        st.integers(-1, 3),
        lines,
    ),
    st.builds(recorded.BeginCapture, few, streams, lines),
    st.builds(recorded.EndCapture, few, lines),
    st.builds(recorded.Replay, few, streams, lines),
)


def done(*said: Any) -> Verdict | None:
    program = recorded.Program({"x": X, "out": OUT}, said)
    inputs = [{"x": np.arange(N, dtype=np.float32) + call} for call in range(2)]
    try:
        return judge(program, BUFFERS, inputs)
    except ProgramRefused:
        return None


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.lists(instructions, max_size=12), st.lists(instructions, max_size=12))
def test_it_is_judged_or_refused(before: list[Any], after: list[Any]) -> None:
    # what is refused is left out, so that the rest is looked at too
    kept: list[Any] = [*BEGIN, recorded.BeginCall(0)]
    for instruction in (*before, recorded.BeginCall(1), *after):
        ending = (
            []
            if recorded.BeginCall(1) in (*kept, instruction)
            else [recorded.BeginCall(1)]
        )
        if done(*kept, instruction, *ending) is not None:
            kept.append(instruction)
    judged = done(*kept)
    assert judged is not None
    assert len(judged.outputs) == len(judged.counts) == 2
    assert len(judged.findings) <= 7 * MOST_FINDINGS
