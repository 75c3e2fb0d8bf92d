"""The verdict of a rank that waits for another one, which its own trace can't know.

A collective that begins early lasts until the last rank comes, so the time of the late
rank counts as communication on all others.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_monitors import units
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import CellVerdict
from warpbook_profiler.ranks.figures import Alignment, RankTime

#: of the communication, what the late rank must explain
_MOSTLY_SHARE = 0.5
#: changes of how gradients travel
_OF_GRADIENTS = "gradient-"


def judge_waiting(
    verdict: CellVerdict,
    changes: Sequence[Change],
    rank: int | None,
    time: RankTime,
    alignment: Alignment,
) -> tuple[CellVerdict, tuple[Change, ...]]:
    """Judge a rank anew beside the one that comes last.

    Args:
        verdict: of its trace alone.
        changes: of its trace alone.
        rank: its number.
        time: where its window went.
        alignment: of all ranks.
    """
    waited_ns = time.exposed_ns
    if waited_ns is None:
        waited_ns = time.communication_ns
    late = next(
        (one for one in alignment.arrivals if one.rank == alignment.straggler), None
    )
    if (
        late is None
        or rank == late.rank
        or verdict.kind != "communication-bound"
        or late.late_ns < _MOSTLY_SHARE * (waited_ns or 0)
    ):
        return verdict, tuple(changes)
    cause = (
        f"It waits for rank {late.rank}, which comes "
        f"{units.duration_ns(late.late_ns)} later to the collectives in all."
    )
    if time.exposed_ns is not None:
        cause += (
            f" The GPU computes nothing during {units.duration_ns(time.exposed_ns)} of "
            "its communication."
        )
    change = (
        f"Make rank {late.rank} as fast as the others: the links are not the cause."
    )
    kept = [one for one in changes if not one.name.startswith(_OF_GRADIENTS)]
    return CellVerdict(verdict.kind, f"{cause} {change}", change), tuple(kept)
