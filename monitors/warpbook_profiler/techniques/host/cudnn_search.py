"""cuDNN's search for the fastest algorithm, which a program turns on."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line
from warpbook_profiler.techniques.host.debug_settings import (
    CONVOLUTIONS,
    slower_algorithms,
)
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_NAME = "cudnn-benchmark"
_SETTING = "torch.backends.cudnn.benchmark"


def cudnn_search(evidence: Evidence) -> Iterator[Proposal]:
    """Propose it where the cell turns it off."""
    for constant in evidence.code.constants():
        if constant.target.endswith("cudnn.benchmark") and constant.value is False:
            yield from slower_algorithms(evidence, _NAME, constant, CONVOLUTIONS)


def _judge(facts: Facts) -> Judgement:
    if not facts.has_convolutions:
        return Judgement("not applicable", "No convolution runs in this window.")
    state = facts.process.cudnn_benchmark
    within = facts.code.keyword("benchmark", "flags")
    value, line = facts.code.assigned("cudnn.benchmark") or within or (None, None)
    if within is not None and within[0] is True:
        # the process has its own setting again once that block has ended
        state, (value, line) = None, within
    if state is None and value is None:
        if not facts.code.is_known:
            return Judgement(
                "unknown",
                "A trace does not show this setting.",
                "Pass the code: warpbook advise TRACE --source FILE.",
            )
        evidence = f"The code does not set {_SETTING}, which is off unless set."
    elif state is not None:
        evidence = f"{_SETTING} is {state} in the process that ran the code."
        value = state
    else:
        evidence = f"The code sets {_SETTING} to {value}{at_line(line)}."
    if value:
        return Judgement("yes", evidence)
    return Judgement(
        "no",
        evidence,
        f"Set {_SETTING} = True if the sizes of the input stay the same; each new "
        "size is benchmarked once. Its gain is known only after a trial.",
    )


CUDNN_BENCHMARK = Question(
    name=_NAME,
    text="Does cuDNN benchmark its algorithms (cudnn.benchmark)?",
    judge=_judge,
    no_where=(
        "a convolution runs, and `torch.backends.cudnn.benchmark` is off: in the "
        "process that ran, or by its code"
    ),
    lab="convolution-settings",
    is_of_gpu=False,
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=(_NAME,),
            what="the cell turns cuDNN's search for algorithms off",
            time="known only after a trial",
            answers=CUDNN_BENCHMARK,
        ),
    ),
    rule=cudnn_search,
    questions=(CUDNN_BENCHMARK,),
    untried="There is no trial of it yet: set it, and profile again.",
)
