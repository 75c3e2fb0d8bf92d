"""What each language of labs says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import Struct

from warpbook_labs.lab.loaded import FUNCTIONS, LoadedLab
from warpbook_labs.lab.spec import Lab

LANGUAGE_NAMES: dict[str, str] = {
    "cuda": "CUDA C++",
    "triton": "Triton",
    "host": "PyTorch host code",
    "plan": "Python functions",
}


class Here(Struct, frozen=True):
    """What this machine and this Python have for labs."""

    #: NVRTC's version; None where it can't be loaded
    compiler: str | None
    #: why not, and what to do
    remedy: str
    triton: bool
    torch: bool
    gpus: int


class Language(ABC):
    """How labs of one language are written; `grading/languages` says how they grade."""

    name: ClassVar[str]
    #: the learner's own file
    source_name: ClassVar[str]
    #: of starter, reference and solutions
    suffix: ClassVar[str] = ".py"
    #: begins a comment that ends with its line
    comment: ClassVar[str] = "#"
    #: the table of `lab.toml` that its labs, and no others, have
    section: ClassVar[str] = ""
    #: what `cases.py` must define
    functions: ClassVar[tuple[str, ...]] = FUNCTIONS[0]
    #: said in a notebook of the cell that holds the learner's source
    source_note: ClassVar[str] = ""

    @abstractmethod
    def refuse_unfit(self, loaded: LoadedLab) -> None:
        """Refuse what no type tells of this language's labs.

        Raises:
            BadLab: the message names file and key.
        """

    def needs(self, lab: Lab) -> tuple[str, ...]:
        """Name what a check takes, beside this package."""
        return ()

    def missing(self, lab: Lab, here: Here) -> str:
        """Say what is not here that a check takes; empty if nothing is."""
        return ""

    def limits(self, lab: Lab, here: Here) -> str:
        """Say what of this lab can't be graded here, beside speed without a GPU."""
        return ""

    def trial_words(self, lab: Lab) -> str | None:
        """Say what a trial run of one case shows beside results.

        None if the learner's own notebook is the place to try it.
        """
        return ""


@dataclass(frozen=True)
class LabLanguage:
    """A language that a package brings; see `table.py` for what is checked of it."""

    language: Language
    #: makes the `warpbook_labs.grading.grader.Grader` of its submissions; what takes
    #: long to import is imported there, where something is graded
    grader: Callable[[], Any]
