"""A submission on a GPU: a trusted process grades it, once more if disturbed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import msgspec

from warpbook_labs.errors import NotOnGpu
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.jobs import TIMED_CALLS, Request
from warpbook_labs.gpu.limit_card import NoLimitCard, limit_card
from warpbook_labs.gpu.quiet import Timed, TooBusy, Watch, when_quiet
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.device import DeviceCase, DeviceResult, SpeedResult
from warpbook_labs.results.measurements import Conditions, LimitCard
from warpbook_labs.results.stage_times import add_stage, stage

Run = Callable[[Request], parent.WorkerReport]


class _NotTimed(Exception):
    """It did not come to timed calls, or they are not right."""


def graded(
    gpu: Gpu, loaded: LoadedLab, request: Request, is_timed: bool, run: Run
) -> DeviceResult:
    """Have a trusted process grade it, and again where it was disturbed while timed.

    Raises:
        NotOnGpu: the GPU could not be used, for no fault of the source.
    """
    if not is_timed or loaded.lab.speed is None:
        return _result(gpu, request, run(request))
    return _Submission(gpu, loaded, request, run).timed()


class _Submission:
    """One that is timed until nothing disturbs it."""

    def __init__(self, gpu: Gpu, loaded: LoadedLab, request: Request, run: Run) -> None:
        self._gpu, self._request, self._run = gpu, request, run
        self._sizes = dict(loaded.lab.speed.sizes) if loaded.lab.speed else {}
        self._all: list[parent.WorkerReport] = []

    def timed(self) -> DeviceResult:
        card, no_card = self._card()
        timing = msgspec.structs.replace(self._request, is_timed=True, limit_card=card)

        def trial() -> Timed[parent.WorkerReport]:
            # at the first try the cases were right
            cases = () if self._all else timing.cases
            request = msgspec.structs.replace(timing, cases=cases)
            asked_ns = time.monotonic_ns()
            heard = self._run(request)
            _note_stages(asked_ns, heard)
            self._all.append(heard)
            if heard.timed is None or not heard.timed.until_ns:
                raise _NotTimed
            return Timed(heard, heard.timed.since_ns, heard.timed.until_ns)

        conditions: Conditions | None = None
        busy = ""
        with Watch(self._gpu.uuid) as watch, contextlib.suppress(_NotTimed):
            try:
                _, conditions = when_quiet(watch, trial, lambda: self._all[-1].pids)
            except TooBusy as problem:
                busy = str(problem)
        if not self._all:
            # others used the GPU before each try; results do not mind that
            self._all.append(self._run(self._request))
        last = self._all[-1].timed
        return msgspec.structs.replace(
            _result(self._gpu, self._request, *self._all),
            speed=self._speed(conditions, busy, no_card),
            limit_card=card,
            stalls=self._all[-1].stalls,
            flags=last.flags if last else (),
        )

    def _card(self) -> tuple[LimitCard | None, str]:
        try:
            with stage("limit card"):
                card = limit_card(self._gpu.uuid, self._gpu.driver)
            return card, ""
        except NoLimitCard as problem:
            return None, str(problem)

    def _speed(
        self, conditions: Conditions | None, busy: str, no_card: str
    ) -> SpeedResult | None:
        tries = sum(source.timed is not None for source in self._all)
        if busy:
            return SpeedResult("too busy", busy, self._sizes, discarded=tries)
        timed = self._all[-1].timed
        if timed is None:
            return None
        speed = msgspec.structs.replace(
            timed.result, discarded=tries - 1, conditions=conditions
        )
        if speed.status == "not graded" and no_card:
            return msgspec.structs.replace(speed, message=no_card)
        return speed


def _note_stages(asked_ns: int, heard: parent.WorkerReport) -> None:
    """Note how long a process took from being asked to each of its stages."""
    ended_ns = time.monotonic_ns()
    began_ns = heard.began_ns or ended_ns
    add_stage("GPU start", (began_ns - asked_ns) / 1e9)
    if heard.timed is None or heard.timed_ns is None or not heard.timed.until_ns:
        add_stage("GPU cases", (ended_ns - began_ns) / 1e9)
        return
    since_ns, until_ns = heard.timed.since_ns, heard.timed.until_ns
    add_stage("GPU cases", (since_ns - began_ns) / 1e9)
    add_stage("timed run", (until_ns - since_ns) / 1e9)
    add_stage("check on the CPU", (heard.timed_ns - until_ns) / 1e9)
    if heard.sampled_ns is not None:
        add_stage("sampled run", (heard.sampled_ns - heard.timed_ns) / 1e9)


def _result(gpu: Gpu, request: Request, *runs: parent.WorkerReport) -> DeviceResult:
    """Put together what the processes told, of which only the first ran the cases.

    Raises:
        NotOnGpu: the GPU could not be used, for no fault of the source.
    """
    done: list[DeviceCase] = []
    for heard in runs:
        # only the last timed calls count
        done = [case for case in done if case.about != TIMED_CALLS]
        done += (tried.result for tried in heard.tried)
        done += _fallen(request, heard, len(done))
        if heard.ended is not None and heard.ended.how == "problem":
            raise NotOnGpu(heard.ended.message)
    for case in request.cases[len(done) :]:
        sizes = None if case.is_hidden else dict(case.sizes)
        words = "It was not run: an earlier case ended the process."
        done.append(
            DeviceCase(case.about, case.is_hidden, False, "not run", words, sizes)
        )
    right = sum(case.passed for case in done)
    began = [run.began for run in runs if run.began is not None]
    return DeviceResult(
        gpu.name,
        gpu.architecture,
        tuple(done),
        right,
        max(len(request.cases), len(done)),
        isolation=began[-1].isolation if began else "",
    )


def _fallen(
    request: Request, heard: parent.WorkerReport, done: int
) -> list[DeviceCase]:
    """Give the case at which the process itself fell, if it did."""
    if not heard.problem or (heard.timed is not None and heard.timed.until_ns):
        # what was timed is right; it fell when it sampled
        return []
    trying = heard.trying
    if heard.began is None or trying is None:
        raise NotOnGpu(heard.problem)
    if trying.case is None:
        return [DeviceCase(TIMED_CALLS, False, False, "crash", heard.problem)]
    if trying.case < done:
        return []
    case = request.cases[trying.case]
    sizes = None if case.is_hidden else dict(case.sizes)
    words = heard.problem
    return [DeviceCase(case.about, case.is_hidden, False, "crash", words, sizes)]
