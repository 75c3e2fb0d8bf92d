"""A technique for warpbook: tensors that are copied as a whole, as clone() does it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question
from warpbook_profiler.techniques.technique import ChangeKind, Technique

#: of the bare run, below which copies are left alone
LEAST_SHARE = 0.01


def clones(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to leave the copies out."""
    operators = evidence.operators
    copies = np.flatnonzero(operators.named("aten::clone"))
    time_ns = evidence.time_ns(operators.launched_within(copies))
    if not len(copies) or evidence.share(time_ns) < LEAST_SHARE:
        return
    ways = Ways(evidence)
    ways.drop_operators(copies)
    yield Proposal(
        name="fewer-clones",
        title="Copy only what is changed afterwards.",
        evidence=(
            f"{len(copies):,} copies of whole tensors take "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        is_bound=True,
        reason="Which copies are needed is not in the trace.",
        line=evidence.code.first_line("clone", "contiguous", "reshape"),
        # nothing is shown that gains less than 5 %
        is_shown_without_gain=True,
    )


def judge(facts: Facts) -> Judgement:
    """Answer the checklist's question."""
    advised = facts.advised(QUESTION)
    if advised is not None:
        return advised
    if "aten::clone" in facts.host_names:
        return facts.without_gain("Whole tensors are copied.")
    return Judgement("yes", "No operator copies a whole tensor.")


QUESTION = Question(
    name="clones",
    text="Is only copied what changes?",
    judge=judge,
    no_where="copies of whole tensors take 1 % of the time and more",
    lab=None,
)

TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("fewer-clones",),
            what="copies of whole tensors",
            time="a bound",
            answers=QUESTION,
            lab="roofline",
        ),
    ),
    rule=clones,
    questions=(QUESTION,),
    untried="Which copies are needed, only you know.",
)
