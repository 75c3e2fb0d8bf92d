"""What host code may try where there is no GPU: its answer is data, and is judged."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.lab_checks import check_all
from tests.labs.simulated.sample_lab import write_lab
from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load
from warpbook_labs.results.check import CheckResult

SEED = 81_503


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LoadedLab:
    return load(write_lab(tmp_path_factory.mktemp("lab"), "simulated"))


def checked(lab: LoadedLab, source: str) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, SEED)
    return check_all(lab, source, cases)


IDLE = """
def prepare(n):
    pass

def run(state, x, y, factor, out):
    pass
"""
FORGED = """
import sys, os, msgspec
from warpbook_labs.engines.simulated import messages
from warpbook_labs.engines.simulated.program import BeginCall, Program
from __main__ import Answer

written = msgspec.msgpack.encode

def told(left):
    answer = Answer("namespaces", True, messages.HostRuns((left,) * {cases}))
    os.write(1, msgspec.msgpack.encode(answer))
    os._exit(0)
"""
#: what it says of every case
LEFT = {
    "that all went well": "messages.CaseRun()",
    "what buffers hold": "messages.CaseRun(({'out': bytes(40), 'y': bytes(80)},) * 2)",
    "that nothing was asked": "messages.CaseRun(program=written(Program({}, ())))",
    "that each call was made": (
        "messages.CaseRun(program=written(Program({}, (BeginCall(0),) * 2)))"
    ),
    "a program of nonsense": "messages.CaseRun(program=b'nonsense')",
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
        "from warpbook_labs.engines.simulated.pytorch import session\n"
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
    assert "warpbook_labs.engines.simulated.pytorch.session" in there
    for secret in (
        "cases.comparison",
        "cases.preparation",
        "engines.simulated.preparation",
        "lab.loader",
        "lab.spec",
    ):
        assert find_spec(f"warpbook_labs.{secret}")
        assert f"warpbook_labs.{secret}" not in there
    assert not [name for name in there if "lab_scaled" in name]
    files = "\n\ndef prepare(n):\n    print(open('/proc/self/maps').read())\n"
    result = checked(lab, IDLE + files)
    assert "PermissionError" in result.cases[0].message


#: useless work beside a program that does one thing after another
SERIAL_BESIDE_A_SLEEP = """
import torch
from given import work


def prepare(chunks, rows, width):
    made = [torch.empty(rows, width, device="cuda") for _ in range(2)]
    return *made, torch.cuda.Stream()


def run(state, source, weights, out):
    arrived, computed, side = state
    rows = arrived.shape[0]
    with torch.cuda.stream(side):
        torch.cuda._sleep(10**9)
    for at in range(0, source.shape[0], rows):
        arrived.copy_(source[at : at + rows], non_blocking=True)
        work(arrived, weights, computed)
        out[at : at + rows].copy_(computed, non_blocking=True)
"""
#: the first call captures a graph with room for every chunk; the second replays it
ROOM_IN_A_GRAPH = """
import torch
from given import work


def prepare(chunks, rows, width):
    # else the first matrix product would be in the capture
    square = torch.ones(8, 8, device="cuda")
    work(square, square, torch.empty_like(square))
    return {"rows": rows}


def run(state, source, weights, out):
    if "graph" not in state:
        state["graph"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(state["graph"]):
            rows = state["rows"]
            there = [torch.empty_like(source[:rows], device="cuda")
                     for _ in range(2 * len(source) // rows)]
            pieces = zip(there[::2], there[1::2], source.split(rows), out.split(rows))
            for arrived, computed, chunk, result in pieces:
                arrived.copy_(chunk, non_blocking=True)
                work(arrived, weights, computed)
                result.copy_(computed, non_blocking=True)
    state["graph"].replay()
"""


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SERIAL_BESIDE_A_SLEEP, "the ideal time"),
        (ROOM_IN_A_GRAPH, "The GPU has room for three chunks on their way in"),
    ],
)
def test_what_a_lab_bounds_is_not_hidden_elsewhere(source: str, words: str) -> None:
    overlap = load(CATALOGUE / "streams" / "copy_compute_overlap")
    # seven small chunks, and six large ones
    few = public_cases(overlap.lab)[:2]
    for case in check_all(overlap, source, few).cases:
        assert words in case.message


#: 64 GiB of margin around images that were never there
FORGED_CONVOLUTION = """
import sys, torch

def prepare(n):
    engine = "warpbook_labs.engines.simulated"
    known = sys.modules[f"{engine}.judging.calls.operations"].OPERATIONS
    known["conv2d"] = type(known["conv2d"])(lambda *a: None)

def run(state, x, y, factor, out):
    images = torch.zeros(1024, 1024, 1, 1, device="cuda")
    filters = torch.zeros(1, 1024, 1, 1, device="cuda")
    torch.nn.functional.conv2d(images, filters, padding=64, stride=64)
"""


def test_memory_that_only_the_judge_would_take_is_refused(lab: LoadedLab) -> None:
    result = checked(lab, FORGED_CONVOLUTION)
    assert result.status == "failed" and result.right == 0
    assert "conv2d takes more memory than is simulated" in result.cases[0].message
