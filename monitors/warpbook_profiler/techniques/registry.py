"""All techniques, and the views of them: advice, checklist, trials, names."""

from __future__ import annotations

from functools import cache
from itertools import chain, islice

from msgspec import structs

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.prediction import Advice, Prediction
from warpbook_profiler.advice.rewriting.called_code import copied_code
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.checklist.code_settings import CodeSettings
from warpbook_profiler.checklist.facts import Facts, Question
from warpbook_profiler.checklist.judging import PROFILE_FIRST, judge
from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.model import progress
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.change import MOST_CHANGES, Change
from warpbook_profiler.techniques.data import (
    lists,
    made_on_host,
    pinned_waits,
    prefetch,
)
from warpbook_profiler.techniques.gpu import (
    attention,
    contention,
    gradients,
    layout,
    library_chains,
    low_precision,
    padding,
    pointwise,
    precision,
)
from warpbook_profiler.techniques.host import (
    allocation,
    batches,
    branches,
    cell_by_cell,
    compiling,
    cudnn_search,
    debug_settings,
    garbage,
    growing_cat,
    launches,
    loading,
    masks,
    optimizer,
    pinning,
    printing,
    read_back,
    round_trip,
    row_by_row,
    streams,
    transfers,
    waits,
    waits_in_loop,
)
from warpbook_profiler.techniques.installed import (
    MOST,
    Installed,
    checked_change,
    installed,
    plain_proposal,
    problem,
)
from warpbook_profiler.techniques.models import (
    checkpointing,
    ddp_settings,
    experts_at_once,
    fold_bn,
    foreach_clip,
    foreach_ema,
    gqa,
    inference,
    need_weights,
    static_cache,
    use_cache,
)
from warpbook_profiler.techniques.operations import (
    matrix_loop,
    one_hot,
    pairs,
    same_matrix,
    scan,
    top_k,
)
from warpbook_profiler.techniques.technique import Experiment, Technique

#: those of this package, in the order in which the checklist goes through them
OWN: tuple[Technique, ...] = tuple(
    module.TECHNIQUE
    for module in (
        *(debug_settings, loading, transfers, pinning, allocation, waits, read_back),
        *(printing, masks, round_trip, streams, growing_cat, row_by_row, batches),
        *(launches, pointwise, attention, library_chains, cell_by_cell, precision),
        *(padding, cudnn_search, layout, contention, gradients, checkpointing),
        *(optimizer, inference, low_precision),
        *(made_on_host, lists, pinned_waits, prefetch, branches, waits_in_loop),
        *(compiling, garbage, scan, top_k, one_hot, pairs, matrix_loop, same_matrix),
        *(fold_bn, gqa, need_weights, static_cache, use_cache, experts_at_once),
        *(foreach_clip, foreach_ema, ddp_settings),
    )
)


def advise(evidence: Evidence) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return the changes that apply, predictions first, then by what they gain.

    What is exact comes before what rounds and gains little more.

    Beside them is what techniques of other packages did wrong, in words.
    """
    prediction, advice = Prediction(evidence), list[Advice]()
    with_called = _with_called(evidence)
    problems = list(_installed().problems)
    every = techniques()
    for at, technique in enumerate(every):
        progress.tell("Predicting changes", at, len(every))
        try:
            advice += _advice(technique, evidence, prediction) or _of_called(
                technique, with_called, prediction
            )
        except Exception as error:
            if not technique.package:
                raise
            problems.append(problem(technique.package, error))
    advice.sort(key=lambda one: one.place)
    # who rounds does so in one way: the others are instead of it, not beside it
    first = next((one for one in advice if one.rounds), None)
    advice.sort(key=lambda one: (one.place[0], one.rounds and one is not first))
    return tuple(one.change for one in advice[:MOST_CHANGES]), tuple(problems)


def checklist(
    profile: CellProfile,
    source: str | None = None,
    process: ProcessState | None = None,
) -> Checklist:
    """Return the answer to each question.

    Args:
        profile: of what ran.
        source: the code that ran, which is parsed and never run; None if not known.
        process: settings of the process that ran it, as far as they are known.
    """
    facts = Facts(
        profile, CodeSettings(source), process or ProcessState(), _answering()
    )
    answers = judge(facts, questions())
    problems = _installed().problems
    return structs.replace(answers, warnings=(*answers.warnings, *problems))


def questions() -> tuple[Question, ...]:
    """Return the questions of the checklist, in its order."""
    of_techniques = (technique.questions for technique in techniques())
    return (PROFILE_FIRST, *chain.from_iterable(of_techniques))


def experiments() -> tuple[type[Experiment], ...]:
    """Return the changes that `--try` measures, the cheapest first."""
    return tuple(
        sorted(
            (kind for technique in techniques() for kind in technique.experiments),
            key=lambda kind: kind.cost,
        )
    )


def technique_of(name: str) -> Technique | None:
    """Return the technique that has a change or an experiment of this name."""
    for technique in techniques():
        tried = [experiment.name for experiment in technique.experiments]
        if name in (*technique.names, *tried):
            return technique
    return None


def techniques() -> tuple[Technique, ...]:
    """Return all techniques, those of other packages last."""
    return (*OWN, *_installed().techniques)


@cache
def _installed() -> Installed:
    return installed(OWN)


@cache
def _answering() -> dict[str, tuple[str, ...]]:
    """Return the names of the changes that answer a question, by its name."""
    names: dict[str, tuple[str, ...]] = {question.name: () for question in questions()}
    for technique in techniques():
        for kind in technique.changes:
            if kind.answers is not None:
                names[kind.answers.name] += kind.names
    return names


def _with_called(evidence: Evidence) -> list[Evidence]:
    """Give the window with what the cell calls of other cells before it, and in it."""
    copied = copied_code(evidence.code.source, evidence.run.called)
    codes = copied.code, copied.flat
    return [evidence.of_code(code) for code in codes if code.is_known]


def _of_called(
    technique: Technique, with_called: list[Evidence], prediction: Prediction
) -> list[Advice]:
    """Find what other cells' code does, of which the cell has no line."""
    if technique.package:
        return []
    tried = (_advice(technique, one, prediction) for one in with_called)
    found = next(filter(None, tried), [])
    gone = {"line": None, "code": "", "diff": ""}
    return [one._replace(change=structs.replace(one.change, **gone)) for one in found]


def _advice(
    technique: Technique, evidence: Evidence, prediction: Prediction
) -> list[Advice]:
    if technique.rule is None:
        return []
    found, proposals = list[Advice](), technique.rule(evidence)
    if technique.package:
        proposals = map(plain_proposal, islice(proposals, MOST))
    for proposal in proposals:
        advice = prediction.of(proposal)
        if advice is not None:
            change = structs.replace(
                advice.change, lab=technique.lab_of[advice.change.name]
            )
            found.append(
                advice._replace(
                    change=checked_change(change) if technique.package else change
                )
            )
    return found
