"""Grades a submission with the labs: the only file of the hub that does.

With `work/submissions.py` it is the only one that imports `warpbook_labs`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec.structs import replace

from warpbook.hub_protocol import (
    MOST_EVIDENCE_BYTES,
    MOST_QUESTION_TEXT,
    CodeQuestion,
    GradableLab,
    GradedFacts,
    JobOrder,
    Ratio,
    Verdict,
)
from warpbook_hub.grader.engine import Graded
from warpbook_hub.grader.gpus import energy_mj
from warpbook_hub.grader.inventory import OWN_LABS, lab_files
from warpbook_labs.cards.card import card_of
from warpbook_labs.course.overview import look_here
from warpbook_labs.errors import BadLab, NotInstalled
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.files import VAULT
from warpbook_labs.lab.languages.language import Here
from warpbook_labs.lab.languages.table import is_of_kernels, language_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load
from warpbook_labs.mutation.own_questions import draw_questions
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.measurements import Ratio as Measured
from warpbook_labs.results.stage_times import noted_stages
from warpbook_monitors.plain_text import bounded

#: statuses of a source of which nothing was run
_NOT_RUN = ("compile error", "bad launch rule")
#: of a source that is right, whatever its speed
_RIGHT = ("passed", "too slow", "too noisy to tell")
_MOST_KIND = 100
_MOST_LAB, _MOST_PROBLEM = 41, 300


#: of the evidence's seconds: until the job was leased, and all that was done then
QUEUE_WAIT, GRADING = "queue wait", "grading"


class CantGrade(Exception):
    """It can't be graded here, for no fault of the submission; the message says why."""


def grade(order: JobOrder) -> Graded:
    """Grade a submission in one stage.

    Raises:
        CantGrade: the lab, its vault, its version or a compiler is not here.
        TooBusy: this machine has no CPU time for it.
    """
    loaded = _lab(order.lab)
    if order.lab_digest and order.lab_digest != loaded.digest:
        raise CantGrade(
            f"{order.lab}: this grader has another version of the lab than the course. "
            "Publish this version on the lab's page, which shows what changed, or give "
            "the grader the course's."
        )
    before_mj = energy_mj(order.device)
    began_s = time.monotonic()
    try:
        with noted_stages() as seconds:
            result = _result(loaded, order)
            questions = _questions(loaded, order, result)
    except (BadLab, NotInstalled) as problem:
        raise CantGrade(str(problem)) from None
    stages = {
        QUEUE_WAIT: order.waited_ms / 1000,
        **seconds,
        GRADING: time.monotonic() - began_s,
    }
    after_mj = energy_mj(order.device)
    used_mj = None
    if before_mj is not None and after_mj is not None:
        used_mj = after_mj - before_mj
    return Graded(
        facts_of(loaded, result),
        loaded.digest,
        sha256(order.source.encode()).hexdigest(),
        _evidence(result, order, stages),
        loaded.reference if order.wants_reference else "",
        used_mj,
        questions,
    )


def gradable_labs() -> tuple[GradableLab, ...]:
    """Load every lab that is here, and say which can be graded."""
    here = look_here(0)
    names = sorted({file.parent.name for file in lab_files()})
    return tuple(_gradable(name, here) for name in names)


def _gradable(folder_name: str, here: Here) -> GradableLab:
    name = folder_name.replace("_", "-")[:_MOST_LAB]
    try:
        loaded = _lab(name)
        problem = language_of(loaded.lab).missing(loaded.lab, here)
    except (CantGrade, BadLab) as problem_met:
        return GradableLab(name, "", bounded(str(problem_met), _MOST_PROBLEM))
    return GradableLab(name, loaded.digest, bounded(problem, _MOST_PROBLEM))


def get_ready(lab: str) -> None:
    """Start what grades submissions of a lab, before there is one; don't wait for it.

    PyTorch is left alone: it takes seconds of a CPU that host code needs quiet.
    """
    with contextlib.suppress(CantGrade):
        loaded = _lab(lab)
        if loaded.lab.language != "host":
            grader_of(loaded.lab).get_ready()


