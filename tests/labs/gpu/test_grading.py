"""What becomes of a source where a GPU and the interpreter both have a word."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from warpbook_labs.cases.sampling import (
    DrawnCase,
    hidden_cases,
    large_cases,
    public_cases,
)
from warpbook_labs.course.session import find
from warpbook_labs.engines.kernels.lane import KernelRequest
from warpbook_labs.errors import NoGpu, NotOnGpu
from warpbook_labs.gpu import parent, submission
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.jobs import (
    TIMED_CALLS,
    Began,
    Ended,
    Message,
    Sampled,
    Timed,
    Tried,
    Trying,
)
from warpbook_labs.gpu.limit_card import NoLimitCard
from warpbook_labs.gpu.quiet import TooBusy
from warpbook_labs.grading import cases as grading
from warpbook_labs.grading.table import case_grader_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.device import DeviceCase, SpeedResult
from warpbook_labs.results.measurements import Conditions
from warpbook_profiler.model.stalls import Stalls

GPU = Gpu("GPU-of-the-test", "A GPU", "sm_90", "580")
SEED = 5


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    return find("vector-add")


class Worker:
    """Stands for the trusted process: tells what a test wants it to tell."""

    def __init__(self) -> None:
        self.requests: list[KernelRequest] = []
        self.kinds: dict[int, str] = {}
        self.speed = SpeedResult("fast enough", "It is fast.", {"n": 1})
        self.timed_kind = ""
        self.problem = ""
        self.falls_at: int | None = None
        self.falls_when_sampled = False

    def __call__(self, request: KernelRequest, uuid: str) -> parent.WorkerReport:
        assert uuid == GPU.uuid and request.image.startswith(b"\x7fELF")
        self.requests.append(request)
        heard = parent.WorkerReport(pid=len(self.requests), tried=[])
        for message in self._told(request):
            if isinstance(message, Tried):
                heard.tried.append(message)
            elif isinstance(message, Ended):
                heard.ended = message
            elif isinstance(message, Timed):
                heard.timed = message
            elif isinstance(message, Sampled):
                heard.stalls = message.stalls
            elif isinstance(message, Trying):
                heard.trying = message
            else:
                heard.began = message
        if heard.ended is None:
            heard.problem = "It fell."
        return heard

    @contextlib.contextmanager
    def started(self, uuid: str, first: KernelRequest) -> Iterator[parent.Do]:
        # the program is not there yet
        assert not first.image and first.cases
        yield lambda request, _: self(request, uuid)

    def _told(self, request: KernelRequest) -> Sequence[Message]:
        if self.problem:
            return [Ended("problem", self.problem)]
        messages: list[Message] = [Began("A GPU", "sm_90")]
        for number, case in enumerate(request.cases):
            messages.append(Trying(case.about, number))
            if number == self.falls_at:
                return messages
            kind: Any = self.kinds.get(number, "")
            message = f"{kind} it is" if kind else ""
            right = not kind
            messages.append(
                Tried(
                    DeviceCase(
                        case.about, case.is_hidden, right, kind, message, case.sizes
                    )
                )
            )
            if kind in ("crash", "hang"):
                return [*messages, Ended(kind, message)]
        if request.is_timed and not self.kinds:
            kind = self.timed_kind
            messages.append(
                Tried(DeviceCase(TIMED_CALLS, False, not kind, kind, f"{kind}!"))
            )
            if not kind:
                messages.append(Timed(self.speed, (), 1, 2))
                if self.falls_when_sampled:
                    return messages
                messages.append(Sampled(Stalls("nothing", "It was short.")))
        return [*messages, Ended("done")]


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A machine with a GPU that nobody else uses, and whose limits nobody knows."""
    stands_in = Worker()

    def no_card(*_: object) -> None:
        raise NoLimitCard("No limits are known here.")

    def quiet(_: object, trial: Any, own_pid: Any) -> Any:
        return trial().result, Conditions(tries=1)

    monkeypatch.setattr(grading, "find_gpu", lambda: GPU)
    monkeypatch.setattr(parent, "run", stands_in)
    monkeypatch.setattr(parent, "started", stands_in.started)
    monkeypatch.setattr(submission, "limit_card", no_card)
    monkeypatch.setattr(submission, "when_quiet", quiet)
    return stands_in


