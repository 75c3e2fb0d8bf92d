"""What an operation costs the CPU that judges it, told before it is done.

Whoever writes a program by hand may ask for what takes minutes, or all memory there is.
"""

from __future__ import annotations

import math

from warpbook_labs.engines.simulated.judging.calls.allowed import base_of
from warpbook_labs.engines.simulated.judging.calls.operations import Operation
from warpbook_labs.engines.simulated.program import Launch

#: ns for an element; measured, where it is slowest: float64 too large for float16
_ELEMENT_NS = 100.0
_SLOW_ELEMENT_NS = {
    "erf": 250.0,
    "floor_divide": 180.0,
    "gelu": 300.0,
    "gelu_tanh": 220.0,
    "log_softmax": 150.0,
    "norm": 150.0,
    "softmax": 150.0,
    "topk": 500.0,
}
#: ns for a byte of memory beside operands; of convolutions, which copy windows into it
_SCRATCH_NS = 3.0
#: ns for an operation of a product; measured: BLAS, and NumPy's loop for whole numbers
_FLOP_NS = 0.06
_WHOLE_FLOP_NS = 1.5


def seconds(
    operation: Operation, launch: Launch, flops: float, scratch_bytes: float
) -> float:
    """Say how long the CPU takes for a launch, at most.

    Args:
        operation: what it does.
        launch: with which views.
        flops: what it computes.
        scratch_bytes: memory that it needs beside them.
    """
    views = (*launch.reads, *launch.writes)
    elements = max((math.prod(view.shape) for view in views), default=0)
    base = base_of(launch.operation) or launch.operation
    ns = elements * _SLOW_ELEMENT_NS.get(base, _ELEMENT_NS)
    ns += flops * (_WHOLE_FLOP_NS if _is_whole(operation, launch) else _FLOP_NS)
    return (ns + scratch_bytes * _SCRATCH_NS) / 1e9


def _is_whole(operation: Operation, launch: Launch) -> bool:
    """Tell whether it is a product of whole numbers."""
    factors = launch.reads[-2:]
    is_product = operation.unit == "tensor"
    return is_product and not any(view.dtype.startswith("float") for view in factors)
