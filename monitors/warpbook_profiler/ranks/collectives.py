"""The collectives of one rank: what all ranks of a job take part in, in one order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from warpbook_profiler.events.columns import Category, Columns, Int64s
from warpbook_profiler.facts.calls import named
from warpbook_profiler.facts.kernels import communicates
from warpbook_profiler.verdict.cpu.split import BACKEND_ON_HOST

#: between two ranks, so that the others know nothing of it
_POINT_TO_POINT = re.compile(r".*(send|recv)", re.I)
#: arguments and types of a kernel
_SIGNATURE = re.compile(r"[(<].*", re.DOTALL)
_MOST_KINDS = 1000


@dataclass(frozen=True)
class Times:
    """Begin and end of the collectives of one kind, in order; times are in ns."""

    start_ns: Int64s
    end_ns: Int64s


@dataclass(frozen=True)
class Collectives:
    """What one rank recorded."""

    #: on the GPU a kernel begins when the rank is there; on the host a thread does
    where: Literal["GPU", "host"]
    by_kind: Mapping[str, Times]
    #: kernels or calls between two ranks, which nothing aligns
    point_to_point: int

    @property
    def count(self) -> int:
        """How many there are of all kinds."""
        return sum(len(times.start_ns) for times in self.by_kind.values())


def collectives_of(events: Columns) -> Collectives:
    """Find the collectives of a trace: kernels where there are any, else host work."""
    kernels = events.only(Category.KERNEL)
    collective_events = kernels.where(communicates(events, kernels))
    where: Literal["GPU", "host"] = "GPU"
    if not len(collective_events):
        operators = events.only(Category.OPERATOR)
        collective_events, where = (
            operators.where(named(operators, BACKEND_ON_HOST)),
            "host",
        )
    paired = named(collective_events, _POINT_TO_POINT)
    kept = collective_events.where(~paired)
    kinds = [_SIGNATURE.sub("", name).strip() for name in kept.names]
    by_kind: dict[str, Times] = {}
    for kind in sorted({kinds[at] for at in set(kept.name.tolist())})[:_MOST_KINDS]:
        of_kind = np.array([one == kind for one in kinds], np.bool_)
        mine = kept.where(of_kind[kept.name])
        by_kind[kind] = Times(mine.start_ns, mine.end_ns)
    return Collectives(where, by_kind, int(paired.sum()))
