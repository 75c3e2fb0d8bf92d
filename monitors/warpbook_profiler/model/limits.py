"""What work takes on one GPU and its host, as measured; it travels with traces.

Curves of bytes: `pass` and `reduce` (read and written by one kernel),
`copy.to_gpu.pinned` and the three others. Of FLOPs, with the dtype after a dot:
`multiply`, `odd` (sizes that are no multiples of 8), `convolve` with the axes and of
two the channels after it, `attend` with the head's size, and `convolve_backward` and
`attend_backward`. Of one: `kernel`, the shortest; between kernels `graph_step` and
`step`; of the host `launch`, `operator`, `autograd`, `autocast`, `compiled_call`,
`graph_launch`, `synchronize` and `round_trip`. Of ns of the host: `recorded`, the same
under the profiler.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from warpbook_profiler.model.ceilings import Ceilings

# a file may come from anyone
_Positive = Annotated[float, Meta(ge=1e-3, lt=1e20)]
_Ns = Annotated[float, Meta(ge=1e-3, lt=1e12)]
_Word = Annotated[str, Meta(max_length=200)]
#: of traces that warpbook saves: the key that limits stand under
LIMITS_KEY = "warpbook_limits"
#: what is read and written at least where no cache holds it
_LEAST_BYTES = 256 << 20


class Point(Struct, frozen=True, array_like=True):
    """What so much work takes at least, usually and at most, in ns.

    Raises:
        ValueError: the ends of the range are out of order.
    """

    #: bytes, FLOPs, or how many
    amount: _Positive
    low_ns: _Ns
    usual_ns: _Ns
    high_ns: _Ns

    def __post_init__(self) -> None:
        """Compare the ends."""
        if not self.low_ns <= self.usual_ns <= self.high_ns:
            raise ValueError("a time's range is out of order")


_Curve = Annotated[tuple[Point, ...], Meta(min_length=1, max_length=100)]


class Limits(Struct, frozen=True):
    """Times of one GPU under one host and torch.

    Raises:
        ValueError: the amounts of a curve do not ascend.
    """

    uuid: _Word
    gpu: _Word
    host: _Word
    #: None where NVML does not tell
    driver: _Word | None
    torch: _Word
    #: Unix time
    measured_ms: _Positive
    #: by what was done, see above; what this GPU or torch lacks is not here
    curves: Annotated[dict[_Word, _Curve], Meta(max_length=100)]
    #: what could not be measured, in words
    left_out: Annotated[tuple[_Word, ...], Meta(max_length=100)] = ()

    def __post_init__(self) -> None:
        """Look at the amounts."""
        for name, curve in self.curves.items():
            if any(one.amount >= other.amount for one, other in pairwise(curve)):
                raise ValueError(f"the amounts of {name[:60]!r} do not ascend")

    @classmethod
    def of(cls, gpu: str, best: Ceilings) -> Limits:
        """Give limits of which only the ceilings are known."""
        rates = {f"multiply.{name}": rate for name, rate in best.flops_per_s.items()}
        rates["pass"] = best.memory_bytes_per_s
        curves = {
            name: tuple(Point(rate * at, *(1e9 * at,) * 3) for at in (1e-9, 1.0))
            for name, rate in rates.items()
        }
        return cls("", gpu, "", None, "", 1.0, curves)

    @property
    def ceilings(self) -> Ceilings | None:
        """Give the same as a datasheet would say it; None of an unmeasured memory."""
        memory = self.rate("pass", _LEAST_BYTES)
        rates = {
            name.removeprefix("multiply."): rate
            for name in self.curves
            if name.startswith("multiply.") and (rate := self.rate(name))
        }
        return None if memory is None else Ceilings(memory, rates)

    def rate(self, name: str, least: float = 0.0) -> float | None:
        """Give the most per second that a curve reached with so much work or more."""
        curve = self.curves.get(name, ())
        rates = (one.amount / one.low_ns * 1e9 for one in curve if one.amount >= least)
        return max(rates, default=None)
