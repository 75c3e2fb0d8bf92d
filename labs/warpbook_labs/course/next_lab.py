"""Which lab comes next on the way through all of them."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.lab.entries import LabEntry


def next_lab(labs: Sequence[LabEntry], lab: str = "") -> LabEntry | None:
    """Give the next lab that is not passed; None once all are, or nothing is known.

    One that can be checked here comes before one that can't.

    Args:
        labs: in reading order.
        lab: the id of the one after which to look; from the first one if empty.
    """
    places = [place for place, each in enumerate(labs) if each.id == lab]
    begin = places[0] + 1 if places else 0
    ordered = [*labs[begin:], *labs[:begin]]
    open_ones = [
        each
        for each in ordered
        if each.id != lab
        and each.progress is not None
        and each.progress.state != "passed"
    ]
    here = [each for each in open_ones if each.can_check]
    return next(iter(here or open_ones), None)
