"""Children of the referee: how they are asked, stopped, shut in, and lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.labs.host.small_lab import BOUNDS, RIGHT, heard, write_lab
from tests.programs import wait_for
from warpbook_labs.cases.sampling import hidden_cases
from warpbook_labs.engines.host.child_handle import Lost, Raised
from warpbook_labs.engines.host.harness import Harness, TookBack
from warpbook_labs.engines.host.memory import Layout, laid_out, largest
from warpbook_labs.engines.host.messages import Load, Prepare
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.lab.spec import Parameter
from warpbook_labs.sandbox import gpu_confinement as confine

X = Parameter("x", "input", "float32", ("n",))
OUT = Parameter("out", "output", "float32", ("n",), "host")
N = 50_000


@pytest.fixture(scope="module")
def shared() -> Iterator[Harness]:
    """Memory for one set of `x` and `out`, and one learner for all."""
    layout = laid_out([X, OUT], {"n": N})
    made = Harness(None, largest(layout), {}, {}, is_staged=False, sides=("learner",))
    yield made
    made.close()


@pytest.fixture
def harness(shared: Harness) -> Harness:
    """With a learner that has begun."""
    if "learner" not in shared.children:
        shared.start("learner", (), BOUNDS, is_early=True)
        shared.children["learner"].begin()
    return shared


def lose(harness: Harness) -> None:
    """Have the next test begin with another process."""
    harness.children.pop("learner").close()


def begun(harness: Harness, source: str) -> Layout:
    child = harness.children["learner"]
    layout = laid_out([X, OUT], {"n": N})
    child.ask(Load(source, ""), 60)
    child.ask(Prepare({"n": N}, layout.slots), 60)
    child.stop()
    for region in harness.regions.values():
        region.own()
        region.load(layout.read, "learner")
    return layout


def out_of(harness: Harness, layout: Layout) -> np.ndarray:
    (slot,) = layout.written
    return harness.region(slot).read(slot, "learner")


COUNTS = """
import threading

def prepare(n):
    return None

def run(state, x, out):
    def count():
        while True:
            out.add_(1)
    threading.Thread(target=count, daemon=True).start()
"""


def test_all_threads_of_one_that_is_stopped_stand_still(harness: Harness) -> None:
    layout = begun(harness, COUNTS)
    child = harness.children["learner"]
    (slot,) = layout.written
    harness.region(slot).write(slot, np.zeros(N), "learner")
    child.ask(harness.next_run(1, {}), 60)
    wait_for("a count", lambda: out_of(harness, layout).max() > 0 or None)
    child.stop()
    before = out_of(harness, layout)
    time.sleep(0.05)
    assert np.array_equal(out_of(harness, layout), before)
    child.go_on()
    wait_for(
        "one that goes on",
        lambda: not np.array_equal(out_of(harness, layout), before) or None,
    )
    child.stop()
    lose(harness)


def test_one_that_is_over_cannot_be_stopped(harness: Harness) -> None:
    child = harness.children["learner"]
    os.kill(child.pid, signal.SIGKILL)
    how = os.WEXITED | os.WNOWAIT | os.WNOHANG
    wait_for("its end", lambda: os.waitid(os.P_PID, child.pid, how))
    with pytest.raises(Lost, match="ended by SIGKILL"):
        child.stop()
    lose(harness)


LATE = """
import threading, time

def prepare(n):
    return None

def run(state, x, out):
    def late():
        for i in range(n, 0, -1):
            out[i - 1] = i
    n = len(out)
    threading.Thread(target=late).start()
"""


def test_an_output_that_is_written_after_done_is_seen(harness: Harness) -> None:
    layout = begun(harness, LATE)
    (slot,) = layout.written
    side: Side = "learner"
    region = harness.region(slot)
    region.poison(slot, side)
    # either it is seen to change, or it is not there
    try:
        harness.timed(side, harness.next_run(1, {}), layout, 60)
    except TookBack:
        return
    kept = region.kept(slot, side)
    assert region.first_unwritten(slot, kept) is not None


def test_what_it_says_out_of_turn_is_not_heard_as_an_answer(harness: Harness) -> None:
    source = """
from warpbook_labs.engines.host.messages import Done, framed
import os

def prepare(n):
    pass

def run(state, x, out):
    for descriptor in range(3, 1024):
        try:
            os.write(descriptor, framed(Done(999)))
        except OSError:
            pass
"""
    begun(harness, source)
    child = harness.children["learner"]
    with pytest.raises(Lost, match="unexpected answer"):
        child.ask(harness.next_run(1, {}), 60)
    lose(harness)


def test_an_exception_is_told_with_its_line(harness: Harness) -> None:
    with pytest.raises(Raised, match=r"ZeroDivisionError: .*line 3 of solution.py"):
        begun(harness, "def prepare(n):\n    pass\n1 / 0\n")
    with pytest.raises(Raised, match=r"SyntaxError: .*line 2 of solution.py"):
        begun(harness, "def prepare(n):\n    return (\n")
    # and the process is still there
    begun(harness, "def prepare(n):\n    pass\n")


def test_a_child_that_is_killed_is_lost_with_words(harness: Harness) -> None:
    begun(harness, "def prepare(n):\n    pass\n")
    child = harness.children["learner"]
    child._process.kill()
    with pytest.raises(Lost, match="ended by SIGKILL"):
        child.ask(harness.next_run(1, {}), 60)
    lose(harness)


def test_how_well_it_is_shut_in_is_told_in_words() -> None:
    words = confine.isolation_words(files=True, network=True, calls=True)
    assert "opens no file but" in words and "no other process" in words
    assert "this system" not in words
    words = confine.isolation_words(files=False, network=False, calls=False)
    assert "bounded memory and time; this system can't close files" in words
    assert "network" not in words


def test_the_labs_lie_beside_what_may_be_read(tmp_path: Path) -> None:
    for name in ("open/a.py", "open/labs/secret.py", "open/labs/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    hidden = set(confine._but(tmp_path, [tmp_path / "open/labs/secret.py"]))
    assert hidden == {tmp_path / "open/a.py", tmp_path / "open/labs/b.py"}


def test_a_source_is_tried_on_when_its_process_was_lost(tmp_path: Path) -> None:

    loaded = write_lab(tmp_path)
    leaves = RIGHT.replace(
        "    out.copy_", "    if len(x) == 10: exit_()\n    out.copy_"
    )
    leaves = "import os\nexit_ = lambda: os._exit(7)\n" + leaves
    done = heard(loaded, leaves, is_timed=True)
    outcomes = [(tried.result.passed, tried.result.kind) for tried in done.tried]
    assert outcomes == [(False, "crash"), (True, ""), (True, "")]
    assert "exit code 7" in done.tried[0].result.message
    # not all is right
    assert done.timed is None and done.ended is not None


def test_of_a_hidden_case_a_source_can_tell_itself_nothing(tmp_path: Path) -> None:
    loaded = write_lab(tmp_path)
    says = """
import os, sys

def prepare(n):
    return n

def run(state, x, factor, out, whole):
    if state == 1:
        raise type("Secret_" + str(state), (Exception,), {})(x.tolist())
    if state == 257:
        sys.stderr.write("secret")
        os._exit(42)
    raise ValueError("secret", factor)
"""
    cases = hidden_cases(loaded.lab, 7)
    done = heard(loaded, says, is_timed=False, cases=cases)
    messages = {tried.result.message for tried in done.tried}
    assert messages == {
        "It raised an exception; details are shown for visible cases only.",
        "Its process ended before it was done.",
        "ValueError; details are shown for visible cases only.",
    }
