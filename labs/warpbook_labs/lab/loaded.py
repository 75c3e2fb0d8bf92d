"""A lab that was read from its folder, and a submission for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warpbook_labs.lab.python.questions import Advance, Draw, Judge
from warpbook_labs.lab.spec import Lab
from warpbook_labs.sandbox.work import Limits

#: what a lab on host code gives to import
GIVEN = "given.py"
#: what `cases.py` may have to define: cases, or questions
FUNCTIONS = (("inputs", "expected", "tolerance"), ("questions", "judge"))


@dataclass(frozen=True)
class Cases:
    """A lab's own functions; what its language does not use raises BadPython."""

    #: (sizes, kind of values, random generator) -> arrays and numbers by parameter
    inputs: Callable[..., dict[str, Any]]
    #: (inputs, sizes) -> outputs by parameter, exact or in float64
    expected: Callable[..., dict[str, Any]]
    #: (inputs, sizes, expected) -> how far each output may be off, by parameter
    tolerance: Callable[..., dict[str, Any]]
    #: (random.Random) -> questions
    questions: Draw
    #: (question, answer) -> why it is wrong, in words
    judge: Judge
    #: of a dialogue: what it comes to by an answer
    advance: Advance


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
    #: is called with each output that is compared: (output, expected, tolerance)
    compared: Callable[[Any, Any, Any], None] | None = None


@dataclass(frozen=True)
class Submission:
    """A source for a lab, and how it is judged; made once, where it comes in."""

    loaded: LoadedLab
    source: str
    #: hidden cases are drawn from it; None asks for what the lab shows, and no more
    seed: int | None = None
    #: of processes that compile and run it; None has those of its language
    limits: Limits | None = None
    #: whether a GPU may be used where there is one
    use_gpu: bool = True
    #: whether what follows the first case that fails may be left out of the result
    stops_at_wrong: bool = False

    def with_source(self, source: str) -> Submission:
        """Return the same of another source, such as one of its configurations."""
        return replace(self, source=source)
