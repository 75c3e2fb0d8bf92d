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
    told: Sequence[Told],
    batch: Sequence[PreparedCalls],
    again: Callable[[PreparedCalls], CaseResult | None],
) -> list[Told]:
    """Tell what can't be checked without a GPU from what is wrong.

    Args:
        told: of the cases of a batch.
        batch: these cases.
        again: records a case once more, and judges it with the same inputs.
    """
    found = list(told)
    places = [place for place, each in enumerate(told) if each.looked_line is not None]
    for place in places[:_MOST_TRIED]:
        result = again(batch[place].as_shown())
        if result is not None and not (result.passed or result.is_unsupported):
            # one that is wrong decides on the submission
            return found
    for place in places:
        found[place] = Told(_unsupported(found[place]))
    return found


def _unsupported(told: Told) -> CaseResult:
    return msgspec.structs.replace(
        told.case,
        message=at_line(LOOKED, told.looked_line),
        line=told.looked_line,
        wrong=None,
        advice="",
        call=0,
        is_unsupported=True,
    )
