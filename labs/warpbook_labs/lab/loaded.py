"""A lab that was read from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpbook_labs.lab.python.own_python import Cases
from warpbook_labs.lab.spec import Lab

#: what a lab on host code gives to import
GIVEN = "given.py"


@dataclass(frozen=True)
class LoadedLab:
    """A lab with all that belongs to it."""

    folder: Path
    lab: Lab
    cases: Cases
    text: str
    starter: str
    #: what host code may import as `given`; "" where there is nothing
    given: str
    reference: str
    #: what `speed.baseline` names; "" where it names nothing, or is kept apart
    baseline: str
    hints: tuple[str, ...]
    #: by file name
    correct: dict[str, str]
    wrong: dict[str, str]
    #: of reference, cases and solutions; None where they are kept apart
    private: Path | None
    #: SHA-256 of what decides a grade, as far as it is here
    digest: str = ""
