"""Whether a lab grades fairly: who should pass passes, and who should fail fails."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from warpbook_labs.cases.comparison import error_share
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.errors import BadLab
from warpbook_labs.grading.table import case_grader_of, grader_of
from warpbook_labs.lab.catalogues import lab_files
from warpbook_labs.lab.files import VAULT
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import refuse_taken
from warpbook_labs.lab.python.questions import Draw, Question
from warpbook_labs.lab.spec import Speed
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.sandbox.work import Limits

#: of all draws together
AUTHORS_LIMITS = Limits(processor_s=100, asleep_s=120.0)
#: hidden cases are drawn once for each; any would do
SEEDS = (11, 22, 33)
#: what a starter may not end in
_NOT_RUN = ("compile error", "bad launch rule", "unsupported")


class Verdict(Struct, frozen=True):
    """What became of one source of a lab."""

    file: str
    should: Literal["pass", "fail"]
    #: it did what it should, with every draw
    ok: bool
    #: why it failed, or that it did not
    reason: str
    #: of a right one: its largest error as a share of the tolerance; None if exact
    error_share: float | None = None


def validate(
    loaded: LoadedLab,
    seeds: Sequence[int] = SEEDS,
    should: Literal["pass", "fail"] | None = None,
) -> Iterator[Verdict]:
    """Check every source of a lab with several draws of hidden cases.

    Args:
        should: of the sources alone that should do this.

    Raises:
        NotInstalled: NVRTC is not installed.
        BadLab: the lab's own Python fails or draws by other chance, the catalogue has
            its id or number, it comes after a lab that is not there, or its starter
            does not compile.
    """
    suffix, speed = language_of(loaded.lab).suffix, loaded.lab.speed
    if loaded.private is None:
        raise BadLab(f"{loaded.folder}: its solutions are kept apart; see {VAULT}.")
    refuse_taken(loaded)
    _refuse_unknown(loaded)
    if should != "fail":
        grader_of(loaded.lab).refuse_other_draws(loaded, seeds)
    # every source is asked the same
    questions = _drawn_once(loaded.cases.questions)
    cases = dataclasses.replace(loaded.cases, questions=questions)
    loaded = dataclasses.replace(loaded, cases=cases)
    if should != "fail":
        yield _passes(loaded, f"reference{suffix}", loaded.reference, seeds)
        for name, source in loaded.correct.items():
            yield _passes(loaded, f"solutions/correct/{name}", source, seeds)
        if speed is not None and loaded.baseline:
            yield _times_right(loaded, speed, seeds)
    if should == "pass":
        return
    yield _fails(loaded, f"starter{suffix}", loaded.starter, seeds, must_run=True)
    for name, source in loaded.wrong.items():
        yield _fails(loaded, f"solutions/wrong/{name}", source, seeds)


def _drawn_once(draw: Draw) -> Draw:
    known: dict[object, list[Question]] = {}

    def drawn(rng: random.Random) -> list[Question]:
        state = rng.getstate()
        if state not in known:
            known[state] = draw(rng)
        # a lab's own Python may change what it is given
        return copy.deepcopy(known[state])

    return drawn


def _refuse_unknown(loaded: LoadedLab) -> None:
    """Refuse a lab that comes after one which is not there."""
    folder = loaded.folder.resolve()
    files = [*lab_files().files, *folder.parent.glob("*/lab.toml")]
    if folder.parent.name == loaded.lab.track:
        # labs of a course, in folders of tracks like the catalogue's
        files += folder.parent.parent.glob("*/*/lab.toml")
    known = {file.parent.name for file in files} - {folder.name}
    for name in loaded.lab.after:
        if name.replace("-", "_") not in known:
            words = f"there is no other lab `{name}`, here or in `warpbook labs list`"
            raise BadLab(f"{loaded.folder / 'lab.toml'}: after: {words}.")


def _submission(loaded: LoadedLab, source: str) -> Submission:
    limits = None if loaded.lab.plan is not None else AUTHORS_LIMITS
    return Submission(loaded, source, limits=limits)


def _passes(loaded: LoadedLab, file: str, source: str, seeds: Sequence[int]) -> Verdict:
    shares: list[float | None] = []

    def compared(got: Any, expected: Any, tolerance: Any) -> None:
        shares.append(error_share(got, expected, tolerance))

    watched = dataclasses.replace(loaded, compared=compared)
    submission = _submission(watched, source)
    result, _ = grader_of(loaded.lab).check_draws(submission, seeds)
    if result.status != "passed":
        return Verdict(file, "pass", False, _reason(result, result.cases))
    largest = max((share for share in shares if share is not None), default=None)
    return Verdict(file, "pass", True, result.message, largest)


def _times_right(loaded: LoadedLab, speed: Speed, seeds: Sequence[int]) -> Verdict:
    """Check the baseline with what is timed, at sizes that hidden cases have.

    It may ask more of the machine than learners may. As where it is timed, twice the
    largest tolerance is allowed.
    """
    most = loaded.lab.hidden.sizes
    sizes = {name: min(size, most[name].most) for name, size in speed.sizes.items()}
    cases = [
        DrawnCase("timed", sizes, values, seed, False)
        for seed in seeds
        for values in speed.values
    ]

    def tolerance(*given: Any) -> dict[str, Any]:
        allowed = loaded.cases.tolerance(*given)
        return {name: 2 * np.max(bound) for name, bound in allowed.items()}

    generous = dataclasses.replace(loaded.cases, tolerance=tolerance)
    lenient = dataclasses.replace(loaded, cases=generous)
    submission = _submission(lenient, loaded.baseline)
    result = case_grader_of(loaded.lab).engines.check(submission, cases)
    failed = [case for case in result.cases if not (case.passed or case.is_beyond)]
    if failed or not result.cases:
        return Verdict(speed.baseline, "pass", False, _reason(result, failed))
    return Verdict(speed.baseline, "pass", True, "What is timed is right.")


def _fails(
    loaded: LoadedLab,
    file: str,
    source: str,
    seeds: Sequence[int],
    must_run: bool = False,
) -> Verdict:
    grader = grader_of(loaded.lab)
    submission = dataclasses.replace(_submission(loaded, source), stops_at_wrong=True)
    results: list[CheckResult] = []
    for seed in seeds:
        result, by_draw = grader.check_draws(submission, (seed,))
        # a result without cases failed before any was run
        if result.cases and all(case.passed for case in by_draw[seed]):
            words = f"with the hidden cases of seed {seed} it passes"
            return Verdict(file, "fail", False, words)
        results.append(result)
    return _failed(loaded, file, results[0], must_run)


def _failed(
    loaded: LoadedLab, file: str, result: CheckResult, must_run: bool
) -> Verdict:
    reason = _reason(result, result.cases)
    if must_run and result.status in _NOT_RUN:
        words = "learners begin with it, so it must compile, run, and fail"
        raise BadLab(f"{loaded.folder / file}: {words}: {reason}")
    return Verdict(file, "fail", True, reason)


def _reason(result: CheckResult, cases: Sequence[CaseResult]) -> str:
    for case in cases:
        if not case.passed:
            return f"{case.about}: {case.message}"
    log = result.log.strip().splitlines()
    return f"{result.status}: {log[0] if log else result.message}"
