"""A lab's reference and its discussion, for who has passed it.

Only files are read: no Python of a lab runs, so a server may ask, too.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from warpbook_labs.course.progress import Progress
from warpbook_labs.errors import BadLab, KeptApart, NotPassed
from warpbook_labs.lab.catalogues import read_lab
from warpbook_labs.lab.edits import EditedFile
from warpbook_labs.lab.files import VAULT, UnfitFile, private_folder, read_file
from warpbook_labs.lab.languages.table import language_of
from warpbook_monitors import toml_text

_DISCUSSION = "discussion.md"
_MOST_MISTAKES = 12


class Mistake(Struct, frozen=True):
    """What others get wrong."""

    name: str
    #: what is wrong with it
    reason: str


class Solution(Struct, frozen=True):
    """How the lab's author does it, and why."""

    lab: str
    #: of the lab's language, such as "kernel.cu"
    file: str
    reference: str
    #: in Markdown, with formulas in LaTeX; "" where the lab has none
    discussion: str = ""
    mistakes: tuple[Mistake, ...] = ()


def refuse_before_pass(lab: str, progress: Progress) -> None:
    """Refuse the reference to who has not passed yet.

    Raises:
        NotPassed: no submission of the lab has passed.
    """
    if progress.best is None or not progress.best.passed:
        raise NotPassed(
            f"The reference solution of {lab} is shown once a submission of yours has "
            "passed."
        )


def read_solution(folder: Path) -> Solution:
    """Read a lab's reference and discussion.

    Raises:
        KeptApart: they are not on this machine.
        BadLab: they can't be read.
    """
    try:
        lab = read_lab(folder / "lab.toml")
        private = private_folder(folder)
        if private is None:
            raise KeptApart(
                f"The reference solution of {lab.id} is kept apart from this machine, "
                f"and {VAULT} names no folder that has it."
            )
        language = language_of(lab)
        return Solution(
            lab.id,
            language.source_name,
            read_file(private / f"reference{language.suffix}"),
            _optional(private / _DISCUSSION),
            _mistakes(_optional(private / "solutions" / "wrong.toml")),
        )
    except (UnfitFile, msgspec.DecodeError) as problem:
        raise BadLab(str(problem)) from None


def _optional(file: Path) -> str:
    return read_file(file) if file.exists() else ""


def _mistakes(text: str) -> tuple[Mistake, ...]:
    if not text:
        return ()
    held = toml_text.decode(text, EditedFile)
    return tuple(
        Mistake(mistake.name.replace("_", " "), " ".join(mistake.reason.split()))
        for mistake in held.wrong[:_MOST_MISTAKES]
    )
