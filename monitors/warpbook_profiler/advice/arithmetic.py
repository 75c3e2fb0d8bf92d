"""How much arithmetic operators ask of each element, beside passing over memory."""

from __future__ import annotations

import math

import numpy as np

from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.events.columns import groups
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.replay.host import Floats

#: instructions of compiled code for an element, about; others take one
_INSTRUCTIONS = {
    name: count
    for count, names in {
        8: "div true_divide reciprocal rsqrt sqrt exp2 lerp",
        15: "exp sigmoid silu hypot logsumexp _softmax _log_softmax",
        20: "log log2 log10",
        30: "expm1 log1p sin cos sinh cosh tanh fmod remainder floor_divide softplus "
        "elu",
        40: "atan asin acos erf gelu mish",
        60: "tan atan2 asinh acosh atanh erfc logaddexp xlogy",
        80: "pow",
        150: "lgamma",
    }.items()
    for name in names.split()
}
#: powers that are products, or one root
_SIMPLE_POWERS = frozenset(("", "2", "2.0", "3", "3.0", "0.5", "1", "1.0"))
_DOUBLE_RATIO = 2.0


def instructions(operators: Operators) -> Floats:
    """Give what each call takes in instructions on float32 units; 0 if not known."""
    table = operators.table
    first, kind = groups(table.name, table.operand)
    counts: Floats = np.array([_count(operators, at) for at in first.tolist()])[kind]
    return counts


def _count(operators: Operators, position: int) -> float:
    operands = operators.operands(position)
    elements = max((math.prod(dims) for dims in operands.dims if dims), default=0)
    name = operators.name(position).removeprefix("aten::").rstrip("_")
    count = _INSTRUCTIONS.get(name, 1)
    is_of_tensor = any(operands.dims[1:2])
    if name == "pow" and not is_of_tensor and {*operands.scalars} <= _SIMPLE_POWERS:
        # or it was not recorded, where it is mostly a square
        count = 2
    is_double = ITEM_BYTES.get(operands.dtypes[0] if operands.dtypes else "") == 8
    return float(elements) * count * (_DOUBLE_RATIO if is_double else 1.0)
