"""Cases and timed calls, with kernels that try what kernels can; on a fake GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.labs.gpu.fake_gpu import LEARNER, FakeGpu
from warpbook_labs.cases.preparation import Prepared
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.course.session import find
from warpbook_labs.engines.kernels import buffers
from warpbook_labs.engines.kernels import speed as speeds
from warpbook_labs.engines.kernels.correctness import try_case
from warpbook_labs.engines.kernels.inputs import TimedInputs
from warpbook_labs.engines.kernels.side import Source
from warpbook_labs.engines.kernels.speed import sampled
from warpbook_labs.gpu import tools
from warpbook_labs.gpu.errors import BadArguments
from warpbook_labs.gpu.ratio import Stopping
from warpbook_labs.gpu.speed import WrongOutput, drawn_of_look
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.lab.launch_rule import read_rule
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.device import DeviceCase
from warpbook_labs.results.measurements import LimitCard

N = 5000
#: 12 * N bytes take 100 us
CARD = LimitCard("fake", "GPU-1", None, 0.0, 12 * N / 100e-6, 1e9, 1e9, 1000.0)


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    vector_add = find("vector-add")
    speed = vector_add.lab.speed
    assert speed is not None
    small = msgspec.structs.replace(speed, sizes={"n": N})
    changed = msgspec.structs.replace(vector_add.lab, speed=small)
    return LoadedLab(**{**vars(vector_add), "lab": changed})


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few pairs, arenas that NumPy fills at once, and nothing compiled for the fake."""
    monkeypatch.setattr(speeds, "Stopping", lambda: Stopping(8, 16))
    monkeypatch.setattr(buffers, "_GRAIN_BYTES", 32 << 10)
    monkeypatch.setattr(buffers, "_ZONE_BYTES", 4 << 10)
    monkeypatch.setattr(buffers, "_MORE_ZONES", 4)
    monkeypatch.setattr(tools, "kept_program", lambda *_: b"")
    monkeypatch.setattr(speeds, "kept", lambda *_: b"")


def inputs(lab: LoadedLab) -> TimedInputs:
    assert lab.lab.speed is not None
    return TimedInputs(lab, lab.lab.speed)


def add(gpu: FakeGpu, given: list[Any]) -> None:
    """Do what the lab asks."""
    x, y, out, n = given
    with np.errstate(invalid="ignore", over="ignore"):
        total = gpu.view(x, n, np.float32) + gpu.view(y, n, np.float32)
    gpu.view(out, n, np.float32)[:] = np.where(total < 0, np.float32(0), total)


def tried(lab: LoadedLab, kernel: Any, case: DrawnCase) -> DeviceCase:
    gpu: Any = FakeGpu(kernel, add)
    prepared = Prepared(lab, read_rule(lab.reference), case)
    return try_case(Tools(gpu), lab, LEARNER, case, lambda: prepared)


def timed(lab: LoadedLab, kernel: Any, **takes_ns: float) -> speeds.Timed:
    gpu: Any = FakeGpu(kernel, add)
    for name, value in takes_ns.items():
        setattr(gpu, name, value)
    source = Source(read_rule(lab.reference), LEARNER)
    return speeds.time_calls(Tools(gpu), lab, source, CARD, inputs(lab))[0]


class Refusing(FakeGpu):
    """Can't launch the learner's program, or only that one."""

    def __init__(self, refuses_learner: bool) -> None:
        super().__init__(add, add)
        self._refuses_learner = refuses_learner

    def prepare(self, program: Any, *given: Any) -> Any:
        is_learner = program.image == LEARNER
        if not program.is_trusted and is_learner == self._refuses_learner:
            raise BadArguments("no such launch")
        return super().prepare(program, *given)


def test_scratch_that_is_too_large_with_the_timed_sizes_fails_with_words(
    lab: LoadedLab,
) -> None:
    gpu: Any = FakeGpu(add, add)
    rule = read_rule(f"// scratch: more int32[n * 2000]\n{lab.reference}")
    with pytest.raises(WrongOutput, match="sizes that are timed: Scratch memory more"):
        speeds.time_calls(Tools(gpu), lab, Source(rule, LEARNER), CARD, inputs(lab))


