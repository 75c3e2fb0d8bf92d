"""Judges what host code asked of the simulated GPU, with the true inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from warpbook_labs.counting import beyond_bounds
from warpbook_labs.host.messages import Left
from warpbook_labs.host.preparing import PreparedCalls, WrongCall
from warpbook_labs.host.telling import case_result
from warpbook_labs.host_spec import HostPlace
from warpbook_labs.jail import jobs
from warpbook_labs.ptx.findings import Finding
from warpbook_labs.results import CaseResult
from warpbook_labs.simulated.judging.errors import ProgramRefused
from warpbook_labs.simulated.judging.judge import Buffer, Judged, judge
from warpbook_labs.simulated.program import Place, Program
from warpbook_labs.spec import Counted
from warpbook_labs.texts import INVALID_MESSAGE, at_line

_PLACES: dict[HostPlace, Place] = {
    "device": "device",
    "pinned": "pinned",
    "host": "pageable",
}
_MOST_FINDINGS = 20
#: where what is right for the inputs that were recorded is wrong for others
_LOOKED = (
    "Python looks at numbers here, as `.item()` and `.tolist()` do. Without a "
    "GPU what you ask for is recorded once, then judged with other inputs, for which "
    "these numbers are wrong. Pass tensors on instead: `a[i] = b[i]`, `a.copy_(b)`."
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
        return case_result(case, left, INVALID_MESSAGE)
    try:
        judged, wrong = _judged(left.program, prepared)
    except ProgramRefused as problem:
        return case_result(case, left, str(problem))
    findings = tuple(
        Finding(each.kind, each.message, each.line)
        for each in judged.findings[:_MOST_FINDINGS]
    )
    counts = judged.counts[-1]
    looked = "" if judged.first_look is None else at_line(_LOOKED, judged.first_look)
    words = advice = ""
    line = None
    if findings:
        words = f"{findings[0].kind}: {findings[0].message}"
    elif wrong is None:
        parts = {"convolution_percent": judged.convolution_percents}
        words = beyond_bounds(counted, counts, case.sizes, parts)
        # a hidden case was recorded with other inputs anyhow
        is_open = looked and not (words or case.is_hidden)
        if is_open and not _holds_for_others(left.program, prepared):
            words, line = looked, judged.first_look
    elif case.is_hidden:
        advice = looked
    return case_result(
        case,
        left,
        words,
        wrong,
        advice,
        line,
        is_beyond=bool(words) and not (wrong or findings),
        findings=findings,
        host_counts=counts,
        bars=() if case.is_hidden else judged.bars,
    )


def _holds_for_others(program: Program, prepared: PreparedCalls) -> bool:
    """Tell whether a program is right with other inputs of the same case, too."""
    try:
        return _judged(program, prepared.with_other_inputs())[1] is None
    except ProgramRefused:
        return False


def _judged(
    program: Program, prepared: PreparedCalls
) -> tuple[Judged, WrongCall | None]:
    """Do what a program asks with the inputs of a case; also what is wrong first."""
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
    judged = judge(program, buffers, calls)
    return judged, prepared.first_wrong(_memory(prepared, judged))


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
