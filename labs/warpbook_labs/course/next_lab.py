"""Which lab comes next on the way through all of them."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.lab.entries import LabEntry


def next_lab(labs: Sequence[LabEntry], other_than: str = "") -> LabEntry | None:
    """Give the first lab that is not passed and can be checked here; None if none is.

    Args:
        labs: in the order in which they are done.
        other_than: the id of a lab that is not meant.
    """
    left = (lab for lab in _not_passed(labs) if lab.id != other_than)
    return next((lab for lab in left if lab.can_check), None)


def skipped_words(labs: Sequence[LabEntry]) -> str:
    """Name the labs before the next one that can't be checked here, with the reasons.

    Args:
        labs: in the order in which they are done.

    Returns:
        A sentence; empty where none is skipped.
    """
    by_reason: dict[str, list[str]] = {}
    for lab in _not_passed(labs):
        if lab.can_check:
            break
        by_reason.setdefault(lab.why, []).append(f"{lab.number} {lab.title}")
    return " ".join(
        f"Skipped, as it can't be checked here: {', '.join(names)}. {reason}"
        for reason, names in by_reason.items()
    )


def _not_passed(labs: Sequence[LabEntry]) -> list[LabEntry]:
    """Give those of which it is known that they are not passed."""
    return [lab for lab in labs if lab.progress and lab.progress.state != "passed"]
