"""Timed units with real children, and what becomes of work that is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.labs.referee.small_lab import BOUNDS, RIGHT, failures, heard, write_lab
from warpbook_labs.device.timing import WrongOutput
from warpbook_labs.drawing import public_cases
from warpbook_labs.loader import LoadedLab
from warpbook_labs.referee.court import Court, TooLarge
from warpbook_labs.referee.jobs import AskedOfHost
from warpbook_labs.referee.layout import laid_out, largest
from warpbook_labs.referee.regions import HostRegion
from warpbook_labs.referee.sitting import Sitting
from warpbook_labs.referee.timing import Disturbed
from warpbook_labs.spec import Parameter


@pytest.fixture
def lab(tmp_path: Path) -> LoadedLab:
    return write_lab(tmp_path)


@contextmanager
def sitting(lab: LoadedLab, source: str = RIGHT) -> Iterator[Sitting]:
    asked = AskedOfHost(
        str(lab.folder),
        source,
        b"",
        tuple(public_cases(lab.lab)[:1]),
        is_timed=True,
        has_gpu=False,
        bounds=BOUNDS,
        least_pairs=4,
        most_pairs=4,
    )
    made = Sitting(asked, lab, None)
    try:
        assert made.start() == ""
        yield made
    finally:
        made.close()


def as_told(monkeypatch: pytest.MonkeyPatch, is_quiet: Callable[[Court], bool]) -> None:
    """Have the probe, which needs a GPU, say this."""
    monkeypatch.setattr(Court, "is_quiet", is_quiet)


def test_a_pair_after_which_something_runs_is_done_again(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([False] * 3)
    as_told(monkeypatch, lambda court: next(told, True))
    with sitting(lab) as made:
        timed = made.timed()
    assert timed.result.calls == 4 and timed.result.status != "not graded"
    assert next(told, None) is None


def test_work_that_ends_with_the_learner_is_the_learners(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_told(monkeypatch, lambda court: "learner" not in court.players)
    with sitting(lab) as made, pytest.raises(WrongOutput) as caught:
        made.timed()
    assert caught.value.kind == "goes on"
    assert "works on the GPU after `run` has returned" in str(caught.value)


def test_work_that_goes_on_without_the_learner_is_somebody_elses(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_told(monkeypatch, lambda court: False)
    with sitting(lab) as made, pytest.raises(Disturbed, match="Another program"):
        made.timed()


def test_a_wrong_baseline_is_no_fault_of_the_learners(lab: LoadedLab) -> None:
    (lab.folder / "reference.py").write_text(
        RIGHT + "\n    if n_of(x) > 100000: raise ValueError('enough')\n"
        "\ndef n_of(x):\n    return len(x)\n"
    )
    done = heard(lab, RIGHT)
    assert all(each.result.passed for each in done.tried)
    assert done.timed is None and done.ended is not None
    assert done.ended.how == "problem"
    assert "The lab's baseline fails" in done.ended.message


def test_both_wrong_in_the_same_way_is_seen_by_the_labs_own_python(
    lab: LoadedLab,
) -> None:
    wrong = RIGHT + "\n    if len(x) > 100000: out[5] += 1\n"
    (lab.folder / "reference.py").write_text(wrong)
    done = heard(lab, wrong)
    assert "In a timed call out[5] is" in failures(done)[0]


@pytest.mark.parametrize("is_staged", [False, True])
def test_what_is_right_is_timed_in_every_place(lab: LoadedLab, is_staged: bool) -> None:
    done = heard(lab, RIGHT, is_staged=is_staged)
    assert failures(done) == []
    assert done.timed is not None and done.timed.result.checked_on_host == 1
    assert done.timed.until_ns > done.timed.since_ns > 0


def test_buffers_that_do_not_fit_are_refused_in_words() -> None:
    layout = laid_out([Parameter("x", "input", "float64", ("n",))], {"n": 1 << 40})
    with pytest.raises(TooLarge, match="are free"):
        Court(None, largest(layout), {}, {}, is_staged=False)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_one_wrong_element_is_found_at_each_place(dtype: str) -> None:
    out = Parameter("out", "output", dtype, ("n",), "host")  # type: ignore[arg-type]
    layout = laid_out([out], {"n": 70})
    (slot,) = layout.slots
    region = HostRegion("host", layout.size_bytes["host"], {})
    region.own()
    right = np.arange(1, 71).astype(dtype)
    region.write(slot, right)
    region.keep(slot, "baseline")
    region.keep(slot, "learner")
    assert region.wrong(slot, 0.0) == ""
    for at in range(70):
        got = right.copy()
        got[at] += 1
        region.write(slot, got)
        region.keep(slot, "learner")
        assert f"out[{at}] is wrong in a timed call, and 1 of 70" in (
            region.wrong(slot, 0.0)
        )


def test_poison_that_is_left_is_found_at_each_place() -> None:
    out = Parameter("out", "output", "float32", ("n",), "host")
    layout = laid_out([out], {"n": 50})
    (slot,) = layout.slots
    region = HostRegion("host", layout.size_bytes["host"], {})
    region.poison(slot)
    before = region.read(slot)
    assert np.isnan(before).all()
    for at in range(50):
        got = np.ones(50, np.float32)
        got[at] = before[at]
        region.write(slot, got)
        assert region.first_unwritten(slot, region.read(slot)) == 4 * at


def test_a_lab_without_speed_is_not_timed(lab: LoadedLab) -> None:
    with pytest.raises(ValueError, match="no speed"):
        asked = AskedOfHost(
            str(lab.folder),
            RIGHT,
            b"",
            tuple(public_cases(lab.lab)[:1]),
            has_gpu=False,
        )
        Sitting(asked, lab, None).timed()
