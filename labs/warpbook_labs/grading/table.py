"""How each language is graded, by the name that `lab.toml` gives."""

from __future__ import annotations

from warpbook_labs.engines.interpreter.front_ends import CudaFrontEnd, TritonFrontEnd
from warpbook_labs.grading.cases import CaseGrader
from warpbook_labs.grading.grader import Grader
from warpbook_labs.grading.host import HostEngines
from warpbook_labs.grading.kernels import KernelEngines
from warpbook_labs.grading.plans import PlanGrader
from warpbook_labs.lab.spec import Lab, LanguageName

_OF_CASES: dict[LanguageName, CaseGrader] = {
    "cuda": CaseGrader(KernelEngines(CudaFrontEnd())),
    "triton": CaseGrader(KernelEngines(TritonFrontEnd())),
    "host": CaseGrader(HostEngines()),
}
_GRADERS: dict[LanguageName, Grader] = {**_OF_CASES, "plan": PlanGrader()}


def grader_of(lab: Lab) -> Grader:
    """Give what grades a lab's submissions."""
    return _GRADERS[lab.language]


def case_grader_of(lab: Lab) -> CaseGrader:
    """Give what grades submissions of a lab that has cases.

    Raises:
        KeyError: it asks questions in their place.
    """
    return _OF_CASES[lab.language]