def test_a_launch_that_fails_when_timed_is_the_learners_fault_or_the_labs(
    lab: LoadedLab,
) -> None:
    source = Source(read_rule(lab.reference), LEARNER)
    refused: Any = Refusing(refuses_learner=True)
    with pytest.raises(WrongOutput, match="sizes that are timed: no such launch"):
        speeds.time_calls(Tools(refused), lab, source, CARD, inputs(lab))
    of_lab: Any = Refusing(refuses_learner=False)
    result = speeds.time_calls(Tools(of_lab), lab, source, CARD, inputs(lab))[0].result
    assert (result.status, result.message) == ("not graded", "no such launch")


def test_a_right_kernel_passes_every_case(lab: LoadedLab) -> None:
    for case in public_cases(lab.lab) + hidden_cases(lab.lab, 3):
        result = tried(lab, add, case)
        assert (result.passed, result.kind, result.message) == (True, "", "")


def test_each_element_that_is_wrong_or_unwritten_is_found(lab: LoadedLab) -> None:
    n = 31
    case = DrawnCase("small", {"n": n}, "special", 2, False)
    for place in range(n):

        def wrong(gpu: FakeGpu, given: list[Any], place: int = place) -> None:
            add(gpu, given)
            out = gpu.view(given[2], n, np.float32)
            out[place] = 1.0 if np.isnan(out[place]) else np.nan

        def left_out(gpu: FakeGpu, given: list[Any], place: int = place) -> None:
            out = gpu.view(given[2], n, np.uint32)
            before = out[place].copy()
            add(gpu, given)
            out[place] = before

        for kernel in (wrong, left_out):
            result = tried(lab, kernel, case)
            assert result.kind == "wrong" and result.wrong is not None
            assert result.wrong.index == (place,)
        assert result.wrong is not None and result.wrong.got == "nothing"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (-1, "1 bytes, of which the first is 1 bytes before `"),
        (1000 * 4, "1 bytes, of which the first is 1 bytes behind `"),
        (1000 * 4 + 900, "901 bytes behind `"),
        (-900, "900 bytes before `"),
    ],
)
def test_a_byte_beside_the_buffers_fails_the_case(
    lab: LoadedLab, place: int, words: str
) -> None:
    def stray(gpu: FakeGpu, given: list[Any]) -> None:
        add(gpu, given)
        gpu.view(given[2] + place, 1, np.uint8)[:] ^= 0x55

    result = tried(lab, stray, public_cases(lab.lab)[1])
    assert not result.passed and result.kind in ("red zone", "input")
    if result.kind == "red zone":
        assert words in result.message


def test_an_input_that_is_written_fails_the_case(lab: LoadedLab) -> None:
    def overwrite(gpu: FakeGpu, given: list[Any]) -> None:
        add(gpu, given)
        gpu.view(given[0], 1, np.float32)[:] = 5

    result = tried(lab, overwrite, public_cases(lab.lab)[1])
    assert result.kind == "input" and "`x`" in result.message


def test_one_call_more_is_sampled_when_all_are_timed(lab: LoadedLab) -> None:
    gpu: Any = FakeGpu(add, add)
    source = Source(read_rule(lab.reference), LEARNER)
    result, trials = speeds.time_calls(Tools(gpu), lab, source, CARD, inputs(lab))
    assert trials is not None and result.until_ns
    before, seen = gpu.calls_of_learner, []

    @contextlib.contextmanager
    def sampling() -> Iterator[list[int]]:
        seen.append(gpu.calls_of_learner)
        yield seen
        seen.append(gpu.calls_of_learner)

    assert trials.sampled_once_more(sampling) == [before, before + 1]
    # where there is no sampler it says so, and nothing else happens
    stalls = sampled(trials, LEARNER, result.result.learner_ns or 0.0)
    assert stalls.state == "unsupported" and stalls.note.endswith(".")


def test_a_right_kernel_is_timed_and_judged(lab: LoadedLab) -> None:
    speed, flags, since_ns, until_ns = timed(lab, add, learner_ns=110e3, own_ns=220e3)
    assert speed.status == "fast enough" and not flags and since_ns < until_ns
    assert speed.of_baseline is not None and speed.of_limit is not None
    assert round(speed.of_baseline.median, 6) == 2
    assert round(speed.of_limit.median, 6) == round(100 / 110, 6)
    assert (speed.calls, speed.checked_on_host) == (8, 1)
    assert timed(lab, add, learner_ns=150e3).result.status == "too slow"
    assert "person" in timed(lab, add, learner_ns=80e3).flags[0]


