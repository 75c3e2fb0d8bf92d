"""What each language of labs says of itself, and checks that several share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.expressions import BadExpression, value
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


#: of values that are timed
_MOST_KINDS = 4


def refuse_unfit_cases(lab: Lab, file: Path) -> None:
    """Refuse parameters, cases and bounds that do not fit together.

    Raises:
        BadLab: the message names file and key.
    """
    for key, least in (("parameters", 1), ("public", 2), ("tolerance", 1)):
        if len(getattr(lab, key)) < least:
            raise BadLab(f"{file}: {key}: at least {least} must be there.")
    sizes = {parameter.name for parameter in lab.parameters if parameter.kind == "size"}
    names = [parameter.name for parameter in lab.parameters]
    if len(set(names)) < len(names):
        raise BadLab(f"{file}: parameters: two have the same name.")
    if not any(parameter.kind in ("output", "inout") for parameter in lab.parameters):
        raise BadLab(f"{file}: parameters: none is an output.")
    ones = dict.fromkeys(sizes, 1)
    for key, expression in _expressions(lab):
        try:
            value(expression, ones)
        except BadExpression as problem:
            raise BadLab(f"{file}: {key}: {problem}") from None
    for number, case in enumerate(lab.public):
        if set(case.sizes) != sizes:
            wanted = ", ".join(sorted(sizes))
            raise BadLab(f"{file}: public[{number}].sizes: it needs {wanted}.")
        if case.values not in lab.hidden.values:
            raise BadLab(f"{file}: public[{number}].values: not in hidden.values.")
    if set(lab.hidden.sizes) != sizes:
        raise BadLab(f"{file}: hidden.sizes: it needs {', '.join(sorted(sizes))}.")
    for name, of in lab.hidden.sizes.items():
        key = f"hidden.sizes.{name}"
        if of.least > of.most:
            words = f"least is {of.least}, and most is {of.most}"
            raise BadLab(f"{file}: {key}: {words}. Make least the smaller one.")
        if of.device_most and of.device_most < of.most:
            words = f"device_most is {of.device_most}, and most is {of.most}"
            raise BadLab(f"{file}: {key}: {words}. Make most the smaller one.")
        if min((of.least, *of.always)) < 1:
            raise BadLab(f"{file}: {key}: a size is below 1.")
    if lab.speed is not None and set(lab.speed.sizes) != sizes:
        raise BadLab(f"{file}: speed.sizes: it needs {', '.join(sorted(sizes))}.")
    if lab.speed is not None and not 0 < len(lab.speed.values) <= _MOST_KINDS:
        raise BadLab(f"{file}: speed.values: 1 to {_MOST_KINDS} kinds.")
    if any(set(sizes_beyond) != sizes for sizes_beyond in lab.hidden.beyond):
        raise BadLab(f"{file}: hidden.beyond: it needs {', '.join(sorted(sizes))}.")
    if lab.speed is not None and not set(lab.speed.values) <= set(lab.hidden.values):
        raise BadLab(f"{file}: speed.values: not in hidden.values.")


def _expressions(lab: Lab) -> list[tuple[str, str]]:
    costs = ("bytes", "flops", "h2d_bytes", "d2h_bytes")
    expressions = [(f"work.{cost}", getattr(lab.work, cost)) for cost in costs]
    for parameter in lab.parameters:
        expressions += [
            (f"parameters.{parameter.name}.shape", side) for side in parameter.shape
        ]
    for one in lab.counted:
        bounds = [bound for bound in (one.most, one.least) if bound]
        expressions += [(f"counted.{one.count}", bound) for bound in bounds or [""]]
    return expressions


def sources_of(loaded: LoadedLab, suffix: str) -> list[tuple[str, str]]:
    """Give all that is like a learner's source, by file."""
    speed = loaded.lab.speed
    sources = {f"starter{suffix}": loaded.starter}
    for kind in ("correct", "wrong"):
        for name, source in getattr(loaded, kind).items():
            sources[f"solutions/{kind}/{name}"] = source
    if loaded.private is not None:
        sources[f"reference{suffix}"] = loaded.reference
    if speed is not None and loaded.baseline:
        sources[speed.baseline] = loaded.baseline
    return list(sources.items())
