"""A submission on the GPU, from its source to a result, without using the GPU here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import msgspec

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.compiler.jobs import Compiled
from warpbook_labs.engines.kernels.programs import image_of, job_of
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.jobs import TIMED_CALLS, Asked
from warpbook_labs.gpu.limit_card import LimitCard, NoLimitCard, limit_card
from warpbook_labs.gpu.quiet import Conditions, Timed, TooBusy, Watch, when_quiet
from warpbook_labs.lab.loader import LoadedLab
from warpbook_labs.lab.sources import SourceProblem
from warpbook_labs.results.device import DeviceCase, DeviceResult, SpeedResult
from warpbook_labs.sandbox import parent as jail
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.work import Refused


class NotOnGpu(Exception):
    """The GPU could not be used for it; the message says why."""


Run = Callable[[Asked], parent.Heard]


class _NotTimed(Exception):
    """It did not come to timed calls, or they are not right."""


def run_on_gpu(
    gpu: Gpu,
    loaded: LoadedLab,
    source: str,
    cases: Sequence[DrawnCase],
    is_timed: bool,
    limits: Limits,
) -> DeviceResult:
    """Check a submission on a GPU, and time it if it is right and that is asked.

    Raises:
        NotOnGpu: it can't be run there, for a reason that is no fault of the source.
        NoCompiler: NVRTC is not installed.
    """
    sizes = [each.sizes for each in cases]
    if loaded.lab.speed is not None:
        sizes.append(dict(loaded.lab.speed.sizes))
    try:
        job = job_of(loaded, source, gpu.architecture, sizes)
    except SourceProblem as problem:
        raise NotOnGpu(str(problem)) from None
    # it gets ready for the GPU while the source is compiled
    with parent.started(gpu.uuid) as do:
        built = jail.run(job, limits)
        if not isinstance(built.result, Compiled):
            words = built.message
            if isinstance(built.result, Refused):
                words = built.result.message.strip().splitlines()[0]
            raise NotOnGpu(f"It could not be compiled for {gpu.architecture}: {words}")
        image = image_of(built.result)
        asked = Asked(str(loaded.folder), source, image, tuple(cases))
        ready = [do]

        def run(asked: Asked) -> parent.Heard:
            if ready:
                return ready.pop()(asked, parent.WALL_S)
            return parent.run(asked, gpu.uuid)

        return graded(gpu, loaded, asked, is_timed, run)


def graded(
    gpu: Gpu, loaded: LoadedLab, asked: Asked, is_timed: bool, run: Run
) -> DeviceResult:
    """Have a trusted process grade it, and again where it was disturbed while timed.

    Raises:
        NotOnGpu: the GPU could not be used, for no fault of the source.
    """
    if not is_timed or loaded.lab.speed is None:
        return _result(gpu, asked, run(asked))
    return _Submission(gpu, loaded, asked, run).timed()


class _Submission:
    """One that is timed until nothing disturbs it."""

    def __init__(self, gpu: Gpu, loaded: LoadedLab, asked: Asked, run: Run) -> None:
        self._gpu, self._asked, self._run = gpu, asked, run
        self._sizes = dict(loaded.lab.speed.sizes) if loaded.lab.speed else {}
        self._all: list[parent.Heard] = []

    def timed(self) -> DeviceResult:
        card, no_card = self._card()
        timing = msgspec.structs.replace(self._asked, is_timed=True, limit_card=card)

        def trial() -> Timed[parent.Heard]:
            # at the first try the cases were right
            cases = () if self._all else timing.cases
            asked = msgspec.structs.replace(timing, cases=cases)
            heard = self._run(asked)
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
            self._all.append(self._run(self._asked))
        last = self._all[-1].timed
        return msgspec.structs.replace(
            _result(self._gpu, self._asked, *self._all),
            speed=self._speed(conditions, busy, no_card),
            limit_card=card,
            flags=last.flags if last else (),
        )

    def _card(self) -> tuple[LimitCard | None, str]:
        try:
            return limit_card(self._gpu.uuid, self._gpu.driver), ""
        except NoLimitCard as problem:
            return None, str(problem)

    def _speed(
        self, conditions: Conditions | None, busy: str, no_card: str
    ) -> SpeedResult | None:
        tries = sum(each.timed is not None for each in self._all)
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


def _result(gpu: Gpu, asked: Asked, *runs: parent.Heard) -> DeviceResult:
    """Put together what the processes told, of which only the first ran the cases.

    Raises:
        NotOnGpu: the GPU could not be used, for no fault of the source.
    """
    done: list[DeviceCase] = []
    for heard in runs:
        # only the last timed calls count
        done = [each for each in done if each.about != TIMED_CALLS]
        done += (each.result for each in heard.tried)
        done += _fallen(asked, heard, len(done))
        if heard.ended is not None and heard.ended.how == "problem":
            raise NotOnGpu(heard.ended.message)
    for each in asked.cases[len(done) :]:
        sizes = None if each.is_hidden else dict(each.sizes)
        words = "It was not run: an earlier case ended it all."
        done.append(
            DeviceCase(each.about, each.is_hidden, False, "not run", words, sizes)
        )
    right = sum(each.passed for each in done)
    began = [each.began for each in runs if each.began is not None]
    return DeviceResult(
        gpu.name,
        gpu.architecture,
        tuple(done),
        right,
        max(len(asked.cases), len(done)),
        isolation=began[-1].isolation if began else "",
    )


def _fallen(asked: Asked, heard: parent.Heard, done: int) -> list[DeviceCase]:
    """Give the case at which the process itself fell, if it did."""
    if not heard.problem:
        return []
    trying = heard.trying
    if heard.began is None or trying is None:
        raise NotOnGpu(heard.problem)
    if trying.case is None:
        return [DeviceCase(TIMED_CALLS, False, False, "crash", heard.problem)]
    if trying.case < done:
        return []
    case = asked.cases[trying.case]
    sizes = None if case.is_hidden else dict(case.sizes)
    words = heard.problem
    return [DeviceCase(case.about, case.is_hidden, False, "crash", words, sizes)]