@pytest.mark.parametrize("wrong_call", range(1, 12))
def test_one_wrong_call_among_all_is_found(lab: LoadedLab, wrong_call: int) -> None:
    def sometimes(gpu: FakeGpu, given: list[Any]) -> None:
        add(gpu, given)
        if gpu.calls_of_learner == wrong_call:
            gpu.view(given[2], N, np.float32)[wrong_call * 400] += 1

    with pytest.raises(WrongOutput, match="timed call"):
        timed(lab, sometimes)


def test_what_is_right_for_the_call_on_the_cpu_is_known_before_it_is_timed(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speeds, "Stopping", lambda: Stopping(8, 8))
    ready = inputs(lab)
    source = Source(read_rule(lab.reference), LEARNER)

    def alike(gpu: FakeGpu, given: list[Any]) -> None:
        add(gpu, given)
        gpu.view(given[2], N, np.float32)[77] += 1

    def late(*_: Any) -> Any:
        raise AssertionError("It is computed while calls are timed.")

    monkeypatch.setattr(ready, "_computed", late)
    right: Any = FakeGpu(add, add)
    timed = speeds.time_calls(Tools(right), lab, source, CARD, ready)[0]
    assert timed.result.checked_on_host == 1
    # what learner and reference have wrong alike only the CPU sees
    wrong: Any = FakeGpu(alike, alike)
    with pytest.raises(WrongOutput, match=r"In a timed call out\[77\]"):
        speeds.time_calls(Tools(wrong), lab, source, CARD, ready)


def test_an_answer_of_an_earlier_call_is_wrong(lab: LoadedLab) -> None:
    answers: list[Any] = []

    def remember(gpu: FakeGpu, given: list[Any]) -> None:
        if not answers:
            add(gpu, given)
            answers.append(gpu.view(given[2], N, np.float32).copy())
        gpu.view(given[2], N, np.float32)[:] = answers[0]

    with pytest.raises(WrongOutput, match="is wrong in a timed call"):
        timed(lab, remember)


def test_an_input_that_is_written_when_it_is_timed_is_found(lab: LoadedLab) -> None:
    def overwrite(gpu: FakeGpu, given: list[Any]) -> None:
        add(gpu, given)
        gpu.view(given[1], N, np.uint8)[4 * 77] ^= 1

    with pytest.raises(WrongOutput, match="writes `y`") as caught:
        timed(lab, overwrite)
    assert caught.value.kind == "input"


def test_nothing_that_a_call_can_reach_makes_a_wrong_output_right(
    lab: LoadedLab,
) -> None:
    def make_all_zero(gpu: FakeGpu, given: list[Any]) -> None:
        # easy inputs for the reference: pools, arenas, whatever there is
        for begin in gpu.allocated:
            gpu.view(begin, 4096, np.uint8)[:] = 0
        gpu.view(given[2], N, np.float32)[:] = 0

    with pytest.raises(WrongOutput) as caught:
        timed(lab, make_all_zero)
    assert caught.value.kind == "red zone"

    def only_the_pools(gpu: FakeGpu, given: list[Any]) -> None:
        add(gpu, given)
        # behind what the trusted process needs for itself: the pools of x and y
        for begin in gpu.allocated[1:3]:
            gpu.view(begin, 64, np.uint8)[:] = 0

    with pytest.raises(WrongOutput, match="what other calls get"):
        timed(lab, only_the_pools)


def test_each_timed_pair_is_as_likely_to_be_compared_on_the_cpu() -> None:
    looks, rounds = (40, 80, 160), 4000
    kept_of = np.zeros(looks[-1])
    for _ in range(rounds):
        done, kept = 0, None
        for pairs in looks:
            drawn = drawn_of_look(done, pairs)
            # the first look always has one, so that a short run is compared, too
            assert done or drawn is not None
            assert drawn is None or done <= drawn < pairs
            kept = kept if drawn is None else drawn
            done = pairs
        kept_of[kept] += 1
    for begin, end in ((0, 40), (40, 80), (80, 160)):
        wanted = rounds * (end - begin) / looks[-1]
        # more than five standard deviations: it happens once in millions of runs
        assert abs(kept_of[begin:end].sum() - wanted) < 5.5 * wanted**0.5
