"""Has what host code asked of the simulated GPU judged, with the true inputs.

A process of its own does that: here PyTorch is never loaded, and a program never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from warpbook_labs.cases import execution
from warpbook_labs.cases.bounds import Beyond, beyond_bounds
from warpbook_labs.engines.simulated.case_results import case_result
from warpbook_labs.engines.simulated.messages import (
    Buffer,
    CaseRun,
    HostVerdicts,
    Judge,
    Trial,
    Verdict,
)
from warpbook_labs.engines.simulated.preparation import PreparedCalls
from warpbook_labs.engines.simulated.program import Place
from warpbook_labs.lab.host_spec import HostPlace
from warpbook_labs.lab.spec import Counted
from warpbook_labs.lab.texts import INVALID_MESSAGE, at_line
from warpbook_labs.results.check import CaseResult
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.work import Limits

_PLACES: dict[HostPlace, Place] = {
    "device": "device",
    "pinned": "pinned",
    "host": "pageable",
}
_MOST_FINDINGS = 20
#: counted once, for the whole program
_OF_ALL_CALLS = ("convolution_percent", "unrepeatable")
#: of the CPU, for one program and for the start; by the clock thrice that
_PROGRAM_S, _START_S = 20, 60
#: where what is right for the inputs that were recorded is wrong for others
LOOKED = (
    "Python looks at numbers here, as `.item()` and `.tolist()` do. Without a "
    "GPU what you ask for is recorded once, then judged with other inputs, for which "
    "these numbers are wrong. Pass tensors on instead: `a[i] = b[i]`, `a.copy_(b)`."
)


class NotJudged(Exception):
    """The process that judges did not come to an end; the message says why."""


class JudgedCase(NamedTuple):
    """What a learner is told of a case, and what may explain it."""

    case: CaseResult
    #: of the GPU's work from which a wrong number came, the nearest first; of a case
    #: beyond its bounds those that its message names
    lines: tuple[int, ...] = ()
    #: it is wrong, and that may be since Python looked at other inputs' numbers: where
    looked_line: int | None = None


def told_simulated(
    counted: Sequence[Counted],
    ran: Sequence[tuple[PreparedCalls, CaseRun]],
    limits: Limits,
) -> list[JudgedCase]:
    """Run recorded programs on the simulated GPU, and say how that went.

    Args:
        ran: cases, and what the jailed process says of each.

    Raises:
        NotJudged: what judges them was stopped.
    """
    whole = [run for run in ran if run[1].program and not run[1].problem]
    verdicts = _verdicts([(left, cases) for cases, left in whole], limits)
    verdict_of = dict(zip((id(left) for _, left in whole), verdicts, strict=True))
    results = []
    for prepared, left in ran:
        verdict = verdict_of.get(id(left))
        if verdict is None:
            words = "" if left.problem else INVALID_MESSAGE
            results.append(JudgedCase(case_result(prepared.case, left, words)))
        elif verdict.refused or not _is_whole(prepared, verdict):
            words = verdict.refused or INVALID_MESSAGE
            results.append(JudgedCase(case_result(prepared.case, left, words)))
        else:
            results.append(_judged_case(counted, prepared, left, verdict, limits))
    return results


def _judged_case(
    counted: Sequence[Counted],
    prepared: PreparedCalls,
    left: CaseRun,
    verdict: Verdict,
    limits: Limits,
) -> JudgedCase:
    case = prepared.case
    wrong = prepared.first_wrong(_memory(prepared, verdict))
    findings = verdict.findings[:_MOST_FINDINGS]
    looked = "" if verdict.first_look is None else at_line(LOOKED, verdict.first_look)
    words = advice = ""
    named: tuple[int, ...] = ()
    line, is_unsupported = None, False
    if findings:
        words = f"{findings[0].kind}: {findings[0].message}"
    elif wrong is None:
        words, named = _beyond_bounds(counted, prepared, verdict)
        # a hidden case was recorded with other inputs anyhow
        is_open = looked and not (words or case.is_hidden)
        if is_open and not _holds_for_others(left, prepared, limits):
            words, line, is_unsupported = looked, verdict.first_look, True
    elif case.is_hidden:
        advice = looked
    result = case_result(
        case,
        left,
        words,
        wrong,
        advice,
        line,
        is_beyond=bool(words) and not (wrong or findings or is_unsupported),
        is_unsupported=is_unsupported,
        findings=findings,
        host_counts=verdict.counts[-1],
        bars=() if case.is_hidden else verdict.bars,
    )
    is_open = case.is_hidden and wrong is not None and not findings
    looked_line = verdict.first_look if is_open else None
    return JudgedCase(result, named or _sources(result, verdict), looked_line)


def _sources(case: CaseResult, verdict: Verdict) -> tuple[int, ...]:
    """Give the lines of the GPU's work from which a wrong number came."""
    if case.wrong is None:
        return ()
    return verdict.sources[max(case.call, 1) - 1].get(case.wrong.output, ())


