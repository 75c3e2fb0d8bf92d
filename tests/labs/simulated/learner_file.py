"""A learner's file, recorded in the jail and judged in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.simulated.messages import (
    Buffer,
    CaseRun,
    HostBuffer,
    HostCall,
    HostCase,
    HostRuns,
    HostVerdicts,
    Judge,
    Record,
    Trial,
    Verdict,
)
from warpbook_labs.engines.simulated.program import Instruction, Place, Program
from warpbook_labs.lab.host_spec import HostPlace
from warpbook_labs.results.findings import Finding, HostCounts
from warpbook_labs.sandbox import warm

Array = NDArray[Any]
_HOST: dict[Place, HostPlace] = {
    "device": "device",
    "pinned": "pinned",
    "pageable": "host",
}


class Failed(Exception):
    """The learner's file did; this is what they are told."""


@dataclass
class Done:
    """What came of it."""

    outputs: list[dict[str, Array]]
    findings: Sequence[Finding]
    counts: list[HostCounts]
    first_look: int | None


def left_of(
    source: str,
    buffers: Mapping[str, tuple[Array, Place]],
    sizes: Mapping[str, int],
    calls: int = 1,
    case_s: float = 60.0,
) -> CaseRun:
    """Run a file in the jail: each call has what the buffers hold."""
    held = tuple(
        HostBuffer(
            name, array.dtype.name, array.shape, _HOST[place], True, array.nbytes
        )
        for name, (array, place) in buffers.items()
    )
    data = {name: array.tobytes() for name, (array, _) in buffers.items()}
    case = HostCase(dict(sizes), held, (HostCall(data, {}),) * calls)
    outcome = warm.run(Record(source, "", (case,), case_s))
    assert isinstance(outcome.result, HostRuns), (outcome.message, outcome.result)
    return outcome.result.cases[0]


def program_of(
    source: str,
    buffers: Mapping[str, tuple[Array, Place]] | None = None,
    sizes: Mapping[str, int] | None = None,
    calls: int = 1,
) -> Program:
    """Record a file."""
    left = left_of(source, buffers or {}, sizes or {}, calls)
    if left.problem:
        raise Failed(f"Line {left.line}: {left.problem}")
    return msgspec.msgpack.decode(left.program, type=Program)


def judged(
    program: Program,
    buffers: Sequence[Buffer],
    calls: Sequence[Mapping[str, Array]],
) -> Verdict:
    """Judge a program in the jail."""
    given = tuple(
        {name: array.tobytes() for name, array in call.items()} for call in calls
    )
    trial = Trial(msgspec.msgpack.encode(program), tuple(buffers), given)
    outcome = warm.run(Judge((trial,)))
    assert isinstance(outcome.result, HostVerdicts), outcome.message
    [verdict] = outcome.result.verdicts
    return verdict


def judged_file(
    source: str,
    given: Sequence[NDArray[np.float32]],
    place: Place,
    out_place: Place | None = None,
) -> Done:
    """Record `prepare(n)` and `run(state, x, out)` with zeros, and judge with others.

    Args:
        source: the file.
        given: what x holds in each call; out has the same shape.
        place: where x is.
        out_place: where out is, if elsewhere.
    """
    zeros, shape = np.zeros_like(given[0]), given[0].shape
    places: dict[str, Place] = {"x": place, "out": out_place or place}
    lent = {name: (zeros, kind) for name, kind in places.items()}
    program = program_of(source, lent, {"n": zeros.size}, len(given))
    buffers = [
        Buffer(name, kind, "float32", shape, name == "x", name == "out")
        for name, kind in places.items()
    ]
    verdict = judged(program, buffers, [{"x": array} for array in given])
    assert not verdict.refused, verdict.refused
    assert verdict.counts
    outputs = [
        {
            name: np.frombuffer(data, np.float32).reshape(shape)
            for name, data in call.items()
        }
        for call in verdict.outputs
    ]
    return Done(outputs, verdict.findings, list(verdict.counts), verdict.first_look)


def kinds(done: Done) -> list[str]:
    """Name the findings."""
    return [finding.kind for finding in done.findings]


def of_kind(program: Program, kind: type[Instruction]) -> list[Any]:
    """Give all instructions of a kind."""
    return [
        instruction
        for instruction in program.instructions
        if isinstance(instruction, kind)
    ]
