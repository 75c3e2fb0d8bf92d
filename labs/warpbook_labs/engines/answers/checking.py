"""Checks a plan lab's functions: called in the jail, judged here, on any machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

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
    judged,
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
    judged = [
        (question, _case_result(loaded, question, answer))
        for question, answer in zip(plain, answers, strict=True)
    ]
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
    judged: Sequence[tuple[Put, CaseResult]],
) -> list[tuple[Put, CaseResult]]:
    """Hold the dialogues, and put them among the others, in the order of questions."""
    loaded, others = submission.loaded, iter(judged)
    limits = submission.limits or PLAN_LIMITS
    dialogues = Dialogues(submission.source, plan.call_s, limits)
    results: list[tuple[Put, CaseResult]] = []
    for question in put:
        if submission.stops_at_wrong and results and _decides(*results[-1]):
            break
        if not question.function.is_dialogue:
            results.append(next(others))
            continue
        try:
            answer, words = dialogues.hold(question, loaded.cases.advance)
        except (BadLab, TooBusy):
            raise
        except Exception as problem:  # noqa: BLE001 - whatever it is, the lab is bad
            why = f"{type(problem).__name__}: {problem}"
            raise _bad(loaded, "advance", why) from None
        results.append((question, _case_result(loaded, question, answer, words)))
    return results


def _decides(put: Put, case: CaseResult) -> bool:
    """Return whether no other answer can make up for this one."""
    return put.function.share >= 1 and not case.passed


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
    name: str, plan: Plan, put_results: Sequence[tuple[Put, CaseResult]], isolation: str
) -> CheckResult:
    """Say of one draw whether enough of it is right."""
    failed = _failed(plan, put_results)
    right, of = sum(case.passed for _, case in put_results), len(put_results)
    enough = f"{right:,} of {of:,} answers are right, enough for each function."
    kinds = _with_one_question(_by_kind([case for _, case in put_results]))
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


def _case_result(
    loaded: LoadedLab, put: Put, answer: FunctionResult, verdict: str = ""
) -> CaseResult:
    """Tell of an answer; that of a dialogue comes with its verdict."""
    function, question = put.function, put.question
    code = ""
    words = answer.problem
    if words and put.is_hidden:
        words = without_words(words)
    line = answer.line if words else None
    if words:
        words = at_line(words, line)
    elif function.is_dialogue:
        words = verdict
    else:
        try:
            words = judged(
                function, loaded.cases.judge, question, answer.data, put.is_hidden
            )
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
    return CaseResult(
        f"{function.name}: {question.about or 'a question'}",
        put.is_hidden,
        not words,
        _cut(words, _MOST_WORDS),
        line=line,
        printed="" if put.is_hidden else answer.printed[:_MOST_PRINTED],
        question=code,
    )


def _cut(words: str, most: int) -> str:
    """Cut what is too long between two words, so that no number becomes another."""
    if len(words) <= most:
        return words
    return f"{words[: max(most - 1, 0)].rpartition(' ')[0]}…"


def _by_kind(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Tell questions of one kind together: right if all are; the first wrong, else."""
    kinds: dict[tuple[str, bool], CaseResult] = {}
    for case in cases:
        before = kinds.setdefault((case.about, case.is_hidden), case)
        if before.passed and not case.passed:
            kinds[case.about, case.is_hidden] = case
    return tuple(kinds.values())


def _with_one_question(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Leave the first question whole, and no other: results are kept."""
    first = next((case for case in cases if case.question), None)
    return tuple(
        case if case is first else msgspec.structs.replace(case, question="")
        for case in cases
    )


def _failed(plan: Plan, put_results: Sequence[tuple[Put, CaseResult]]) -> str:
    """Say of which function too few answers are right; nothing if there are enough."""
    of: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for put, case in put_results:
        of[put.function.name] += 1
        right[put.function.name] += case.passed
    words = [
        f"{one.name}: {right[one.name]:,} of {of[one.name]:,} correct"
        f"{f', {100 * one.share:.0f} % are required' if one.share < 1 else ''}."
        for one in plan.functions
        if right[one.name] < one.share * of[one.name]
    ]
    return " ".join(words)
