"""Additions and products of several words: they hand a carry on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.engines.interpreter.ptx.arithmetic.integers import high_product
from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import (
    Lanes,
    Step,
    put,
    type_of,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction
from warpbook_labs.engines.interpreter.ptx.text.values import Bools


class Carry:
    """The carry of each thread."""

    def __init__(self, lanes: Lanes) -> None:
        self._bit = np.zeros(lanes.count, np.uint64)
        self._lanes = lanes

    def step(self, instruction: Instruction) -> Step | None:
        name = instruction.name
        gives = "cc" in instruction.modifiers
        takes = name in ("addc", "subc", "madc")
        if not gives and not takes:
            return None
        type_ = type_of(instruction)
        lanes = self._lanes
        unsigned = f"u{type_[1:]}"
        target = lanes.target(instruction.operands[0], unsigned)
        sources = [
            lanes.source(operand, unsigned) for operand in instruction.operands[1:]
        ]
        subtracts = name.startswith("sub")
        multiply: Callable[..., Any] | None = None
        if name.startswith("mad"):
            multiply = high_product if "hi" in instruction.modifiers else np.multiply
            if multiply is high_product and type_[0] == "s":
                raise Unsupported(instruction.text, instruction.line)

        def run(mask: Bools | None) -> None:
            a, b = (sources[0], sources[1])
            if multiply is not None:
                a, b = multiply(a, b), sources[2]
            if subtracts:
                # a borrow is what is missing of a carry
                b = np.bitwise_not(b)
            carried = (
                self._bit.astype(target.dtype)
                if takes
                else target.dtype.type(subtracts)
            )
            first = np.add(a, b)
            total = first + carried
            over = (first < a) | (total < first)
            if gives:
                put(self._bit, over, mask)
            put(target, total, mask)

        return run
