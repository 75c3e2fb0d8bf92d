"""What host code may try where there is no GPU: its answer is data, and is judged."""

from __future__ import annotations

import pytest

from tests.labs.host.sample_lab import write_lab
from warpbook_labs.checking import check_all
from warpbook_labs.drawing import hidden_cases, public_cases
from warpbook_labs.jail.limits import Limits
from warpbook_labs.loader import LoadedLab, load
from warpbook_labs.results import CheckResult

SEED = 81_503


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LoadedLab:
    return load(write_lab(tmp_path_factory.mktemp("lab"), "simulated"))


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, SEED)
    return check_all(lab, source, cases, Limits())


IDLE = """
def prepare(n):
    pass

def run(state, x, y, factor, out):
    pass
"""
FORGED = """
import sys, os, msgspec
from warpbook_labs.host import messages
from __main__ import Answer

def told(left):
    answer = Answer("namespaces", True, messages.HostRan((left,) * {cases}))
    os.write(1, msgspec.msgpack.encode(answer))
    os._exit(0)
"""
#: what it says of every case
LEFT = {
    "that all went well": "messages.Left()",
    "what buffers hold": "messages.Left(({'out': bytes(40), 'y': bytes(80)},) * 2)",
    "that nothing was asked": ("messages.Left(program=messages.Program({}, ()))"),
    "that each call was made": (
        "messages.Left(program=messages.Program({}, "
        "(sys.modules['warpbook_labs.simulated.program'].BeginCall(0),) * 2))"
    ),
}


@pytest.mark.parametrize("what", LEFT)
def test_an_answer_that_it_writes_itself_is_no_right_one(
    what: str, lab: LoadedLab
) -> None:
    cases = len(public_cases(lab.lab)) + len(hidden_cases(lab.lab, SEED))
    source = FORGED.replace("{cases}", str(cases)) + f"told({LEFT[what]})\n" + IDLE
    result = checked(lab, source)
    assert result.status == "failed" and result.right == 0
    assert len(result.cases) == cases


MEDDLING = {
    "the comparison": "import numpy; numpy.array_equal = lambda *a: True",
    "NumPy's comparison": "import numpy; numpy.flatnonzero = lambda *a: []",
    "the encoder": "import msgspec; msgspec.msgpack.encode = lambda *a: b'\\xc3'",
    "the worker": "import __main__; __main__.Answer = None",
    "what is recorded": (
        "from warpbook_labs.simulated.recording import session\n"
        "session.Session.program = lambda self: None"
    ),
    "an early end": "import os; os._exit(0)",
    "the end of all": "raise SystemExit(0)",
    "the clock": "import time; time.monotonic = lambda: 0.0",
    "a frame further up": (
        "import sys\nframe = sys._getframe()\n"
        "while frame: frame.f_globals['passed'] = True; frame = frame.f_back"
    ),
}


@pytest.mark.parametrize("what", MEDDLING)
def test_what_it_does_to_its_own_process_makes_nothing_right(
    what: str, lab: LoadedLab
) -> None:
    result = checked(lab, MEDDLING[what] + "\n" + IDLE)
    assert result.status != "passed" and result.right == 0


def test_nothing_that_knows_what_is_right_is_in_its_process(lab: LoadedLab) -> None:
    words = "print(*(each for each in sys.modules if 'warpbook' in each))"
    look = "import sys\n" + IDLE.replace("pass\n\ndef", f"{words}\n\ndef")
    result = checked(lab, look)
    there = set(result.cases[0].printed.split())
    assert "warpbook_labs.simulated.recording.session" in there
    for secret in ("loader", "preparing", "comparing", "spec", "host.preparing"):
        assert f"warpbook_labs.{secret}" not in there
    assert not [each for each in there if "judging" in each or "lab_scaled" in each]
    files = "\n\ndef prepare(n):\n    print(open('/proc/self/maps').read())\n"
    result = checked(lab, IDLE + files)
    assert "PermissionError" in result.cases[0].message
