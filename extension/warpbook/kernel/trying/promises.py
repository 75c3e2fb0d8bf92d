"""What a report promises of a change, to stand beside what was measured."""

from __future__ import annotations

from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.trials import Promise

#: what the report calls a trial that is one way to do what it advises
_ADVISED_AS = {"compile": "fuse"}


def promise_of(profile: CellProfile, name: str) -> Promise | None:
    """Give how many times as fast the cell should be, at least and at most.

    Of a bound only the most is known. None where the report does not advise the change,
    or can't say what it gives.
    """
    advised = (name, _ADVISED_AS.get(name, name))
    for change in profile.changes:
        if change.name in advised and change.speed_high is not None:
            return Promise(
                (change.speed_low or 1.0, change.speed_high),
                profile.bare.time_ns if profile.bare else profile.wall_ns,
                change.low_ns
                if change.basis == "not below" and change.low_ns is not None
                else None,
            )
    return None