def _beyond_bounds(
    counted: Sequence[Counted], prepared: PreparedCalls, verdict: Verdict
) -> Beyond:
    """Say which call does more than the lab allows; nothing if none does.

    The first of several may set up what the others use, such as a graph.
    """
    sizes, last = prepared.case.sizes, len(verdict.counts) - 1
    parts = {"convolution_percent": verdict.convolution_percents}
    beyond = beyond_bounds(
        counted, verdict.counts[last], sizes, parts, verdict.count_lines[last]
    )
    if beyond.words:
        return beyond
    for number, counts in enumerate(verdict.counts[1:last], 2):
        beyond = beyond_bounds(
            [bound for bound in counted if bound.count not in _OF_ALL_CALLS],
            counts,
            sizes,
            lines=verdict.count_lines[number - 1],
        )
        if beyond.words:
            return Beyond(f"In call {number}: {beyond.words}", beyond.lines)
    return Beyond()


def _holds_for_others(left: CaseRun, prepared: PreparedCalls, limits: Limits) -> bool:
    """Tell whether a program is right with other inputs of the same case, too."""
    others = prepared.with_other_inputs()
    [verdict] = _verdicts([(left, others)], limits)
    if verdict.refused or not _is_whole(others, verdict):
        return False
    return others.first_wrong(_memory(others, verdict)) is None


def _verdicts(
    trials: Sequence[tuple[CaseRun, PreparedCalls]], limits: Limits
) -> Sequence[Verdict]:
    """Have programs judged, each with the inputs of a case."""
    if not trials:
        return ()
    job = Judge(tuple(_trial(left.program, inputs) for left, inputs in trials))
    processor_s = _START_S + _PROGRAM_S * len(trials)
    limits = msgspec.structs.replace(limits, processor_s=processor_s)
    outcome = warm.run(job, limits)
    if not isinstance(outcome.result, HostVerdicts):
        raise NotJudged(outcome.message)
    if len(outcome.result.verdicts) != len(trials):
        raise NotJudged(INVALID_MESSAGE)
    return outcome.result.verdicts


def _trial(program: bytes, prepared: PreparedCalls) -> Trial:
    inputs = prepared.input_names
    buffers = tuple(
        Buffer(
            buffer.name,
            _PLACES[buffer.place],
            buffer.dtype,
            buffer.shape,
            buffer.name in inputs,
            buffer.is_written,
        )
        for buffer in prepared.buffers
    )
    calls = tuple(
        {name: held.tobytes() for name, held in prepared.inputs(number).items()}
        for number in range(len(prepared.given))
    )
    return Trial(program, buffers, calls)


def _is_whole(prepared: PreparedCalls, verdict: Verdict) -> bool:
    """Tell whether a verdict has an answer of the right size for each output."""
    sizes = {output.name: output.size_bytes for output in prepared.outputs}
    sizes_by_call = [
        {name: len(data) for name, data in call.items()} for call in verdict.outputs
    ]
    of = len(prepared.given)
    by_call = (
        verdict.counts,
        verdict.count_lines,
        verdict.unwritten,
        verdict.writers,
        verdict.sources,
    )
    return all(len(call) == of for call in by_call) and sizes_by_call == [sizes] * of


def _memory(
    prepared: PreparedCalls, verdict: Verdict
) -> Iterator[Mapping[str, execution.Memory]]:
    """Give what each call left in the outputs."""
    calls = zip(verdict.outputs, verdict.unwritten, verdict.writers, strict=True)
    for outputs, unwritten, writers in calls:
        held = {}
        for output in prepared.outputs:
            data = outputs[output.name]
            first = unwritten.get(output.name)
            if first is not None:
                first *= np.dtype(output.dtype).itemsize
            last, computed = writers.get(output.name, (b"", b""))
            held[output.name] = execution.Memory(
                output.name,
                len(data),
                data,
                first_unwritten=first,
                writer_lines=last,
                computed_lines=computed,
            )
        yield held
