"""Submissions that try to cheat the lane of plans, each of which must get nowhere."""

from __future__ import annotations

import random
from importlib.util import find_spec

import msgspec
import pytest

from tests.lab_checks import check_plan
from warpbook_labs.course.session import find
from warpbook_labs.engines.answers.jobs import (
    Call,
    CallResults,
    FunctionCall,
    FunctionResult,
)
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import PLAN_LIMITS
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox import learner_code
from warpbook_labs.sandbox.parent import run
from warpbook_labs.sandbox.work import Limits

SEED = 471108150915
FUNCTIONS = ("flops", "least_bytes", "bound", "seconds", "times_faster")


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    return find("roofline")


def every(body: str, before: str = "") -> str:
    """Give all functions the same body."""
    lines = "\n    ".join(body.splitlines())
    return before + "".join(
        f"\ndef {name}(*given):\n    name = {name!r}\n    {lines}\n"
        for name in FUNCTIONS
    )


def words(result: CheckResult) -> str:
    return " ".join([result.message, *(case.message for case in result.cases)])


def test_honest_answers_pass_as_controls(lab: LoadedLab) -> None:
    assert check_plan(lab, lab.reference, SEED).status == "passed"
    [other] = [source for name, source in lab.correct.items() if "slower" in name]
    assert check_plan(lab, other, SEED).status == "passed"


