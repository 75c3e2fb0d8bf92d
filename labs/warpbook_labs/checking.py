"""Checks a submission without a GPU: compiled by NVRTC, run by the interpreter.

Right results are not enough: a race, a barrier that some threads miss, or a read of
what nobody wrote fails a case too, since a GPU may give another result next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from warpbook_labs.comparing import WrongElement, first_wrong
from warpbook_labs.drawing import DrawnCase
from warpbook_labs.expressions import BadExpression, value
from warpbook_labs.jail import jobs, parent
from warpbook_labs.jail.limits import TIER_WORDS, Limits, Tier
from warpbook_labs.launch_rule import BadRule, Launch, Rule, read_rule
from warpbook_labs.loader import BadLab, LoadedLab
from warpbook_labs.ptx.findings import Counts, Finding
from warpbook_labs.sources import BadSource, refuse_unfit
from warpbook_labs.spec import Parameter

Status = Literal["passed", "failed", "compile error", "bad launch rule", "stopped"]
#: what a submission may have as scratch memory, in all
_MOST_SCRATCH_BYTES = 32 << 20
#: of one case, so that a result stays small enough to be kept
_MOST_LINES = 200
_MOST_FINDINGS = 20
_MOST_PRINTED = 4_000


class CaseResult(Struct, frozen=True):
    """How one case went."""

    about: str
    is_hidden: bool
    passed: bool
    #: in words; empty if it passed
    message: str
    #: of a case that the learner sees
    sizes: dict[str, int] | None = None
    wrong: WrongElement | None = None
    findings: tuple[Finding, ...] = ()
    counts: Counts | None = None
    lines: dict[int, Counts] = {}
    printed: str = ""


class CheckResult(Struct, frozen=True):
    """How a submission went, case by case."""

    lab: str
    status: Status
    #: in one sentence
    message: str
    cases: tuple[CaseResult, ...] = ()
    #: cases that are right, of how many; not all of them are told above
    right: int = 0
    of: int = 0
    #: what the compiler said
    log: str = ""
    #: where it was done, in words
    isolation: str = ""
    #: what can't be graded here, and why
    not_graded: tuple[str, ...] = ()


def check(
    loaded: LoadedLab, source: str, cases: Sequence[DrawnCase], limits: Limits
) -> CheckResult:
    """Check a submission against cases, and tell what a learner may know.

    Raises:
        NoCompiler: NVRTC is not installed.
        BadLab: the lab's own Python fails.
    """
    result = check_all(loaded, source, cases, limits)
    return msgspec.structs.replace(result, cases=_shown(result.cases))


def check_all(
    loaded: LoadedLab, source: str, cases: Sequence[DrawnCase], limits: Limits
) -> CheckResult:
    """Check a submission, and tell every case in their order, for a lab's author."""
    lab = loaded.lab

    def ended(status: Status, message: str, log: str = "") -> CheckResult:
        return CheckResult(lab.id, status, message, of=len(cases), log=log)

    try:
        refuse_unfit(source)
        rule = read_rule(source)
        prepared = [_Prepared(loaded, rule, case) for case in cases]
    except BadSource as problem:
        return ended("compile error", str(problem))
    except BadRule as problem:
        return ended("bad launch rule", str(problem))
    built = parent.run(jobs.Compile(source), limits)
    if not isinstance(built.result, jobs.Compiled):
        log = built.result.message if isinstance(built.result, jobs.Refused) else ""
        words = "It does not compile." if log else f"The compiler: {built.message}"
        return ended("compile error", words, log)
    job = jobs.Interpret(built.result.ptx, tuple(each.run for each in prepared))
    outcome = parent.run(job, limits)
    if not isinstance(outcome.result, jobs.Interpreted):
        told = outcome.result
        words = told.message if isinstance(told, jobs.Refused) else outcome.message
        return ended("stopped", words, built.result.log)
    done = tuple(
        one.told(ran) for one, ran in zip(prepared, outcome.result.runs, strict=True)
    )
    right = sum(each.passed for each in done)
    passed = right == len(done)
    return CheckResult(
        lab.id,
        "passed" if passed else "failed",
        f"All {right:,} cases are right."
        if passed
        else f"{right:,} of {len(done):,} cases are right.",
        done,
        right,
        len(done),
        built.result.log,
        _isolation(outcome.tier),
        _not_graded(loaded),
    )


