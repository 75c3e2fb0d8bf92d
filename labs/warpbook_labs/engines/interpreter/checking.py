"""Checks a submission without a GPU: compiled by NVRTC, run by the interpreter.

Triton's sources are run by Triton's own interpreter, each access looked at.

Right results are not enough: a race, a barrier that some threads miss, or a read of
what nobody wrote fails a case too, since a GPU may give another result next time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from warpbook_labs.cases import execution
from warpbook_labs.cases.bounds import beyond_bounds, matrix_instructions
from warpbook_labs.cases.comparison import WrongElement, number_words, wrong_words
from warpbook_labs.cases.launch_limits import refuse_at_large_sizes
from warpbook_labs.cases.preparation import Prepared
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.compiler.jobs import Compiled
from warpbook_labs.compiler.nvrtc import advice, lacking_headers
from warpbook_labs.engines.interpreter.explaining import (
    address_words,
    answered,
    believed,
    of_counts,
    of_finding,
    of_wrong,
    with_address,
    with_left_out,
    with_lines,
    with_moved,
)
from warpbook_labs.engines.interpreter.front_ends import FrontEnd, Stopped, interpret
from warpbook_labs.engines.interpreter.jobs import LineQuestion, Origin, RunResult
from warpbook_labs.errors import BadRule, BadSource, NotHere
from warpbook_labs.lab.entry_names import plain_name
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.sources import refuse_unfit
from warpbook_labs.lab.spec import Counted
from warpbook_labs.results.check import (
    CaseResult,
    CheckResult,
    Status,
    has_wrong,
    sentence,
    status_of,
)
from warpbook_labs.results.findings import Counts, Finding, top_lines
from warpbook_labs.results.occupancy import (
    KernelOccupancy,
    held_by_launches,
    read_log,
)
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.work import Limits, Refused

#: of one case, so that a result stays small enough to be kept
_MOST_LINES = 200
_MOST_FINDINGS = 20
_MOST_PRINTED = 4_000
_MOST_RESOURCES = 16
#: cases that one process runs where what follows a wrong one is left out
_MOST_AT_ONCE = 4
#: of a block
_MOST_REGISTERS = 65_536
#: times a bound: eight neighbours of a thread one by one, and sectors at their ends
_MOST_UNALIGNED = 10
#: before what is wrong with a second call
_AGAIN = (
    "Called a second time, with its `__device__` variables as the first call left them:"
)


def check_kernels(
    front_end: FrontEnd, submission: Submission, cases: Sequence[DrawnCase]
) -> CheckResult:
    """Check a submission; cases are in the result in their order, all that are run.

    Raises:
        NotInstalled: NVRTC, or Triton, is not installed.
        BadLab: the lab's own Python fails.
    """
    lab, limits = submission.loaded.lab, submission.limits or Limits()
    try:
        sources = front_end.configurations(submission.source)
    except BadSource as problem:
        status, words = _refused(problem), str(problem)
        return CheckResult(lab.id, status, words, of=len(cases), line=problem.line)
    if len(sources) > 1:
        return _check_each(front_end, submission, sources, cases)
    (source,) = sources
    submission = submission.with_source(source)

    def ended(
        status: Status, message: str, log: str = "", line: int | None = None
    ) -> CheckResult:
        return CheckResult(lab.id, status, message, of=len(cases), log=log, line=line)

    try:
        refuse_unfit(source)
        rule = rule_of(lab, source)
        refuse_at_large_sizes(lab, rule)
        prepared = [_CheckedCase(submission, rule, case) for case in cases]
        build = front_end.build(submission, rule, cases)
    except BadSource as problem:
        return ended(_refused(problem), str(problem), line=problem.line)
    except BadRule as problem:
        return ended("bad launch rule", str(problem), line=problem.line)
    # it loads while the source is compiled
    warm.wake(front_end.kind)
    built = warm.run(build, limits)
    simpler = front_end.simpler_build(build)
    if built.result is None and simpler is not None:
        built = warm.run(simpler, limits)
    compiled = built.result
    if isinstance(compiled, Refused) and compiled.status == "unsupported":
        return ended("unsupported", compiled.message, line=compiled.line)
    if not isinstance(compiled, Compiled):
        log = compiled.message if isinstance(compiled, Refused) else ""
        if lacking := lacking_headers(log):
            return ended("unsupported", lacking, log)
        words = "It does not compile." if log else f"The compiler: {built.message}"
        words += advice(log)
        line = compiled.line if isinstance(compiled, Refused) else None
        return ended("compile error", words, log, line)
    resources = _resources(compiled.resources_log, prepared)
    for kernel in resources:
        taken = -(-kernel.resources.registers // 8) * 8 * kernel.threads_per_block
        if taken > _MOST_REGISTERS:
            words = (
                f"A block of `{kernel.resources.kernel}` takes {taken:,} registers; no "
                f"GPU has more than {_MOST_REGISTERS:,} for one (`__launch_bounds__`)."
            )
            return ended("bad launch rule", words, compiled.log)
    program = front_end.program(source, compiled)
    ran: list[RunResult] = []
    done: list[CaseResult] = []
    isolation = ""
    while len(done) < len(prepared) and not has_wrong(done):
        portion = prepared[len(done) :]
        if submission.stops_at_wrong:
            portion = portion[: min(len(done) + 1, _MOST_AT_ONCE)]
        runs = tuple(one.run for one in portion)
        try:
            interpreted = interpret(front_end, program, runs, limits)
        except Stopped as problem:
            return ended(problem.status, str(problem), compiled.log)
        isolation = interpreted.isolation
        ran += interpreted.runs
        done += [
            one.result(each, compiled.ptx)
            for one, each in zip(portion, interpreted.runs, strict=True)
        ]
    for place, one in enumerate(prepared):
        if one.question is None:
            continue
        answer = answered(front_end, program, one.run, limits, one.question)
        last_line, launches = len(source.splitlines()), len(rule.launches)
        origin = believed(answer, last_line, launches)
        if origin is not None:
            if one.question.what == "value" and origin.writer:
                more = front_end.left_out(source, program, origin.writer, origin.lines)
                origin = with_left_out(origin, more)
            done[place] = one.result(ran[place], compiled.ptx, origin)
        break
    right = sum(case.passed for case in done)
    return CheckResult(
        lab.id,
        status_of(done),
        sentence(done),
        tuple(done),
        right,
        len(done),
        compiled.log,
        isolation,
        ("Speed is not graded without a GPU.",) if lab.speed else (),
        resources,
    )


def _check_each(
    front_end: FrontEnd,
    submission: Submission,
    sources: Sequence[str],
    cases: Sequence[DrawnCase],
) -> CheckResult:
    """Check the configurations of a source, each with some of the cases."""
    results: list[CheckResult] = []
    for at, source in enumerate(sources[: len(cases)]):
        of_source = submission.with_source(source)
        result = check_kernels(front_end, of_source, cases[at :: len(sources)])
        is_wrong = submission.stops_at_wrong and has_wrong(result.cases)
        if is_wrong or result.status not in ("passed", "failed"):
            return msgspec.structs.replace(result, of=len(cases))
        results.append(result)
    done: list[CaseResult] = []
    for at in range(len(cases)):
        done.append(results[at % len(sources)].cases[at // len(sources)])
    right = sum(case.passed for case in done)
    return msgspec.structs.replace(
        results[0],
        status="passed" if right == len(done) else "failed",
        message=sentence(done),
        cases=tuple(done),
        right=right,
        of=len(done),
    )


def _refused(problem: BadSource) -> Status:
    """Tell what a GPU might run from what it would not."""
    return "unsupported" if isinstance(problem, NotHere) else "compile error"


def _resources(
    log: str, prepared: Sequence[_CheckedCase]
) -> tuple[KernelOccupancy, ...]:
    """Tell what a multiprocessor holds of each kernel, as cases shown launch it."""
    resources, _ = read_log(log)
    launches = (
        (
            plain_name(launch.kernel),
            math.prod(launch.block),
            launch.dynamic_shared_bytes,
        )
        for one in prepared
        if not one.is_hidden
        for launch in one.run.launches
    )
    return held_by_launches(resources, launches)[:_MOST_RESOURCES]


def _for_unaligned(bound: Counted) -> Counted:
    """Loosen a bound, which is that of buffers that wide accesses may begin at."""
    most = bound.most and f"{_MOST_UNALIGNED} * ({bound.most})"
    return msgspec.structs.replace(bound, most=most, least="")


class _CheckedCase:
    """What the interpreter did with a case, in words for a learner."""

    def __init__(self, submission: Submission, rule: Rule, case: DrawnCase) -> None:
        self._prepared = Prepared(submission.loaded, rule, case)
        self._lab, self._case, self._rule = submission.loaded.lab, case, rule
        #: what may be asked of a case that failed
        self.question: LineQuestion | None = None
        self._source = submission.source
        self._lines = len(self._source.splitlines())

    @property
    def is_hidden(self) -> bool:
        return self._case.is_hidden

    @property
    def run(self) -> execution.Run:
        return self._prepared.run

    def result(
        self, ran: RunResult, ptx: str, origin: Origin | None = None
    ) -> CaseResult:
        """Compare what the launches left with what is right."""
        if ran.refused:
            return self._outcome(
                False,
                ran.refused,
                line=ran.line,
                is_unsupported=ran.status == "unsupported",
            )
        reports = ran.reports
        launched = [launch.kernel for launch in self.run.launches]
        counts = Counts(matrix_instructions=matrix_instructions(ptx, launched))
        lines: dict[int, Counts] = {}
        for report in reports:
            counts.add(report.counts)
            for line, of_line in report.lines.items():
                lines.setdefault(line, Counts()).add(of_line)
        findings = tuple(
            finding
            for report in (*reports, *ran.again_reports)
            for finding in report.findings
        )
        wrong, is_again = None, False
        if not reports[-1].stopped:
            wrong = self._wrong(ran.memory)
            if wrong is None and ran.again and not ran.again_reports[-1].stopped:
                wrong = self._wrong(ran.again)
                is_again = wrong is not None
        self._ask(wrong, findings, counts, lines, is_again)
        if findings:
            findings, is_moved = with_moved(findings, self._source)
        if origin is not None and findings:
            findings = with_address(findings, origin, is_moved)
        elif origin is not None and wrong is not None:
            wrong = with_lines(wrong, origin, self._rule)
        products: Counter[int] = Counter()
        for report in reports:
            products.update(report.products)
        message = self._judge(wrong, findings, counts, lines, top_lines(products))
        if origin is not None and not (findings or wrong):
            message += address_words(origin)
        if is_again and not findings:
            message = f"{_AGAIN} {message}"
        slowest = sorted(lines, key=lambda number: -lines[number].warp_instructions)
        return self._outcome(
            not message,
            message,
            line=wrong.line if wrong is not None and not findings else None,
            wrong=wrong,
            is_beyond=bool(message) and not (wrong or findings or reports[-1].stopped),
            findings=findings[:_MOST_FINDINGS],
            counts=counts,
            lines={number: lines[number] for number in sorted(slowest[:_MOST_LINES])},
            printed="".join(report.printed for report in reports)[:_MOST_PRINTED],
        )

    def _ask(
        self,
        wrong: WrongElement | None,
        findings: Sequence[Finding],
        counts: Counts,
        lines: Mapping[int, Counts],
        is_again: bool,
    ) -> None:
        """Note what may be asked of a case that failed."""
        lab, sizes = self._lab, self._case.sizes
        if findings:
            self.question = of_finding(findings)
        elif wrong is not None:
            self.question = of_wrong(wrong, lab, sizes, is_again)
        elif self._prepared.is_aligned:
            self.question = of_counts(lab.counted, counts, lines, sizes)

    def _wrong(self, memory: Sequence[execution.Memory]) -> WrongElement | None:
        wrong = self._prepared.wrong({part.name: part for part in memory})
        if wrong is None or wrong.line is None or wrong.line <= self._lines:
            return wrong
        return msgspec.structs.replace(wrong, line=None)

    def _outcome(self, passed: bool, message: str, **more: Any) -> CaseResult:
        hidden = self._case.is_hidden
        sizes = None if hidden else dict(self._case.sizes)
        if hidden:
            more["printed"] = ""
        return CaseResult(self._case.about, hidden, passed, message, sizes, **more)

    def _judge(
        self,
        wrong: WrongElement | None,
        findings: tuple[Finding, ...],
        counts: Counts,
        lines: Mapping[int, Counts],
        instead: Sequence[int],
    ) -> str:
        if findings:
            words = f"{findings[0].kind}: {findings[0].message}"
            if findings[0].kind == "race" and wrong is not None:
                # it may be of a wrong place, to which too many threads write
                words = f"{words} In this order {number_words(wrong)}."
            return words
        if wrong is not None:
            return wrong_words(wrong)
        counted = self._lab.counted
        if not self._prepared.is_aligned:
            counted = tuple(_for_unaligned(bound) for bound in counted)
        count_lines: dict[str, Sequence[int]] = {
            bound.count: top_lines(
                {line: getattr(of, bound.count) for line, of in lines.items()}
            )
            for bound in counted
        }
        return beyond_bounds(
            counted, counts, self._case.sizes, lines=count_lines, instead=instead
        ).words
