"""Checks a submission on host code without a GPU, as its lab says.

What a jailed process gives back is data: of PyTorch on the CPU what the buffers
hold, of the simulated GPU the program that it was asked to do, which is judged here.

Decides on cases that are wrong where Python looked at numbers.

A hidden case is recorded with other inputs than count, so a program that hangs on the
numbers that Python saw is wrong with these, whether or not a GPU would be given it. It
is recorded once more, and judged with the very inputs that it was recorded with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import msgspec

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.simulated.case_results import (
    asked_of,
    case_result,
    followed,
    with_lines,
)
from warpbook_labs.engines.simulated.messages import (
    Ask,
    CaseRun,
    HostRuns,
    Record,
    RunOnCpu,
    RunOnRanks,
    RunTorch,
)
from warpbook_labs.engines.simulated.preparation import PreparedCalls
from warpbook_labs.engines.simulated.recorded import (
    LOOKED,
    JudgedCase,
    NotJudged,
    told_simulated,
)
from warpbook_labs.errors import BadLab, BadSource, NotInstalled
from warpbook_labs.lab.host_spec import Host
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.sources import refuse_unfit
from warpbook_labs.lab.texts import INVALID_MESSAGE, at_line
from warpbook_labs.results.check import (
    CaseResult,
    CheckResult,
    Status,
    has_wrong,
    sentence,
    status_of,
)
from warpbook_labs.sandbox import parent, warm
from warpbook_labs.sandbox.kept import KeptProcessError
from warpbook_labs.sandbox.parent import Outcome
from warpbook_labs.sandbox.progress import Steps
from warpbook_labs.sandbox.work import Answer, Limits, Refused

#: cases that are recorded once more
_MOST_TRIED = 4


def decided(
    verdicts: Sequence[JudgedCase],
    batch: Sequence[PreparedCalls],
    again: Callable[[PreparedCalls], CaseResult | None],
) -> list[JudgedCase]:
    """Tell what can't be checked without a GPU from what is wrong.

    Args:
        again: records a case once more, and judges it with the same inputs.
    """
    results = list(verdicts)
    places = [
        place
        for place, verdict in enumerate(verdicts)
        if verdict.looked_line is not None
    ]
    for place in places[:_MOST_TRIED]:
        result = again(batch[place].as_shown())
        if result is not None and not (result.passed or result.is_unsupported):
            # one that is wrong decides on the submission
            return results
    for place in places:
        results[place] = JudgedCase(_unsupported(results[place]))
    return results


def _unsupported(verdict: JudgedCase) -> CaseResult:
    return msgspec.structs.replace(
        verdict.case,
        message=at_line(LOOKED, verdict.looked_line),
        line=verdict.looked_line,
        wrong=None,
        advice="",
        call=0,
        is_unsupported=True,
    )


#: of all buffers of all cases that one process is given
_MOST_BATCH_BYTES = 64 << 20
_MOST_ANSWER_BYTES = 128 << 20
_LEAST_PROCESSOR_S = 60
_MOST_WORDS = 600
_NOT_RUN = "It was not run, since a case before it took too long."


def check_host(submission: Submission, cases: Sequence[DrawnCase]) -> CheckResult:
    """Check a submission, and tell every case in their order.

    Its limits are of each process, which gets more time than a kernel's at least.

    Raises:
        NotInstalled: it takes PyTorch, which is not installed.
        BadLab: the lab's own Python fails.
    """
    loaded, of = submission.loaded, len(cases)
    lab = loaded.lab
    if lab.host is None:
        raise BadLab(f"{loaded.folder / 'lab.toml'}: host: it has none.")
    try:
        refuse_unfit(submission.source)
    except BadSource as problem:
        line = problem.line
        return CheckResult(lab.id, "compile error", str(problem), of=of, line=line)
    limits = submission.limits or Limits()
    limits = msgspec.structs.replace(
        limits,
        processor_s=max(limits.processor_s, _LEAST_PROCESSOR_S),
        output_bytes=_MOST_ANSWER_BYTES,
    )
    done: list[CaseResult] = []
    isolation, steps, is_explained = "", Steps(of), False
    for batch in _batches(submission, cases):
        outcome = _outcome(_job(submission, lab.host, batch), limits, steps)
        if isinstance(outcome.result, Refused):
            refused = outcome.result
            words, line = refused.message[:_MOST_WORDS], refused.line
            is_unknown = refused.status == "unsupported"
            status: Status = "unsupported" if is_unknown else "compile error"
            return CheckResult(lab.id, status, words, of=of, line=line)
        if not isinstance(outcome.result, HostRuns):
            return CheckResult(lab.id, outcome.ended, outcome.message, of=of)
        left = outcome.result.cases
        is_over = bool(left) and left[-1].is_too_long
        if len(left) > len(batch) or (len(left) < len(batch) and not is_over):
            return CheckResult(lab.id, "stopped", INVALID_MESSAGE, of=of)
        # what was not run has no answer
        ran = list(zip(batch, left, strict=False))
        if lab.host.without_gpu != "simulated":
            judged = [JudgedCase(_judged_case(*run)) for run in ran]
        else:
            try:
                judged = told_simulated(lab.counted, ran, limits)
                again = partial(_again, submission, lab.host, limits)
                judged = decided(judged, batch, again)
            except NotJudged as problem:
                return CheckResult(lab.id, "stopped", str(problem), of=of)
        isolation = outcome.isolation
        begin = len(done)
        done += (verdict.case for verdict in judged)
        if is_over:
            break
        for place, (prepared, one) in enumerate(zip(batch, judged, strict=True), begin):
            # lines are followed within one process
            is_explained |= bool(lab.host.on_ranks)
            question = None if is_explained else asked_of(one.case, one.lines)
            if question is not None:
                job = _job(submission, lab.host, [prepared])
                lines = followed(job, question, partial(_outcome, limits=limits))
                done[place] = with_lines(done[place], lines, one.lines)
                is_explained = True
        if submission.stops_at_wrong and has_wrong(done):
            cases = cases[: len(done)]
            break
    done += (case_result(case, CaseRun(), _NOT_RUN) for case in cases[len(done) :])
    right = sum(case.passed for case in done)
    return CheckResult(
        lab.id,
        status_of(done),
        sentence(done),
        tuple(done),
        right,
        len(done),
        isolation=isolation,
        not_graded=("Speed is not graded without a GPU.",) if lab.speed else (),
    )


def _again(
    submission: Submission, host: Host, limits: Limits, prepared: PreparedCalls
) -> CaseResult | None:
    """Record one case, and judge it with the same inputs; None if it does not end."""
    outcome = _outcome(_job(submission, host, [prepared]), limits)
    if not isinstance(outcome.result, HostRuns) or len(outcome.result.cases) != 1:
        return None
    ran = [(prepared, outcome.result.cases[0])]
    return told_simulated(submission.loaded.lab.counted, ran, limits)[0].case


def _batches(
    submission: Submission, cases: Sequence[DrawnCase]
) -> Iterator[list[PreparedCalls]]:
    """Draw the cases' numbers, as many at a time as one process is given.

    Where it may stop at a wrong one, those that are shown are run first.
    """
    batch: list[PreparedCalls] = []
    for case in cases:
        prepared = PreparedCalls(submission.loaded, case)
        held = prepared.size_bytes + sum(call.size_bytes for call in batch)
        is_next = submission.stops_at_wrong and case.is_hidden
        if batch and (held > _MOST_BATCH_BYTES or is_next > batch[-1].case.is_hidden):
            yield batch
            batch = []
        batch.append(prepared)
    if batch:
        yield batch


def _job(
    submission: Submission, host: Host, batch: Sequence[PreparedCalls]
) -> RunTorch | Record:
    given = submission.loaded.given
    if host.without_gpu != "simulated":
        cases = tuple(prepared.to_run() for prepared in batch)
        if host.on_ranks:
            return RunOnRanks(
                submission.source, given, cases, host.case_s, functions=host.on_ranks
            )
        run = RunOnCpu if host.without_gpu == "cpu" else RunTorch
        return run(submission.source, given, cases, host.case_s)
    cases = tuple(prepared.to_record() for prepared in batch)
    return Record(submission.source, given, cases, host.case_s)


def _outcome(
    job: RunTorch | Record, limits: Limits, steps: Steps | None = None
) -> parent.Outcome[HostRuns]:
    """Have it done with the simulated GPU's PyTorch; or, if need be, without one."""
    if isinstance(job, RunOnRanks):
        return run_on_ranks(job, limits, steps)
    try:
        return warm.run(job, limits, steps)
    except NotInstalled:
        if isinstance(job, Record):
            raise
        # of training only results are judged, which the CPU has, too
        return parent.run(job, limits)