def _shown(done: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
    """Leave out hidden failures but the first: they would tell too much at once."""
    hidden = [each for each in done if each.is_hidden and not each.passed]
    return tuple(each for each in done if each not in hidden[1:])


def _isolation(tier: Tier | None) -> str:
    return "" if tier is None else TIER_WORDS[tier]


def _not_graded(loaded: LoadedLab) -> tuple[str, ...]:
    if loaded.lab.speed is None:
        return ()
    return ("Speed is not graded without a GPU.",)


class _Prepared:
    """A case with its numbers, ready to be launched."""

    def __init__(self, loaded: LoadedLab, rule: Rule, case: DrawnCase) -> None:
        self.case, self._loaded, self._rule = case, loaded, rule
        generator = np.random.default_rng(case.seed)
        self._given = self._ask("inputs", dict(case.sizes), case.values, generator)
        self._memory = [
            self._buffer(each) for each in loaded.lab.parameters if _is_buffer(each)
        ]
        self._memory += self._scratch()
        self._launches = tuple(self._launch(each) for each in rule.launches)

    def _ask(self, function: str, *given: Any) -> dict[str, Any]:
        """Have the lab's own Python compute something."""
        try:
            found: dict[str, Any] = getattr(self._loaded.cases, function)(*given)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the lab is bad
            raise self._bad(function, f"{type(problem).__name__}: {problem}") from None
        kinds = {
            "inputs": ("input", "inout", "scalar"),
            "expected": ("output", "inout"),
            "tolerance": ("output", "inout"),
        }[function]
        for each in self._loaded.lab.parameters:
            if each.kind in kinds and each.name not in found:
                raise self._bad(function, f"it gives no `{each.name}`.")
        return found

    def _bad(self, function: str, message: str) -> BadLab:
        return BadLab(f"{self._loaded.folder / 'cases.py'}: {function}: {message}")

    def _shaped(
        self, function: str, found: dict[str, Any], parameter: Parameter
    ) -> NDArray[Any]:
        """Give an array of the lab's own Python in the shape that it must have."""
        held, shape = np.asarray(found[parameter.name]), self._shape(parameter)
        if held.size != np.prod(shape, dtype=np.int64):
            raise self._bad(
                function, f"`{parameter.name}` is {held.shape}, and must be {shape}."
            )
        return held.reshape(shape)

    def _shape(self, parameter: Parameter) -> tuple[int, ...]:
        return tuple(value(side, self.case.sizes) for side in parameter.shape)

    def _buffer(self, parameter: Parameter) -> jobs.Memory:
        size = int(np.prod(self._shape(parameter), dtype=np.int64))
        size_bytes = size * np.dtype(parameter.dtype).itemsize
        if parameter.kind == "output":
            return jobs.Memory(parameter.name, size_bytes)
        held = self._shaped("inputs", self._given, parameter)
        exact = np.ascontiguousarray(held, parameter.dtype)
        is_told = parameter.kind == "inout"
        return jobs.Memory(parameter.name, size_bytes, exact.tobytes(), is_told)

    def _scratch(self) -> list[jobs.Memory]:
        found, total = [], 0
        taken = {each.name for each in self._loaded.lab.parameters}
        for each in self._rule.scratch:
            if each.name in taken:
                raise BadRule(f"Scratch memory {each.name}: the name is taken.")
            taken.add(each.name)
            try:
                length = value(each.length, self.case.sizes)
            except BadExpression as problem:
                raise BadRule(f"Scratch memory {each.name}: {problem}") from None
            size_bytes = length * np.dtype(each.dtype).itemsize
            total += size_bytes
            if length < 0 or total > _MOST_SCRATCH_BYTES:
                raise BadRule(
                    f"Scratch memory {each.name}: {length:,} elements; all of it may "
                    f"have {_MOST_SCRATCH_BYTES >> 20} MiB."
                )
            found.append(jobs.Memory(each.name, size_bytes, is_told=False))
        return found

    def _launch(self, launch: Launch) -> jobs.Launch:
        grid, block, shared_bytes = launch.sides(self.case.sizes)
        arguments = tuple(self._argument(each, launch) for each in launch.arguments)
        return jobs.Launch(launch.kernel, grid, block, arguments, shared_bytes)

    def _argument(self, text: str, launch: Launch) -> jobs.Argument:
        if any(each.name == text for each in self._memory):
            return jobs.BufferArgument(text)
        for each in self._loaded.lab.parameters:
            if each.name == text and each.kind == "scalar":
                number = np.asarray(self._given[text], each.dtype)
                return jobs.NumberArgument(number.tobytes())
        try:
            return jobs.IntegerArgument(value(text, self.case.sizes))
        except BadExpression as problem:
            raise BadRule(f"Line {launch.line}: {problem}") from None

    @property
    def run(self) -> jobs.Run:
        """Give what the jail runs."""
        return jobs.Run(tuple(self._memory), self._launches)

    def told(self, ran: jobs.Ran) -> CaseResult:
        """Compare what the launches left with what is right."""
        if ran.refused:
            return self._told(False, ran.refused)
        reports = ran.reports
        counts = Counts()
        lines: dict[int, Counts] = {}
        for report in reports:
            counts.add(report.counts)
            for line, of_line in report.lines.items():
                lines.setdefault(line, Counts()).add(of_line)
        findings = tuple(each for report in reports for each in report.findings)
        wrong = None
        if not reports[-1].stopped:
            wrong = self._wrong({each.name: each for each in ran.memory})
        message = self._judge(wrong, findings, counts)
        slowest = sorted(lines, key=lambda each: -lines[each].warp_instructions)
        return self._told(
            not message,
            message,
            wrong=wrong,
            findings=findings[:_MOST_FINDINGS],
            counts=counts,
            lines={each: lines[each] for each in sorted(slowest[:_MOST_LINES])},
            printed="".join(report.printed for report in reports)[:_MOST_PRINTED],
        )

    def _told(self, passed: bool, message: str, **more: Any) -> CaseResult:
        hidden = self.case.is_hidden
        sizes = None if hidden else dict(self.case.sizes)
        if hidden:
            more["printed"] = ""
        return CaseResult(self.case.about, hidden, passed, message, sizes, **more)

    def _wrong(self, memory: dict[str, jobs.Memory]) -> WrongElement | None:
        sizes = dict(self.case.sizes)
        expected = self._ask("expected", self._given, sizes)
        tolerance = self._ask("tolerance", self._given, sizes, expected)
        for each in self._loaded.lab.parameters:
            if each.kind not in ("output", "inout"):
                continue
            held = memory[each.name]
            got: NDArray[Any] = np.frombuffer(held.data or b"", each.dtype)
            wrong = first_wrong(
                each.name,
                got.reshape(self._shape(each)),
                self._shaped("expected", expected, each),
                tolerance[each.name],
                held.first_unwritten,
            )
            if wrong is not None:
                return wrong
        return None

    def _judge(
        self, wrong: WrongElement | None, findings: tuple[Finding, ...], counts: Counts
    ) -> str:
        if findings:
            return f"{findings[0].kind}: {findings[0].message}"
        if wrong is not None:
            place = ", ".join(map(str, wrong.index))
            return (
                f"{wrong.output}[{place}] is {wrong.got}; right is {wrong.expected}, "
                f"{wrong.allowed}. {wrong.wrong:,} of {wrong.elements:,} elements are "
                "wrong."
            )
        for each in self._loaded.lab.counted:
            most = value(each.most, self.case.sizes)
            got = getattr(counts, each.count)
            if got > most:
                return f"{each.about} {got:,} were counted, {most:,} are allowed."
        return ""


def _is_buffer(parameter: Parameter) -> bool:
    return parameter.kind in ("input", "output", "inout")
