"""Cheats on a real GPU: each is caught, or gains nothing; honest sources pass.

pytest -m gpu -s tests/gpu/test_labs_cheats.py

Compiled in the jail for this GPU, then run by the trusted process, as a submission is.
Those that only the interpreter can catch are run by both.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import pytest

from tests.gpu import cheats
from tests.lab_checks import check_all
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.course.session import find
from warpbook_labs.engines.kernels.lane import KernelRequest
from warpbook_labs.gpu import parent as device
from warpbook_labs.gpu.gpu import Gpu, find_gpu
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.sandbox import parent as jail
from warpbook_labs.sandbox.work import Limits, Refused

pytestmark = pytest.mark.gpu

SEED = 424_242
#: what a process of the grader's may take, by the clock
MOST_S = 60
AT_ONCE = 6


@dataclass
class Ended:
    """What the GPU's lane made of a source."""

    #: "compile error", or "" where all was right
    failed: str
    message: str
    #: time of the reference over time taken
    ratio: float | None = None


@cache
def gpu() -> Gpu:
    return find_gpu()


@cache
def lab() -> LoadedLab:
    return find("vector-add")


def cases() -> list[DrawnCase]:
    return public_cases(lab().lab) + hidden_cases(lab().lab, SEED)


def grade(text: str, is_timed: bool = False) -> Ended:
    built = jail.run(Compile(text, gpu().architecture), Limits(processor_s=10))
    if not isinstance(built.result, Compiled):
        log = built.result.message if isinstance(built.result, Refused) else ""
        return Ended("compile error", log or built.message)
    request = KernelRequest(
        str(lab().folder), text, tuple(cases()), is_timed, image=built.result.cubin
    )
    heard = device.run(request, gpu().uuid, MOST_S)
    wrong = [tried.result for tried in heard.tried if not tried.result.passed]
    if wrong:
        return Ended(wrong[0].kind, wrong[0].message)
    if heard.ended is None or heard.ended.how != "done":
        how = heard.ended.how if heard.ended else "ended"
        return Ended(how, heard.ended.message if heard.ended else heard.problem)
    ratio = None
    if heard.timed is not None and heard.timed.result.of_baseline is not None:
        ratio = heard.timed.result.of_baseline.median
    return Ended("", "", ratio)


def interpret(text: str) -> str:
    """Give what the interpreter says against a source; nothing if nothing."""
    result = check_all(lab(), text, cases(), Limits(processor_s=60, asleep_s=60))
    if result.status == "passed":
        return ""
    return " ".join([*(case.message for case in result.cases), result.message])


#: by name: the source, and words of the reason
CAUGHT = {
    **{
        name: (cheats.source(body), why)
        for name, (body, why) in cheats.CAUGHT_BY_THE_GPU.items()
    },
    **cheats.CAUGHT_AS_A_WHOLE,
}
BY_THE_INTERPRETER = {
    name: (cheats.source(body), why)
    for name, (body, why) in cheats.CAUGHT_BY_THE_INTERPRETER.items()
}
TIMED = {
    **cheats.HONEST,
    **{name: cheats.source(body) for name, body in cheats.CAUGHT_WHEN_TIMED.items()},
    **cheats.GAIN_NOTHING,
}


@pytest.fixture(scope="module")
def ended() -> Iterator[dict[str, Ended]]:
    """Grade all of them, several at once where nothing is timed; print the table."""
    untimed = {name: text for name, (text, _) in (CAUGHT | BY_THE_INTERPRETER).items()}
    untimed |= cheats.NOT_COMPILED | cheats.END_CLEARLY
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = dict(zip(untimed, pool.map(grade, untimed.values()), strict=True))
    results |= {name: grade(text, is_timed=True) for name, text in TIMED.items()}
    yield results
    where = jail.run(Compile(cheats.source()), Limits()).isolation
    print("\n| source | on the GPU | in words | time of the reference over its own |")
    print("|---|---|---|---|")
    for name, result in results.items():
        words = " ".join(result.message.replace("|", "/").split())[:90]
        ratio = "" if result.ratio is None else f"{result.ratio:.3f}"
        print(f"| {name} | {result.failed or 'passed'} | {words} | {ratio} |")
    print(f"| all of them | compiled | {where} | |")


@pytest.mark.parametrize("name", cheats.HONEST)
def test_honest_sources_pass(name: str, ended: dict[str, Ended]) -> None:
    assert ended[name].failed == "", ended[name]
    assert interpret(cheats.HONEST[name]) == ""


@pytest.mark.parametrize("name", CAUGHT)
def test_what_does_not_compute_fails(name: str, ended: dict[str, Ended]) -> None:
    assert ended[name].failed not in ("", "compile error"), ended[name]
    assert re.search(CAUGHT[name][1], ended[name].message), ended[name]


@pytest.mark.parametrize("name", BY_THE_INTERPRETER)
def test_what_is_right_by_luck_is_told_by_the_interpreter(
    name: str, ended: dict[str, Ended]
) -> None:
    text, why = BY_THE_INTERPRETER[name]
    assert re.search(why, interpret(text))
    # what the GPU made of it is in the table
    assert ended[name].failed != "compile error", ended[name]


@pytest.mark.parametrize("name", cheats.CAUGHT_WHEN_TIMED)
def test_each_timed_call_is_checked(name: str, ended: dict[str, Ended]) -> None:
    assert ended[name].failed not in ("", "compile error"), ended[name]


@pytest.mark.parametrize("name", cheats.GAIN_NOTHING)
def test_what_is_kept_between_calls_is_gone(name: str, ended: dict[str, Ended]) -> None:
    assert ended[name].failed == "", ended[name]
    ratio, honest = ended[name].ratio, ended["one element each"].ratio
    assert ratio is not None and honest is not None
    assert ratio < 1.02 * honest


@pytest.mark.parametrize("name", cheats.NOT_COMPILED)
def test_no_file_is_read_and_nothing_is_launched(
    name: str, ended: dict[str, Ended]
) -> None:
    assert ended[name].failed == "compile error", ended[name]
    assert "root:" not in ended[name].message and "PATH=" not in ended[name].message


@pytest.mark.parametrize("name", cheats.END_CLEARLY)
def test_a_nuisance_ends(name: str, ended: dict[str, Ended]) -> None:
    assert "crashed" not in ended[name].message, ended[name]


def test_one_wrong_element_is_found_at_each_place() -> None:
    script = "tests/gpu/wrong_elements.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    print("\n" + done.stdout)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
