"""Goes through the checklist with a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from warpbook_profiler.checklist.answers import ANSWERS, Checklist, Judgement, Line
from warpbook_profiler.checklist.facts import Facts, Question

_AGAIN = (
    "Record some steps after the first ones with torch.profiler, or profile a cell by "
    "%%gpuprof, and ask again."
)
_NO_GPU = Judgement(
    "unknown",
    "The profile has no GPU work.",
    "Record it on the machine with the GPU, with ProfilerActivity.CUDA.",
)
_NO_PHASE = Judgement(
    "unknown",
    "The profile has no operators: whether it is training or inference is unknown.",
    "Also record with ProfilerActivity.CPU.",
)


def _profile_first(facts: Facts) -> Judgement:
    profile = facts.profile
    if profile.completeness.refusal:
        return Judgement("no", profile.completeness.refusal, _AGAIN)
    verdict = profile.verdict
    if verdict is None or verdict.kind == "unknown":
        said = verdict.cause if verdict is not None else "A verdict is not possible."
        return Judgement("no", said, _AGAIN)
    return Judgement("yes", f"{verdict.kind}: {verdict.sentence}")


#: of no technique: the others rest on it
PROFILE_FIRST = Question(
    name="profile-first",
    text="Has the bottleneck been measured?",
    judge=_profile_first,
    no_where="no verdict is possible",
    lab="read-the-trace",
    is_of_gpu=False,
)


def judge(facts: Facts, questions: Sequence[Question]) -> Checklist:
    """Return the answer to each question, in their order."""
    lines = tuple(_line(question, facts) for question in questions)
    counts = Counter(line.answer for line in lines)
    return Checklist(
        lines,
        ", ".join(f"{counts[answer]} {answer}" for answer in ANSWERS) + ".",
        facts.profile.completeness.warnings,
    )


def _line(question: Question, facts: Facts) -> Line:
    judgement = _judgement(question, facts)
    return Line(
        question.name,
        question.part,
        question.text,
        judgement.answer,
        judgement.evidence,
        judgement.advice,
        question.lab,
    )


def _judgement(question: Question, facts: Facts) -> Judgement:
    if question.part != "any work" and not facts.host_names:
        return _NO_PHASE
    if question.part == "training" and not facts.trains:
        return Judgement("not applicable", "No backward pass is in this window.")
    if question.part == "inference" and facts.trains:
        return Judgement("not applicable", "The window trains.")
    if question.part == "inference" and not facts.has_layers:
        return Judgement("not applicable", "No layer of a model is in this window.")
    if question.is_of_gpu:
        if not facts.has_gpu_work:
            return _NO_GPU
        refusal = facts.profile.completeness.refusal
        if refusal:
            return Judgement("unknown", refusal, "Record it again.")
    return question.judge(facts)