def graded(lab: LoadedLab, source: str, is_timed: bool = True) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, SEED)
    large = large_cases(lab.lab, SEED)
    result = case_grader_of(lab.lab).run(
        Submission(lab, source), cases, large, is_timed
    )
    encoded = msgspec.json.encode(result)
    assert msgspec.json.decode(encoded, type=CheckResult) == result
    return result


def test_right_for_both_and_fast_is_passed(lab: LoadedLab, worker: Worker) -> None:
    result = graded(lab, lab.reference)
    assert result.status == "passed" and "fast" in result.message
    assert result.device is not None and result.device.gpu == "A GPU"
    # the GPU has larger cases, too, and the timed calls
    assert (result.of, result.device.of) == (14, 17)
    assert result.not_graded == ()


def test_a_process_that_falls_when_it_samples_takes_nothing_off(
    lab: LoadedLab, worker: Worker
) -> None:
    sampled = graded(lab, lab.reference).device
    assert sampled is not None and sampled.stalls is not None
    # a check that is not timed is not sampled either
    checked = graded(lab, lab.reference, is_timed=False).device
    assert checked is not None and checked.stalls is None
    worker.falls_when_sampled = True
    result = graded(lab, lab.reference)
    assert result.device is not None and result.device.stalls is None
    assert (result.status, result.right, result.of) == ("passed", 14, 14)


@pytest.mark.parametrize("status", ["too slow", "too noisy to tell", "too busy"])
def test_right_and_not_fast_is_told_as_what_it_is(
    lab: LoadedLab, worker: Worker, status: Any
) -> None:
    worker.speed = SpeedResult(status, "So it is.", {"n": 1})
    result = graded(lab, lab.reference)
    assert (result.status, result.right, result.of) == (status, 14, 14)
    assert "So it is." in result.message


@pytest.mark.parametrize("kind", ["wrong", "red zone", "input", "crash", "hang"])
def test_what_only_the_gpu_sees_fails(
    lab: LoadedLab, worker: Worker, kind: str
) -> None:
    worker.kinds = {4: kind}
    result = graded(lab, lab.reference)
    assert result.status == "failed" and result.device is not None
    assert "On the GPU" in result.message and f"{kind} it is" in result.message
    assert "no mistake is found" in result.message
    if kind in ("crash", "hang"):
        # what came after it was not run, and is not right
        assert (result.right, result.device.right) == (14 - 12, 4)
    else:
        assert result.right == 13
    hidden = [case for case in result.device.cases if not case.passed]
    assert len(hidden) == 1


def test_what_only_the_interpreter_sees_fails(lab: LoadedLab, worker: Worker) -> None:
    result = graded(lab, lab.wrong["strided.cu"])
    assert result.status == "failed" and "right this time" in result.message


