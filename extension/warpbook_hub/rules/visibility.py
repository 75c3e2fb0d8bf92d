"""What a person of a course may see, and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from warpbook_hub.rules.lateness import Window

Role = Literal["learner", "assistant", "instructor"]


class Viewer(Struct, frozen=True):
    """Who looks."""

    person: str
    role: Role
    #: of assistants: the one they are responsible for
    section: str
    #: off the roster: they see their own work, and submit nothing
    is_hidden: bool = False


def reference_from_ms(windows: Iterable[Window], late_policy_takes_all: bool) -> int:
    """Tell from when learners see a lab's reference.

    It is when nobody can gain by it: after the last due date of anybody, or, where late
    work earns points, after the last time at which anybody may submit.

    Args:
        windows: of all sections, and of all learners with an extension.
        late_policy_takes_all: a late submission without budget is worth nothing, and
            there is no late budget.
    """
    # the last moment is still theirs
    return 1 + max(
        (
            window.due_end_ms if late_policy_takes_all else window.closes_end_ms
            for window in windows
        ),
        default=-1,
    )


def may_see_lab(viewer: Viewer, window: Window | None, now_ms: int) -> bool:
    """Whether a published lab is shown to them."""
    if viewer.role != "learner":
        return True
    return window is not None and now_ms >= window.opens_ms


def may_see_reference(viewer: Viewer, from_ms: int, now_ms: int) -> bool:
    """Whether the reference is shown to them."""
    return viewer.role != "learner" or now_ms >= from_ms


def may_see_marks(viewer: Viewer, is_hidden: bool) -> bool:
    """Whether marks and feedback of a lab are shown to them."""
    return viewer.role != "learner" or not is_hidden


def may_decide(viewer: Viewer, section: str) -> bool:
    """Whether they may set points and dates of a learner.

    Args:
        viewer: who wants to.
        section: of the learner.
    """
    if viewer.is_hidden:
        return False
    if viewer.role == "instructor":
        return True
    return viewer.role == "assistant" and viewer.section == section


def may_decide_work(viewer: Viewer, sections: Iterable[str]) -> bool:
    """Whether they may regrade a submission, and answer appeals about it.

    Args:
        viewer: who wants to.
        sections: of all whose submission it is.
    """
    return any(may_decide(viewer, section) for section in sections)


def may_see_work(
    viewer: Viewer, members: Iterable[str], sections: Iterable[str]
) -> bool:
    """Whether they may see a submission: source, result, history and appeals.

    Args:
        viewer: who looks.
        members: whose submission it is: a person, or those of a team.
        sections: of all members.
    """
    return viewer.person in members or may_decide_work(viewer, sections)
