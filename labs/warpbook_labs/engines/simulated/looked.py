"""Decides on cases that are wrong where Python looked at numbers.

A hidden case is recorded with other inputs than count, so a program that hangs on the
numbers that Python saw is wrong with these, whether or not a GPU would be given it. It
is recorded once more, and judged with the very inputs that it was recorded with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from warpbook_labs.engines.simulated.preparation import PreparedCalls
from warpbook_labs.engines.simulated.recorded import LOOKED, Told
from warpbook_labs.lab.texts import at_line
from warpbook_labs.results.check import CaseResult

#: cases that are recorded once more
_MOST_TRIED = 4


def decided(
    verdicts: Sequence[Told],
    batch: Sequence[PreparedCalls],
    again: Callable[[PreparedCalls], CaseResult | None],
) -> list[Told]:
    """Tell what can't be checked without a GPU from what is wrong.

    Args:
        verdicts: of the cases of a batch.
        batch: these cases.
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
        results[place] = Told(_unsupported(results[place]))
    return results


def _unsupported(verdict: Told) -> CaseResult:
    return msgspec.structs.replace(
        verdict.case,
        message=at_line(LOOKED, verdict.looked_line),
        line=verdict.looked_line,
        wrong=None,
        advice="",
        call=0,
        is_unsupported=True,
    )