def test_what_only_a_gpu_can_run_is_not_held_against_it(
    lab: LoadedLab, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    # an instruction that the interpreter leaves out, and that changes nothing here
    bulk = 'asm volatile("cp.async.bulk.commit_group;");\n    bool is_aligned'
    unknown = lab.reference.replace("bool is_aligned", bulk, 1)
    assert unknown != lab.reference
    result = graded(lab, unknown)
    assert (result.status, result.right) == ("passed", result.of)
    assert any(
        "Only results are checked, not data races" in sentence
        for sentence in result.not_graded
    )
    # what the interpreter finds wrong is right by luck, beside a GPU, too
    lucky = graded(lab, lab.wrong["nan_becomes_zero.cu"])
    assert lucky.status == "failed" and "right this time" in lucky.message
    # and without one it is neither right nor wrong
    monkeypatch.setattr(grading, "find_gpu", _no_gpu)
    alone = graded(lab, unknown)
    assert alone.status == "unsupported"
    assert "can't be checked without a GPU" in alone.message


def _no_gpu() -> Gpu:
    raise NoGpu("There is none.")


def test_a_wrong_timed_call_fails_also_when_it_was_right_before(
    lab: LoadedLab, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disturbed_once(_: object, trial: Any, own_pid: Any) -> Any:
        trial()
        worker.timed_kind = "wrong"
        return trial().result, Conditions()

    monkeypatch.setattr(submission, "when_quiet", disturbed_once)
    result = graded(lab, lab.reference)
    assert result.status == "failed" and "timed calls" in result.message
    assert [len(request.cases) for request in worker.requests] == [16, 0]


def test_a_busy_gpu_takes_no_mark_off(
    lab: LoadedLab, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: object, trial: Any, own_pid: Any) -> Any:
        raise TooBusy("Somebody works.")

    monkeypatch.setattr(submission, "when_quiet", busy)
    result = graded(lab, lab.reference)
    assert (result.status, result.right) == ("too busy", 14)
    assert "Somebody works." in result.message
    # its results were looked at all the same
    assert result.device is not None and result.device.right == 16


def test_a_process_that_falls_at_a_case_is_no_way_round_it(
    lab: LoadedLab, worker: Worker
) -> None:
    worker.falls_at = 2
    result = graded(lab, lab.reference)
    assert result.status == "failed" and "It fell." in result.message


def test_where_the_gpu_can_not_be_used_it_is_said(
    lab: LoadedLab, worker: Worker
) -> None:
    worker.problem = "The driver is too old."
    result = graded(lab, lab.reference)
    assert (result.status, result.device) == ("passed", None)
    assert "The driver is too old." in result.not_graded[0]
    assert "speed is not graded" in result.not_graded[1]


def test_without_a_known_limit_the_speed_is_not_graded(
    lab: LoadedLab, worker: Worker
) -> None:
    worker.speed = SpeedResult("not graded", "?", {"n": 1})
    result = graded(lab, lab.reference)
    assert result.status == "passed"
    assert result.not_graded == ("Speed is not graded: No limits are known here.",)


def test_a_check_runs_on_the_gpu_and_is_not_timed(
    lab: LoadedLab, worker: Worker
) -> None:
    result = graded(lab, lab.reference, is_timed=False)
    assert result.status == "passed" and not worker.requests[0].is_timed
    assert result.not_graded == ("Speed is graded when you submit.",)


def test_what_does_not_compile_is_told_by_the_interpreter_alone(
    lab: LoadedLab, worker: Worker
) -> None:
    result = graded(lab, lab.reference.replace("sum;", "sun;"))
    assert result.status == "compile error" and not worker.requests


def test_triton_that_is_refused_is_told_beside_a_gpu_too(worker: Worker) -> None:
    triton = find("thread-and-block")
    result = graded(triton, f"print(1)\n{triton.reference}")
    assert (result.status, result.line) == ("compile error", 1)
    unknown = triton.reference.replace(
        "@triton.jit", "@triton.autotune([triton.Config({}, x=1)])\n@triton.jit"
    )
    result = graded(triton, unknown)
    assert result.status == "unsupported" and not worker.requests
    assert "can't be checked here" in result.message and result.line


def test_without_a_gpu_the_interpreter_alone_grades(
    lab: LoadedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "find_gpu", _no_gpu)
    result = graded(lab, lab.reference)
    assert (result.status, result.device) == ("passed", None)
    assert result.not_graded == ("Speed is not graded without a GPU.",)


def test_a_machine_whose_driver_can_not_be_used_ends_in_words(lab: LoadedLab) -> None:
    # the real process, for a GPU that no machine has
    case = DrawnCase("one", {"n": 5}, "random", 1, False)
    request = KernelRequest(str(lab.folder), lab.reference, (case,), image=b"")
    heard = parent.run(request, "GPU-00000000-0000-0000-0000-000000000000", 60)
    assert heard.ended is not None and heard.ended.how == "problem"
    assert "CUDA" in heard.ended.message and heard.tried == []
    with pytest.raises(NotOnGpu):
        submission._result(GPU, request, heard)
