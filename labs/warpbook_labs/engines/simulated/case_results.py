"""What a learner is told of one case on host code."""

from __future__ import annotations

from typing import Any

from warpbook_labs.cases.comparison import NOTHING, WrongElement
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.simulated.lacking import LACKS
from warpbook_labs.engines.simulated.messages import CaseRun
from warpbook_labs.engines.simulated.preparation import WrongCall
from warpbook_labs.lab.texts import at_line
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.disclosure import without_words

_UNWRITTEN = (
    "`{0} = ...` only gives a new tensor that name: `{0}.copy_(...)` or "
    "`{0}[...] = ...` writes."
)
_PARTLY_WRITTEN = (
    "Only part of `{0}` is written: this is the first element that is not."
)
_MOST_PRINTED = 4_000
_MOST_WORDS = 600


def case_result(
    case: DrawnCase,
    left: CaseRun,
    message: str = "",
    wrong: WrongCall | None = None,
    advice: str = "",
    line: int | None = None,
    **more: Any,
) -> CaseResult:
    """Say how a case went; of a hidden one neither sizes nor what was printed.

    Args:
        left: what the process says; its problem goes before all else.
        message: why it failed; what is wrong if left out.
        wrong: what is wrong in its outputs; None if nothing is.
        advice: what may help with that; without a message a guess if left out.
        line: of the source, if the message is about one.
    """
    if wrong is not None:
        call = wrong.number if wrong.number > 1 else 0
        if not (advice or message) and wrong.wrong.got == NOTHING:
            words = _UNWRITTEN if _is_untouched(wrong.wrong) else _PARTLY_WRITTEN
            advice = words.format(wrong.wrong.output)
        more |= {"wrong": wrong.wrong, "call": call, "advice": advice}
    words = message or (f"{wrong.words} {advice}".strip() if wrong else "")
    if left.problem:
        words = left.problem
        if case.is_hidden:
            words = LACKS if left.is_unsupported else without_words(words)
        words, line = at_line(words, left.line), left.line
        more["is_unsupported"] = left.is_unsupported
    return CaseResult(
        case.about,
        case.is_hidden,
        not words,
        words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1]}…",
        None if case.is_hidden else dict(case.sizes),
        line=line,
        printed="" if case.is_hidden else left.printed[:_MOST_PRINTED],
        **more,
    )


def _is_untouched(wrong: WrongElement) -> bool:
    """Tell whether nobody seems to have written any of an output."""
    return not any(wrong.index) and wrong.wrong == wrong.elements
