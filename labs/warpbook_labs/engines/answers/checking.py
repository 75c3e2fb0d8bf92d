"""Checks a plan lab's functions: called in the jail, judged here, on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from warpbook_labs.engines.answers.dialogue import Dialogues, Put
from warpbook_labs.engines.answers.jobs import (
    Call,
    CallResults,
    FunctionCall,
    FunctionResult,
)
from warpbook_labs.errors import BadLab, BadSource, TooBusy
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.python.questions import (
    BadQuestion,
    call_code,
    call_words,
    drawn,
    in_order,
    typed,
)
from warpbook_labs.lab.sources import refuse_unfit
from warpbook_labs.lab.spec import PLAN_LIMITS, Plan
from warpbook_labs.lab.texts import INVALID_MESSAGE, at_line
from warpbook_labs.results.check import CaseResult, CheckResult, Status
from warpbook_labs.results.disclosure import disclosed, without_words
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.work import Refused

_MOST_WORDS = 600
_MOST_PRINTED = 4_000


class _Judged(Struct, frozen=True):
    """A question with how its answer is judged."""

    put: Put
    case: CaseResult
    #: by an error, data of another type or a broken rule: no share makes up for it
    is_refused: bool

    @property
    def decides(self) -> bool:
        """Whether no other answer can make up for this one."""
        return self.is_refused or (self.put.function.share >= 1 and self.is_wrong)

    @property
    def is_wrong(self) -> bool:
        return not self.case.passed


def check_plan(submission: Submission) -> CheckResult:
    """Ask a submission questions, and tell what a learner may know.

    Raises:
        BadLab: the lab's own Python fails.
    """
    seed = submission.seed
    [result] = check_draws(submission, () if seed is None else (seed,))
    return disclosed(result)


def check_draws(submission: Submission, seeds: Sequence[int] = ()) -> list[CheckResult]:
    """Ask the questions shown and those of every seed; tell all, for a lab's author.

    Returns:
        A result for each seed, with the questions shown; without seeds, one of those.
    """
    loaded, source = submission.loaded, submission.source
    limits = submission.limits or PLAN_LIMITS
    plan, name = loaded.lab.plan, loaded.lab.id
    if plan is None:
        raise BadLab(f"{loaded.folder / 'lab.toml'}: plan: it has none.")
    shown = _draw(loaded, plan, None)
    hidden = [_draw(loaded, plan, seed) for seed in seeds]

    def ended(
        status: Status, message: str, line: int | None = None
    ) -> list[CheckResult]:
        result = CheckResult(name, status, message, line=line)
        return [result] * max(1, len(hidden))

    try:
        refuse_unfit(source)
    except BadSource as problem:
        return ended("compile error", str(problem), problem.line)
    put = [*shown, *(question for draw in hidden for question in draw)]
    plain = [question for question in put if not question.function.is_dialogue]
    calls = tuple(
        FunctionCall(
            question.function.name, in_order(question.function, question.question)
        )
        for question in plain
    )
    outcome = parent.run(Call(source, calls, plan.call_s), limits)
    if isinstance(outcome.result, Refused):
        refused = outcome.result
        return ended("compile error", refused.message[:_MOST_WORDS], refused.line)
    if not isinstance(outcome.result, CallResults):
        return ended(outcome.ended, outcome.message)
    answers = outcome.result.answers
    if len(answers) != len(plain):
        return ended("stopped", INVALID_MESSAGE)
    judged = (
        _judged(loaded, question, answer)
        for question, answer in zip(plain, answers, strict=True)
    )
    results_of_all = _with_dialogues(submission, plan, put, judged)
    results, begin = [], len(shown)
    for draw in hidden or [[]]:
        part = [
            *results_of_all[: len(shown)],
            *results_of_all[begin : begin + len(draw)],
        ]
        results.append(_result(name, plan, part, outcome.isolation))
        begin += len(draw)
    return results


def _with_dialogues(
    submission: Submission,
    plan: Plan,
    put: Sequence[Put],
    judged: Iterator[_Judged],
) -> list[_Judged]:
    """Hold the dialogues, and put them among the others, in the order of questions."""
    loaded = submission.loaded
    limits = submission.limits or PLAN_LIMITS
    dialogues = Dialogues(submission.source, plan.call_s, limits)
    results: list[_Judged] = []
    for question in put:
        if submission.stops_at_wrong and results and results[-1].decides:
            break
        if not question.function.is_dialogue:
            results.append(next(judged))
            continue
        try:
            answer, end, words = dialogues.hold(question, loaded.cases.advance)
        except (BadLab, TooBusy):
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the lab is bad
            why = f"{type(problem).__name__}: {problem}"
            raise _bad(loaded, "advance", why) from None
        results.append(_judged(loaded, question, answer, end, words))
    return results


def refuse_other_draws(loaded: LoadedLab, plan: Plan) -> None:
    """Refuse a lab that asks something else each time, of the same seed.

    Raises:
        BadLab: it does, or its own Python fails.
    """
    # NaN is no NaN's equal, so their words are compared
    first, again = (repr(_draw(loaded, plan, None)) for _ in range(2))
    if first != again:
        words = "with the same seed it draws other questions"
        raise _bad(loaded, "questions", f"{words}. Draw from `rng` alone.")


def _result(
    name: str, plan: Plan, judged: Sequence[_Judged], isolation: str
) -> CheckResult:
    """Say of one draw whether enough of it is right."""
    failed = _failed(plan, judged)
    right, of = sum(one.case.passed for one in judged), len(judged)
    enough = f"{right:,} of {of:,} answers are right, enough for each function."
    kinds = _with_one_question(_by_kind(judged))
    return CheckResult(
        name,
        "failed" if failed else "passed",
        failed or (f"All {of:,} answers are right." if right == of else enough),
        kinds,
        sum(kind.passed for kind in kinds),
        len(kinds),
        isolation=isolation,
    )


def _draw(loaded: LoadedLab, plan: Plan, seed: int | None) -> list[Put]:
    functions = {function.name: function for function in plan.functions}
    try:
        questions = drawn(
            plan, loaded.cases.questions, plan.seed if seed is None else seed
        )
    except BadQuestion as problem:
        raise _bad(loaded, "questions", str(problem)) from None
    except (BadLab, TooBusy):
        raise
    except Exception as problem:  # noqa: BLE001 - whatever it is, the lab is bad
        words = f"{type(problem).__name__}: {problem}"
        raise _bad(loaded, "questions", words) from None
    return [
        Put(question, functions[question.function], seed is not None)
        for question in questions
    ]


def _bad(loaded: LoadedLab, function: str, message: str) -> BadLab:
    return BadLab(f"{loaded.folder / 'cases.py'}: {function}: {message}")


def _judged(
    loaded: LoadedLab,
    put: Put,
    answer: FunctionResult,
    end: Any = None,
    broken_rule: str = "",
) -> _Judged:
    """Judge an answer; of a dialogue, the state at its end, where not all must pass."""
    function, question = put.function, put.question
    code, held, words = "", end, broken_rule
    if not answer.problem and not function.is_dialogue:
        held, words = typed(function, answer.data, put.is_hidden)
    is_refused = bool(answer.problem or words)
    line = answer.line if answer.problem else None
    if answer.problem:
        told = without_words(answer.problem) if put.is_hidden else answer.problem
        words = at_line(told, line)
    elif not words and (not function.is_dialogue or function.share < 1):
        try:
            words = loaded.cases.judge(question, held)
        except TooBusy:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the lab is bad
            why = f"{type(problem).__name__}: {problem}"
            raise _bad(loaded, "judge", why) from None
    if words and not put.is_hidden and not function.is_dialogue:
        # what is raised seldom ends as a sentence
        call, is_whole = call_words(function, question)
        code = call_code(function, question)
        quoted = f". Call: {call}"
        if code and not is_whole:
            quoted += f" (whole: warpbook labs check {loaded.lab.id} --question)"
        words = f"{_cut(words, _MOST_WORDS - len(quoted)).rstrip('.')}{quoted}"
    case = CaseResult(
        f"{function.name}: {question.about or 'a question'}",
        put.is_hidden,
        not words,
        _cut(words, _MOST_WORDS),
        line=line,
        printed="" if put.is_hidden else answer.printed[:_MOST_PRINTED],
        question=code,
    )
    return _Judged(put, case, is_refused)


def _cut(words: str, most: int) -> str:
    """Cut what is too long between two words, so that no number becomes another."""
    if len(words) <= most:
        return words
    return f"{words[: max(most - 1, 0)].rpartition(' ')[0]}…"


def _by_kind(judged: Sequence[_Judged]) -> tuple[CaseResult, ...]:
    """Tell questions of one kind together: the first refused, or wrong, or right."""
    kinds: dict[tuple[str, bool], _Judged] = {}
    for one in judged:
        kind = one.case.about, one.case.is_hidden
        before = kinds.setdefault(kind, one)
        if (one.is_refused, one.is_wrong) > (before.is_refused, before.is_wrong):
            kinds[kind] = one
    return tuple(one.case for one in kinds.values())


def _with_one_question(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Leave the first question whole, and no other: results are kept."""
    first = next((case for case in cases if case.question), None)
    return tuple(
        case if case is first else msgspec.structs.replace(case, question="")
        for case in cases
    )


def _failed(plan: Plan, judged: Sequence[_Judged]) -> str:
    """Say of which function too few answers are right; nothing if there are enough."""
    words = []
    for function in plan.functions:
        own = [one for one in judged if one.put.function is function]
        right = sum(one.case.passed for one in own)
        refused = sum(one.is_refused for one in own)
        if not refused and right >= function.share * len(own):
            continue
        needed = ""
        if function.share < 1:
            needed = f", {100 * function.share:.0f} % are required"
            if refused:
                needed = f"; {refused:,} broke a rule or ended with an error: none may"
        words.append(f"{function.name}: {right:,} of {len(own):,} correct{needed}.")
    return " ".join(words)
