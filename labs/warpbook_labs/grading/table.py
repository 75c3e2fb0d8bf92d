"""How each language is graded, by the name that `lab.toml` gives."""

from __future__ import annotations

from functools import cache

from warpbook_labs.engines.interpreter.front_ends import CudaFrontEnd, TritonFrontEnd
from warpbook_labs.errors import BadLab
from warpbook_labs.grading.cases import CaseGrader
from warpbook_labs.grading.grader import Grader
from warpbook_labs.grading.host import HostEngines
from warpbook_labs.grading.kernels import KernelEngines
from warpbook_labs.grading.plans import PlanGrader
from warpbook_labs.lab.languages.table import installed_language
from warpbook_labs.lab.spec import Lab

_OF_CASES: dict[str, CaseGrader] = {
    "cuda": CaseGrader(KernelEngines(CudaFrontEnd())),
    "triton": CaseGrader(KernelEngines(TritonFrontEnd())),
    "host": CaseGrader(HostEngines()),
}
_GRADERS: dict[str, Grader] = {**_OF_CASES, "plan": PlanGrader()}


def grader_of(lab: Lab) -> Grader:
    """Return what grades a lab's submissions.

    Raises:
        BadLab: the package that brings the language brings no grader for it.
    """
    return _GRADERS.get(lab.language) or _installed(lab.language)


@cache
def _installed(language: str) -> Grader:
    try:
        grader = installed_language(language).grader()
    except ImportError as problem:
        raise BadLab(f"The grader of `{language}` can't be loaded: {problem}") from None
    if not isinstance(grader, Grader):
        raise BadLab(f"What the package of `{language}` brings is no Grader.")
    return grader


def case_grader_of(lab: Lab) -> CaseGrader:
    """Give what grades submissions of a lab that has cases.

    Raises:
        KeyError: it asks questions in their place.
    """
    return _OF_CASES[lab.language]