def facts_of(loaded: LoadedLab, result: CheckResult) -> GradedFacts:
    """Give what marks are computed from."""
    speed = None if result.device is None else result.device.speed
    is_graded = speed is not None and speed.status in ("fast enough", "too slow")
    return GradedFacts(
        _verdict(loaded, result),
        result.status,
        result.message,
        result.right,
        result.of,
        _error_kind(result),
        is_graded,
        _ratio(speed.of_baseline) if speed is not None and is_graded else None,
        _ratio(speed.of_limit) if speed is not None and is_graded else None,
        result.not_graded,
        () if result.device is None else result.device.flags,
    )


def _lab(name: str) -> LoadedLab:
    try:
        loaded = load(_folder_of(name))
    except BadLab as problem:
        raise CantGrade(str(problem)) from None
    if loaded.private is None:
        raise CantGrade(
            f"{name}: its hidden cases are kept apart, and {VAULT} names no folder "
            "that has them. Set it for the grader."
        )
    return loaded


def _folder_of(name: str) -> Path:
    """Find a lab: of the course's own, which the grader is to trust, or ours."""
    wanted = name.replace("-", "_")
    for file in lab_files():
        if file.parent.name == wanted:
            return file.parent
    raise CantGrade(
        f"There is no lab `{bounded(name)}` here. Name the folder of the course's own "
        f"labs in {OWN_LABS} for the grader."
    )


def _result(loaded: LoadedLab, order: JobOrder) -> CheckResult:
    grader = grader_of(loaded.lab)
    on_gpu = order.stage == "gpu"
    return grader.grade(Submission(loaded, order.source, order.seed, use_gpu=on_gpu))


def _questions(
    loaded: LoadedLab, order: JobOrder, result: CheckResult
) -> tuple[CodeQuestion, ...]:
    """Draw questions on a source that passed, where the course asks some."""
    if not order.asks_questions or order.stage != "cpu" or result.status not in _RIGHT:
        return ()
    return tuple(
        CodeQuestion(
            bounded(drawn.ask, MOST_QUESTION_TEXT),
            tuple(bounded(choice, _MOST_PROBLEM) for choice in drawn.choices),
            drawn.right,
            bounded(drawn.because, MOST_QUESTION_TEXT),
        )
        for drawn in draw_questions(loaded, order.source, result, order.seed)
    )


def _verdict(loaded: LoadedLab, result: CheckResult) -> Verdict:
    """Say whether it is right.

    What the checker without a GPU does not know or is too slow for is undecided, as
    where both grade at once: a GPU may still tell.
    """
    if result.status == "too busy":
        return "too busy"
    if result.status in _RIGHT:
        return "right"
    if result.status == "unsupported":
        return "undecided"
    if result.status in _NOT_RUN or not is_of_kernels(loaded.lab):
        return "wrong"
    if result.device is not None and result.device.right < result.device.of:
        return "wrong"
    is_mistake = any(
        case.findings or case.is_beyond or case.wrong is not None
        for case in result.cases
        if not case.passed
    )
    return "wrong" if is_mistake else "undecided"


def _error_kind(result: CheckResult) -> str:
    """Name the kind of mistake, so that three equal ones are seen to be equal."""
    if result.status in _RIGHT:
        return ""
    failed = next((case for case in result.cases if not case.passed), None)
    if failed is None:
        on_gpu = () if result.device is None else result.device.cases
        kinds = [case.kind for case in on_gpu if not case.passed]
        return f"{result.status}: {kinds[0]}" if kinds else result.status
    if failed.findings:
        return failed.findings[0].kind[:_MOST_KIND]
    what = "beyond the bounds" if failed.is_beyond else failed.about
    return f"{result.status}: {what}"[:_MOST_KIND]


def _ratio(measured: Measured | None) -> Ratio | None:
    if measured is None:
        return None
    return Ratio(measured.low, measured.median, measured.high)


def _evidence(result: CheckResult, order: JobOrder, stages: Mapping[str, float]) -> str:
    """Give card, result and seconds as JSON, without the result if it is too large."""
    seconds = {name: round(taken_s, 3) for name, taken_s in stages.items()}
    on_card = result
    if order.asks_questions and result.status in _RIGHT:
        # its work by line would answer them
        cases = tuple(replace(case, lines={}) for case in result.cases)
        on_card = replace(result, cases=cases)
    kept = {"card": card_of(on_card, order.source), "seconds": seconds}
    whole = msgspec.json.encode({**kept, "result": result})
    if len(whole) > MOST_EVIDENCE_BYTES:
        whole = msgspec.json.encode(kept)
    return whole.decode()