#: what is returned, or how the process is left; none of it is an answer
RETURNED = {
    "an object that equals everything": """
class Right(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    def __abs__(self): return 0.0
    def __float__(self): return 1.0
return Right(1.0)""",
    "a text that equals everything": """
class Right(str):
    def __eq__(self, other): return True
    def __hash__(self): return hash("memory")
return Right("both")""",
    "NaN": "return float('nan')",
    "infinity": "return float('inf')",
    "True": "return True",
    "a list that holds all answers": "return ['memory', 'compute', 1.0]",
    "a list in a list in a list": """
deep = []
for _ in range(100_000): deep = [deep]
return deep""",
    "itself": """
me = []
me.append(me)
return me""",
    "a function": "return lambda: 1",
    "a module": "import math; return math",
    "an iterator without an end": "import itertools; return itertools.count()",
    "a number of 10^5 digits": "return 10 ** 100_000",
    "a megabyte": "return 'x' * (1 << 20)",
    "sys.exit(0)": "import sys; sys.exit(0)",
    "an exception that can't be told": """
class Odd(Exception):
    def __str__(self): raise Odd
raise Odd""",
    "an exception with a megabyte of words": "raise ValueError('x' * (1 << 20))",
    "an exception named as passed": """
class passed(BaseException): pass
raise passed('passed')""",
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_returned_is_judged_as_data(name: str, lab: LoadedLab) -> None:
    result = check_plan(lab, every(RETURNED[name].strip()), SEED)
    assert result.status in ("failed", "stopped", "timed out"), words(result)
    assert not any(case.passed for case in result.cases)
    assert len(words(result)) < 60_000


#: what is tried before any function is called
BEFORE = {
    "leaves at once": ("import os; os._exit(0)", "invalid message"),
    "leaves at the end": (
        "import atexit, sys; atexit.register(print, 'passed'); sys.exit(0)",
        "SystemExit",
    ),
    "ends itself": ("import os, signal; os.kill(os.getpid(), 9)", "PermissionError"),
    "aborts": ("import os; os.abort()", "crashed"),
    "writes an answer of its own and leaves": (
        "import os; os.write(1, b'\\x83'); os._exit(0)",
        "invalid message",
    ),
    "floods the answer": (
        "import os\nwhile True: os.write(1, b'x' * (1 << 20))",
        # a slow machine lets it write less than what is refused before its time is over
        "is larger than|Timed out|invalid message",
    ),
    "floods the errors": (
        "import os\nwhile True: os.write(2, b'x' * (1 << 20))",
        "Timed out",
    ),
    "reads a file": ("open('/etc/passwd')", "PermissionError|FileNotFoundError"),
    "looks for the lab's files": (
        "import os; os.listdir('/')",
        "PermissionError|FileNotFoundError",
    ),
    "asks the network": (
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "PermissionError|ModuleNotFoundError|OSError|gaierror",
    ),
    "starts a process": (
        "import os; os.fork()",
        "BlockingIOError|PermissionError|OSError",
    ),
    "starts a thread": (
        "import _thread; _thread.start_new_thread(print, ())",
        "RuntimeError|can't start",
    ),
    "loops": ("while True: pass", "Timed out after 1 s"),
    "catches what would end it": (
        "while True:\n try:\n  while True: pass\n except BaseException: pass",
        "Timed out after",
    ),
    "counts in one step": ("x = 3 ** 10 ** 9", "Timed out"),
    "takes all memory": ("x = bytearray(1 << 40)", "memory|MemoryError"),
    "takes memory piece by piece": (
        "x = []\nwhile True: x.append(bytearray(1 << 24))",
        "memory|MemoryError|Timed out",
    ),
    "recurses": ("def f(): f()\nf()", "RecursionError"),
    "imports the judge": (
        "import warpbook_labs.lab.python.questions",
        "ModuleNotFoundError|PermissionError",
    ),
    "imports the calculator": (
        "from warpbook_profiler.facts.flops import model",
        "ModuleNotFoundError|PermissionError",
    ),
    "calls the machine's own code": (
        "import ctypes; ctypes.CDLL(None).system(b'true'); raise SystemExit(7)",
        "SystemExit: 7|PermissionError|ModuleNotFoundError|crashed|Timed out",
    ),
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_is_tried_when_it_is_loaded_ends_with_a_reason(
    name: str, lab: LoadedLab
) -> None:
    before, why = BEFORE[name]
    tight = Limits(processor_s=4, memory_bytes=1 << 30)
    result = check_plan(lab, before + "\n" + lab.reference, SEED, tight)
    assert result.status in ("stopped", "timed out", "compile error")
    assert any(words_wanted in result.message for words_wanted in why.split("|")), (
        result.message
    )


def test_the_judge_its_answers_and_the_seed_are_not_in_the_process(
    lab: LoadedLab,
) -> None:
    """Whatever Python can reach there is searched; only questions are found."""
    search = every(
        f"""
import gc, sys
if SEEN:
    raise ValueError(SEEN[0])  # SECRETS
names = sorted(sys.modules)
held = [str(each) for each in gc.get_objects() if isinstance(each, (list, dict))]
found = [word for word in ("judge", "expected", "{SEED}", "_near_the_ridge")
         if any(word in text for text in held if "SECRETS" not in text)]
bad = [each for each in names if each.startswith("warpbook")]
SEEN.append(f"FOUND {{found}} IN {{bad}}")
raise ValueError(SEEN[0])  # SECRETS
""",
        before="SEEN = []\n",
    )
    result = check_plan(lab, search)
    message = result.cases[0].message
    for secret in (
        "warpbook_labs.engines.answers.checking",
        "warpbook_labs.lab.loader",
        "warpbook_labs.lab.python.questions",
        "warpbook_profiler.facts.occupancy",
        "warpbook_profiler.facts.flops",
    ):
        assert find_spec(secret)
        assert f"{secret}'" not in message
    assert "FOUND" in message and str(SEED) not in message and "_near" not in message


MEDDLING = {
    "msgspec's encoder": "import msgspec; msgspec.msgpack.encode = lambda *a: b'\\xc3'",
    "msgspec's class": "import msgspec; msgspec.msgpack.Encoder = None",
    "json": "import json; json.dumps = lambda *a: 'passed'",
    "the module that calls": (
        "import sys; "
        "sys.modules['warpbook_labs.engines.answers.calling']._answer = print"
    ),
    "the worker": "import __main__; __main__.Answer = None",
    "what is built in": "import builtins; builtins.isinstance = lambda *a: True",
    "the clock": "import time; time.monotonic = lambda: 0.0",
    "a frame further up": (
        "import sys\nframe = sys._getframe()\n"
        "while frame: frame.f_globals['passed'] = True; frame = frame.f_back"
    ),
}


@pytest.mark.parametrize("what", MEDDLING)
def test_meddling_with_the_process_makes_no_wrong_answer_right(
    what: str, lab: LoadedLab
) -> None:
    [wrong] = [source for name, source in lab.wrong.items() if "links" in name]
    tight = Limits(processor_s=4, asleep_s=6.0, memory_bytes=1 << 30)
    result = check_plan(lab, f"{MEDDLING[what]}\n{wrong}", SEED, tight)
    assert result.status != "passed"


def test_a_forged_answer_is_no_more_than_answers(lab: LoadedLab) -> None:
    """The process's whole output is forged: still only data that is judged."""
    count = len(lab.cases.questions(random.Random(0)))
    one = msgspec.msgpack.encode(1.0)
    for answers in (
        [FunctionResult(one)] * count,
        [FunctionResult(one)] * (count - 1),
        [FunctionResult(b"\x91" * 20_000), *[FunctionResult(one)] * (count - 1)],
        [FunctionResult(b"")] * count,
        [FunctionResult(b"\x81\x91\x01\x01")] * count,
        [],
    ):
        forged_answer = {
            "tier": "namespaces",
            "is_filtered": True,
            "result": CallResults(tuple(answers)),
        }
        forged = msgspec.msgpack.encode(forged_answer)
        source = f"import os\nos.write(1, {forged!r})\nos._exit(0)\n"
        result = check_plan(lab, source + lab.reference)
        assert result.status in ("failed", "stopped", "timed out")
        assert not any(case.passed for case in result.cases)


def test_an_answer_that_is_nested_without_end_is_refused(lab: LoadedLab) -> None:
    source = (
        "import os\n"
        "os.write(1, b'\\x81\\xa1z' + b'\\x91' * 3_000_000 + b'\\x01')\n"
        "os._exit(0)\n"
    )
    result = check_plan(lab, source)
    assert (result.status, result.of) == ("stopped", 0)


def test_what_is_printed_is_bounded_and_of_hidden_questions_not_told(
    lab: LoadedLab,
) -> None:
    loud = every("print('x' * 10**6)\nprint(given)\nreturn 1.0")
    result = check_plan(lab, loud, SEED)
    assert all(len(case.printed) <= 4_000 for case in result.cases)
    assert not any(case.printed for case in result.cases if case.is_hidden)


def test_hidden_questions_differ_from_those_shown_and_from_each_other(
    lab: LoadedLab,
) -> None:
    """So answers learned by heart are worth nothing."""
    keep = f"""
import json
{lab.reference}
"""
    shown = check_plan(lab, keep)
    assert shown.status == "passed"
    answers = {}
    space: dict[str, object] = {}
    exec(lab.reference, space)
    for question in lab.cases.questions(random.Random(lab.lab.plan.seed)):  # type: ignore[union-attr]
        right = space[question.function](**question.arguments)  # type: ignore[operator]
        answers[str(tuple(question.arguments.values()))] = right
    by_heart = every("return ANSWERS.get(str(given), 1.0)", f"ANSWERS = {answers!r}\n")
    assert check_plan(lab, by_heart).right > 0
    result = check_plan(lab, by_heart, SEED)
    assert result.status == "failed"


def test_a_call_has_no_more_than_its_own_second(lab: LoadedLab) -> None:
    slow = "import time\ndef f(x):\n    while True: pass\ndef g(x): return x\n"
    calls = (FunctionCall("f", (1,)), FunctionCall("g", (2,)))
    outcome = run(Call(slow, calls, 0.3), PLAN_LIMITS)
    assert isinstance(outcome.result, CallResults)
    first, second = outcome.result.answers
    assert (first.line, first.data) == (
        3,
        b"",
    ) and "Timed out after 0.3 s" in first.problem
    assert msgspec.msgpack.decode(second.data) == 2
    assert set(learner_code.MODULES) >= {"math", "fractions", "itertools"}
