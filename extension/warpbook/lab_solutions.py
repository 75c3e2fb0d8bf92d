"""A lab's reference and discussion, for whom the rules let see them.

On a server of a hub the course decides about labs that it publishes. Elsewhere, and of
labs that no course publishes, they are shown once a submission has passed.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from warpbook.class_hub import NotPublished, hub_here
from warpbook.hub_client import HubProblem
from warpbook_labs.course.progress import Progress
from warpbook_labs.course.solution import Solution, read_solution, refuse_before_pass
from warpbook_labs.errors import BadLab, KeptApart, NotPassed
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.spec import Lab


def solution_of(lab: Lab, folder: Path, progress: Progress) -> Solution:
    """Give the solution of a lab, if it may be shown now.

    Args:
        lab: the lab.
        folder: where it is.
        progress: of the person.

    Raises:
        NotPassed: it is not shown yet.
        KeptApart: it is not on this machine.
        BadLab: it can't be read.
    """
    reference = _of_course(lab)
    if reference is None:
        refuse_before_pass(lab.id, progress)
        return read_solution(folder)
    try:
        # what the course grades with counts, and the rest is the same
        return replace(read_solution(folder), reference=reference)
    except BadLab:
        return Solution(lab.id, language_of(lab).source_name, reference)


def _of_course(lab: Lab) -> str | None:
    """Ask the hub for the reference; None where no course publishes the lab."""
    try:
        hub = hub_here()
        published = None if hub is None else hub.find(lab.id)
        if hub is None or published is None:
            return None
        reference = hub.reference(published)
    except NotPublished:
        return None
    except HubProblem as problem:
        raise NotPassed(str(problem)) from None
    if not reference:
        raise KeptApart(
            f"The course has no reference solution of {lab.id} yet: it comes with the "
            "first result."
        )
    return reference
