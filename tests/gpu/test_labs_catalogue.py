"""Every lab's own solutions on a real GPU: who should pass passes, and the others fail.

pytest -m gpu -s tests/gpu/test_labs_catalogue.py -k "cuda-graphs or int8-linear"

They are graded as a submission is, by the GPU and the interpreter, with hidden cases
and large ones, but for speed: see test_labs_speed.py. Only those that -k asks for are,
and each is printed when it is done. All of them take many minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import pytest

from warpbook_labs.cases.sampling import hidden_cases, large_cases, public_cases
from warpbook_labs.grading.table import case_grader_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load_all
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox.work import Limits

# a test waits until its source's turn has come
pytestmark = [pytest.mark.gpu, pytest.mark.timeout(1800)]

SEED = 77
AT_ONCE = 10
LIMITS = Limits(processor_s=80, asleep_s=90)


class One(NamedTuple):
    """A source of a lab."""

    lab: str
    file: str
    text: str
    should_pass: bool


def sources() -> dict[str, One]:
    """Give all sources that a GPU can run."""
    found_sources = []
    for name, loaded in load_all().items():
        host = loaded.lab.host
        if loaded.lab.language != "plan" and not (host and host.on_ranks):
            found_sources.append(One(name, "reference", loaded.reference, True))
            found_sources.append(One(name, "starter", loaded.starter, False))
            found_sources += [One(name, *item, True) for item in loaded.correct.items()]
            found_sources += [One(name, *item, False) for item in loaded.wrong.items()]
    return {f"{source.lab}/{source.file}": source for source in found_sources}


SOURCES = sources()


def graded(labs: dict[str, LoadedLab], name: str) -> CheckResult:
    one = SOURCES[name]
    loaded = labs[one.lab]
    cases = public_cases(loaded.lab) + hidden_cases(loaded.lab, SEED)
    large = large_cases(loaded.lab, SEED)
    result = case_grader_of(loaded.lab).run(
        Submission(loaded, one.text, limits=LIMITS), cases, large
    )
    print(row(name, result), flush=True)
    return result


def row(name: str, result: CheckResult) -> str:
    device = result.device
    should = "pass" if SOURCES[name].should_pass else "fail"
    gpu = f"{device.right} of {device.of}" if device else "not run"
    failed = [case.message for case in result.cases if not case.passed]
    failed += (
        [case.message for case in device.cases if not case.passed] if device else []
    )
    first = (failed or [f"{result.message} {result.log}"])[0]
    why = " ".join(first.replace("|", "/").split())[: 110 if failed else 400]
    return f"| {name} | {should} | {result.status} | {gpu} | {why} |"


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[CheckResult]]]:
    """Grade those that are asked for, several at once."""
    labs = load_all()
    names = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path
    ]
    print("\n| source | should | did | on the GPU | why it failed |")
    print("|---|---|---|---|---|")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(graded, labs, name) for name in names}


@pytest.mark.parametrize("name", SOURCES)
def test_who_should_pass_passes_and_the_others_fail(
    name: str, results: dict[str, Future[CheckResult]]
) -> None:
    result = results[name].result()
    # without this the interpreter alone would have graded
    assert result.device is not None or result.status == "compile error", result
    assert (result.status == "passed") == SOURCES[name].should_pass, result.message