def _judged_case(prepared: PreparedCalls, left: CaseRun) -> CaseResult:
    """Compare what every call left with what is right."""
    if left.problem:
        return case_result(prepared.case, left)
    outputs = prepared.outputs
    sizes = [
        {output.name: len(of_call.get(output.name, b"")) for output in outputs}
        for of_call in left.outputs
    ]
    right_sizes = {output.name: output.size_bytes for output in outputs}
    if sizes != [right_sizes] * len(prepared.given):
        return case_result(prepared.case, left, INVALID_MESSAGE)
    wrong = prepared.first_wrong(
        {
            output.name: prepared.memory(output, of_call[output.name])
            for output in outputs
        }
        for of_call in left.outputs
    )
    return case_result(prepared.case, left, wrong=wrong)


def run_on_ranks(
    job: RunOnRanks, limits: Limits, steps: Steps | None
) -> Outcome[HostRuns]:
    """Do a job whose ranks are asked by it.

    Raises:
        NotInstalled: PyTorch is not installed.
        TooBusy: the machine has no CPU time for it.
    """
    began, asked = time.monotonic(), "The process that answers all ranks"
    ranks: dict[str, Callable[[bytes], bytes]] = {}
    with ExitStack() as stack:
        try:
            run = stack.enter_context(warm.kept(RunOnRanks, limits, steps))
            content = msgspec.msgpack.encode(job)
            while isinstance(
                result := (answer := _answer(job, run(content))).result, Ask
            ):
                asked = result.process
                if asked not in ranks:
                    kept = warm.kept(RunOnRanks, limits)
                    ranks[asked] = stack.enter_context(kept)
                content = ranks[asked](result.content)
        except KeptProcessError as problem:
            words = f"{asked}: {problem}"
            ended: parent.Status = "timeout" if problem.is_late else "crashed"
            return Outcome(ended, words, None, None, time.monotonic() - began)
    took_s = time.monotonic() - began
    return Outcome("done", "", result, answer.tier, took_s, answer.is_filtered)


def _answer(job: RunOnRanks, content: bytes) -> Answer[HostRuns | Ask | Refused]:
    return job.work.decoder.decode(content)
