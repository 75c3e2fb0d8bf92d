"""Every lab's own solutions on a real GPU: who should pass passes, and the others fail.

pytest -m gpu -s tests/gpu/test_labs_catalogue.py

They are graded as a submission is, by the GPU and the interpreter, with hidden cases
and large ones, but for speed: see test_labs_speed.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import pytest

from warpbook_labs.drawing import hidden_cases, large_cases, public_cases
from warpbook_labs.grading import grade_source
from warpbook_labs.jail.limits import Limits
from warpbook_labs.loader import LoadedLab, load_all
from warpbook_labs.results import CheckResult

pytestmark = pytest.mark.gpu

SEED = 77
AT_ONCE = 6
LIMITS = Limits(wall_s=90, processor_s=80)


class One(NamedTuple):
    """A source of a lab."""

    lab: str
    file: str
    text: str
    should_pass: bool


def sources() -> dict[str, One]:
    """Give all sources that a GPU can run."""
    found = []
    for name, loaded in load_all().items():
        if loaded.lab.language != "plan":
            found.append(One(name, "reference", loaded.reference, True))
            found.append(One(name, "starter", loaded.starter, False))
            found += [One(name, *each, True) for each in loaded.correct.items()]
            found += [One(name, *each, False) for each in loaded.wrong.items()]
    return {f"{each.lab}/{each.file}": each for each in found}


SOURCES = sources()


def graded(labs: dict[str, LoadedLab], one: One) -> CheckResult:
    loaded = labs[one.lab]
    cases = public_cases(loaded.lab) + hidden_cases(loaded.lab, SEED)
    large = large_cases(loaded.lab, SEED)
    return grade_source(loaded, one.text, cases, LIMITS, large)


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, CheckResult]]:
    """Grade them all, several at once; print the table."""
    grade = partial(graded, load_all())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(SOURCES, pool.map(grade, SOURCES.values()), strict=True))
    yield found
    print("\n| source | should | did | on the GPU | why it failed |")
    print("|---|---|---|---|---|")
    for name, each in found.items():
        should = "pass" if SOURCES[name].should_pass else "fail"
        gpu = f"{each.device.right} of {each.device.of}" if each.device else "not run"
        failed = [case.message for case in each.cases if not case.passed]
        if each.device is not None:
            failed += [case.message for case in each.device.cases if not case.passed]
        why = " ".join((failed or [""])[0].replace("|", "/").split())[:110]
        print(f"| {name} | {should} | {each.status} | {gpu} | {why} |")


@pytest.mark.parametrize("name", SOURCES)
def test_who_should_pass_passes_and_the_others_fail(
    name: str, results: dict[str, CheckResult]
) -> None:
    result = results[name]
    # without this the interpreter alone would have graded
    assert result.device is not None or result.status == "compile error", result
    assert (result.status == "passed") == SOURCES[name].should_pass, result.message
