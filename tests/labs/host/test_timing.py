"""Timed units with real children, and what becomes of work that is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.labs.host.several import Again
from tests.labs.host.small_lab import RIGHT, failures, heard, write_lab
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.host.child_handle import CantBegin, ChildHandle
from warpbook_labs.engines.host.harness import Harness, TooLarge
from warpbook_labs.engines.host.memory import laid_out, largest
from warpbook_labs.engines.host.messages import Command, Failed
from warpbook_labs.engines.host.regions import HostRegion
from warpbook_labs.engines.host.timing import Disturbed
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.gpu.jobs import TIMED_CALLS, Tried, Trying
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.gpu.speed import WrongOutput
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Parameter


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LoadedLab:
    return write_lab(tmp_path_factory.mktemp("labs"))


@pytest.fixture(scope="module")
def shared(lab: LoadedLab) -> Iterator[Again]:
    """One referee for all, since its children start slowly."""
    made = Again(lab, is_timed=True)
    yield made
    made.close()


@pytest.fixture
def session(shared: Again) -> Again:
    """With right sources on both sides."""
    assert shared.load(RIGHT) == ""
    assert shared.load(RIGHT, "baseline") == ""
    return shared


SIDES: tuple[Side, ...] = ("learner", "baseline")
#: of the units in which nothing is called
EMPTY = [True] * 9


def as_told(
    monkeypatch: pytest.MonkeyPatch, is_quiet: Callable[[Harness], bool]
) -> None:
    """Have the probe, which needs a GPU, say this."""
    monkeypatch.setattr(Harness, "is_quiet", is_quiet)


def test_a_pair_after_which_something_runs_is_done_again(
    session: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    # two units in which nothing is called, and then two pairs
    answers = iter([False] * 2 + EMPTY + [False] * 3)
    as_told(monkeypatch, lambda harness: next(answers, True))
    timed = session.timed()
    assert timed.result.calls == 8 and timed.result.status != "not graded"
    assert next(answers, None) is None


@pytest.mark.parametrize("empty", [[], EMPTY], ids=["from the begin", "later"])
def test_work_that_ends_with_the_learner_is_the_learners(
    session: Again, monkeypatch: pytest.MonkeyPatch, empty: list[bool]
) -> None:
    answers = iter(empty)
    as_told(
        monkeypatch,
        lambda harness: next(answers, False) or "learner" not in harness.children,
    )
    with pytest.raises(WrongOutput) as caught:
        session.timed()
    assert caught.value.kind == "goes on"
    assert "works on the GPU after `prepare` or `run` has returned" in str(caught.value)


def test_work_that_goes_on_without_the_learner_is_somebody_elses(
    session: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_told(monkeypatch, lambda harness: False)
    with pytest.raises(Disturbed, match="Another program"):
        session.timed()


def test_work_that_comes_and_goes_is_nobodys_fault(
    session: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so a right source was blamed on a host whose cores were all busy
    voids, pair = 5, 2
    answers = iter(EMPTY + [False] * voids * pair + [False, False, True])
    as_told(monkeypatch, lambda harness: next(answers, True))
    with pytest.raises(Disturbed, match="not at rest"):
        session.timed()


def test_work_that_comes_again_without_the_learner_is_not_the_learners(
    session: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = iter([False, True, True, False])

    def is_quiet(harness: Harness) -> bool:
        return "learner" not in harness.children and next(after, True)

    as_told(monkeypatch, is_quiet)
    with pytest.raises(Disturbed, match="not at rest"):
        session.timed()


def test_the_probe_knows_what_is_quiet_before_a_source_is_loaded(
    shared: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    ask = ChildHandle.ask

    def ask_child(child: ChildHandle, command: Command, patience_s: float) -> None:
        order.append(type(command).__name__)
        ask(child, command, patience_s)

    monkeypatch.setattr(ChildHandle, "ask", ask_child)
    monkeypatch.setattr(Harness, "look_when_quiet", lambda _: order.append("looked"))
    shared.drop()
    assert shared.start() == ""
    assert order[0] == "looked" and set(order[1:]) == {"Load"}


def test_a_wrong_baseline_is_no_fault_of_the_learners(session: Again) -> None:
    wrong = RIGHT + "\n    if len(x) > 100000: raise ValueError('enough')\n"
    assert session.load(wrong, "baseline") == ""
    with pytest.raises(DriverError, match=r"The lab's baseline fails: .*enough"):
        session.timed()


def test_both_wrong_in_the_same_way_is_seen_by_the_labs_own_python(
    session: Again,
) -> None:
    wrong = RIGHT + "\n    if len(x) > 100000: out[5] += 1\n"
    assert session.load(wrong) == session.load(wrong, "baseline") == ""
    with pytest.raises(WrongOutput, match=r"In a timed call out\[5\] is"):
        session.timed()


def test_what_is_a_little_off_is_wrong_where_nothing_is_allowed(session: Again) -> None:
    off = RIGHT + "\n    out.add_(0.25)\n"
    assert session.load(off) == ""
    with pytest.raises(WrongOutput, match="of 200,000 elements are"):
        session.timed()


def test_it_is_timed_when_nothing_else_needs_the_cpu(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = public_cases(lab.lab)
    told: list[object] = []
    has_tried, is_timed = threading.Event(), threading.Event()
    decode = parent._decode

    def noted(line: bytes) -> object:
        told.append(message := decode(line))
        if sum(isinstance(one, Tried) for one in told) == len(cases):
            has_tried.set()
        if isinstance(message, Trying) and message.step == TIMED_CALLS:
            is_timed.set()
        return message

    def until() -> None:
        assert has_tried.wait(100.0)
        # it would come at once
        told.append(is_timed.wait(1.0))

    monkeypatch.setattr(parent, "_decode", noted)
    done = heard(lab, RIGHT, cases=cases, until=until)
    assert True not in told and False in told and failures(done) == []
    assert done.timed is not None and is_timed.is_set()


def test_where_nothing_is_shared_copies_are_made_and_taken_off(lab: LoadedLab) -> None:
    done = heard(lab, RIGHT, is_staged=True)
    assert failures(done) == []
    assert done.began is not None and "copied from and to" in done.began.isolation
    assert done.timed is not None and done.timed.result.checked_on_host == 1
    assert done.timed.until_ns > done.timed.since_ns > 0


def test_it_is_begun_again_in_worse_ways_and_tells_why(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, refused = (
        ChildHandle.begin,
        Failed("no sharing", "cuIpcOpenMemHandle: NO_WAY"),
    )
    ways: list[tuple[str, bool]] = []

    def begun(child: ChildHandle) -> str:
        ways.append((made.harness.transport, made._is_early))
        if made.harness.transport == "shared":
            raise CantBegin(refused)
        return begin(child)

    monkeypatch.setattr(ChildHandle, "begin", begun)
    made = Again(lab, is_timed=False)
    try:
        # a child begins here
        assert made.load(RIGHT) == ""
        assert ways == [("shared", True), ("shared", False), ("staged", True)]
        words = made.began().isolation
        assert "copied from and to" in words and "again: cuIpcOpenMemHandle" in words
    finally:
        made.close()


def test_what_is_written_lies_side_by_side() -> None:
    x = Parameter("x", "input", "float32", ("n",))
    out = Parameter("out", "output", "float64", ("n",))
    layout = laid_out([x, out], {"n": 5000}, sets=3)
    inputs = [slot.offset for slot in layout.read]
    outputs = [slot.offset + slot.size_bytes for slot in layout.written]
    assert max(outputs) <= min(inputs)
    assert [slot.number for slot in layout.slots] == [0, 1, 2, 0, 1, 2]
    ends = [0, *(slot.offset + slot.size_bytes for slot in layout.slots)]
    assert all(
        end <= slot.offset for end, slot in zip(ends, layout.slots, strict=False)
    )


def test_where_only_timed_buffers_do_not_fit_the_cases_are_run(
    tmp_path: Path,
) -> None:
    large = write_lab(tmp_path, n=1 << 40)
    done = heard(large, RIGHT)
    assert failures(done) == [] and len(done.tried) == 3
    assert done.timed is not None and done.timed.result.status == "not graded"
    assert "are free" in done.timed.result.message


def test_buffers_that_do_not_fit_are_refused_in_words() -> None:
    layout = laid_out([Parameter("x", "input", "float64", ("n",))], {"n": 1 << 40})
    with pytest.raises(TooLarge, match="are free"):
        Harness(None, largest(layout), {}, {}, is_staged=False, sides=SIDES)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_one_wrong_element_is_found_at_each_place(dtype: str) -> None:
    out = Parameter("out", "output", dtype, ("n",), "host")  # type: ignore[arg-type]
    layout = laid_out([out], {"n": 70})
    (slot,) = layout.slots
    region = HostRegion("host", layout.size_bytes["host"], {}, SIDES)
    region.own()
    right = np.arange(1, 71).astype(dtype)
    region.write(slot, right, "baseline")
    region.write(slot, right, "learner")
    region.keep([slot], "baseline")
    region.keep([slot], "learner")
    assert region.wrong(slot, 0.0) == ""
    for at in range(70):
        got = right.copy()
        got[at] += 1
        region.write(slot, got, "learner")
        region.keep([slot], "learner")
        assert f"out[{at}] is wrong in a timed call, and 1 of 70" in (
            region.wrong(slot, 0.0)
        )


def test_poison_that_is_left_is_found_at_each_place() -> None:
    out = Parameter("out", "output", "float32", ("n",), "host")
    layout = laid_out([out], {"n": 50})
    (slot,) = layout.slots
    region = HostRegion("host", layout.size_bytes["host"], {}, SIDES)
    region.poison(slot, "learner")
    before = region.read(slot, "learner")
    assert np.isnan(before).all()
    for at in range(50):
        got = np.ones(50, np.float32)
        got[at] = before[at]
        region.write(slot, got, "learner")
        assert region.first_unwritten(slot, region.read(slot, "learner")) == 4 * at
