"""What one case on a GPU came to."""

from __future__ import annotations

from typing import NamedTuple

from warpbook_labs.cases.comparison import WrongElement
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.results.device import DeviceCase, Kind


class CaseOutcome(NamedTuple):
    """What a case came to."""

    kind: Kind
    message: str
    wrong: WrongElement | None = None


def device_case(case: DrawnCase, outcome: CaseOutcome) -> DeviceCase:
    """Tell of a case what a learner may know."""
    sizes = None if case.is_hidden else dict(case.sizes)
    passed = not outcome.kind
    return DeviceCase(
        case.about,
        case.is_hidden,
        passed,
        outcome.kind,
        outcome.message,
        sizes,
        outcome.wrong,
    )
