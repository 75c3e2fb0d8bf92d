"""Judges what host code asked of the simulated GPU, with the true inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from warpbook_labs.counting import beyond_bounds
from warpbook_labs.host.messages import Left
from warpbook_labs.host.preparing import PreparedCalls
from warpbook_labs.host.telling import NO_SENSE, case_result
from warpbook_labs.host_spec import HostPlace
from warpbook_labs.jail import jobs
from warpbook_labs.ptx.findings import Finding
from warpbook_labs.results import CaseResult
from warpbook_labs.simulated.judging.errors import ProgramRefused
from warpbook_labs.simulated.judging.judge import Buffer, Judged, judge
from warpbook_labs.simulated.program import Place
from warpbook_labs.spec import Counted

_PLACES: dict[HostPlace, Place] = {
    "device": "device",
    "pinned": "pinned",
    "host": "pageable",
}
_MOST_FINDINGS = 20
#: a hidden case is recorded with other inputs than it is judged with
_LOOKED = (
    "Line {} looks at numbers of the GPU: without one they are of other inputs here. "
    "Keep the work on the GPU."
)


def told_simulated(
    counted: Sequence[Counted], prepared: PreparedCalls, left: Left
) -> CaseResult:
    """Run a recorded program on the simulated GPU, and say how that went.

    Args:
        counted: the lab's bounds.
        prepared: the case.
        left: what the jailed process says.
    """
    case = prepared.case
    if left.problem:
        return case_result(case, left)
    if left.program is None:
        return case_result(case, left, NO_SENSE)
    inputs = prepared.input_names
    buffers = [
        Buffer(
            each.name,
            _PLACES[each.place],
            each.dtype,
            each.shape,
            each.name in inputs,
            each.is_written,
        )
        for each in prepared.buffers
    ]
    calls = [prepared.inputs(each) for each in range(len(prepared.given))]
    try:
        judged = judge(left.program, buffers, calls)
    except ProgramRefused as problem:
        return case_result(case, left, str(problem))
    findings = tuple(
        Finding(each.kind, each.message, each.line)
        for each in judged.findings[:_MOST_FINDINGS]
    )
    wrong = prepared.first_wrong(_memory(prepared, judged))
    counts = judged.counts[-1]
    words = advice = ""
    if findings:
        words = f"{findings[0].kind}: {findings[0].message}"
    elif wrong is None:
        words = beyond_bounds(counted, counts, case.sizes)
    elif judged.first_look is not None and case.is_hidden:
        advice = _LOOKED.format(judged.first_look)
    return case_result(
        case,
        left,
        words,
        wrong,
        advice,
        is_beyond=bool(words) and not (wrong or findings),
        findings=findings,
        host_counts=counts,
        bars=() if case.is_hidden else judged.bars,
    )


def _memory(
    prepared: PreparedCalls, judged: Judged
) -> Iterator[dict[str, jobs.Memory]]:
    """Give what each call left in the outputs."""
    for outputs, unwritten in zip(judged.outputs, judged.unwritten, strict=True):
        held = {}
        for each in prepared.outputs:
            data = np.ascontiguousarray(outputs[each.name], each.dtype).tobytes()
            first = unwritten.get(each.name)
            if first is not None:
                first *= np.dtype(each.dtype).itemsize
            held[each.name] = jobs.Memory(
                each.name, len(data), data, first_unwritten=first
            )
        yield held
