"""Softmaxes among a trace's operators, torch's and those by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_profiler.advice.operators import Operators

_SOFTMAX = ("aten::_softmax", "aten::_safe_softmax")
#: what one begins with that is written by hand
_EXP = ("aten::exp", "aten::exp_")
#: operators behind it, among which its shares are
_NEAR = 6
#: a window with more is judged by these
_MOST = 2_000


def softmaxes(operators: Operators) -> Iterator[int]:
    """Give the places of softmaxes among the operators that launch work."""
    launching = operators.launching
    places = np.flatnonzero(operators.named(*_SOFTMAX, *_EXP)[launching])
    for place in places[:_MOST].tolist():
        is_whole = operators.name(int(launching[place])) in _SOFTMAX
        if is_whole or _is_by_hand(operators, place):
            yield place


def _is_by_hand(operators: Operators, place: int) -> bool:
    """Tell whether exponentials of scores are divided by the sums of their rows."""
    first, *behind = operators.launching[place : place + _NEAR].tolist()
    (scores, *_) = operators.operands(first).dims or [()]
    taking = [one for one in behind if operators.operands(one).dims[:1] == (scores,)]
    names = [operators.name(one).rstrip("_") for one in taking[:2]]
    if len(scores) < 3 or names != ["aten::sum", "aten::div"]:
        return False
    return operators.operands(taking[1]).dims[1:2] == ((*scores[:-1], 1),)
