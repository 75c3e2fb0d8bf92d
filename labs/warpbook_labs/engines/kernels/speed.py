"""How fast a submission is beside baseline and limit, and where its warps wait."""

from __future__ import annotations

from pathlib import PurePath

import msgspec
from msgspec.structs import replace

from warpbook_labs.compiler import compiling
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.nvrtc import SOURCE_NAME
from warpbook_labs.compiler.programs import image_of, job_of
from warpbook_labs.engines.kernels.inputs import TimedInputs
from warpbook_labs.engines.kernels.side import Source
from warpbook_labs.engines.kernels.timing import TooLarge, Trials
from warpbook_labs.errors import BadRule
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import BadArguments, Crashed, DriverError, Hung
from warpbook_labs.gpu.ratio import Stopping
from warpbook_labs.gpu.speed import Judge, Timed
from warpbook_labs.gpu.tools import Tools, kept
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.spec import Speed
from warpbook_labs.results.device import SpeedResult
from warpbook_labs.results.measurements import LimitCard
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.work import Job, Refused
from warpbook_profiler.model.stalls import Language, Stalls
from warpbook_profiler.stalls import attribution
from warpbook_profiler.stalls.cupti import NotSampled, cupti
from warpbook_profiler.stalls.sampler import period_for, sampling


def own_source(device: Device, loaded: LoadedLab, source: str) -> Source:
    """Compile one of the lab's own sources for its timed sizes.

    Raises:
        DriverError: it can't be compiled.
    """
    sizes = loaded.lab.speed.sizes if loaded.lab.speed else {}
    job = job_of(Submission(loaded, source), device.architecture, [sizes])
    rule = rule_of(loaded.lab, source)
    image = kept(msgspec.msgpack.encode(job), lambda: image_of(_compiled(job)))
    return Source(rule, device.assembled(image))


def _compiled(job: Job[Compiled]) -> Compiled:
    result: Compiled | Refused | None
    if isinstance(job, Compile):
        # it is the lab's own, and no process has to start
        result, ending = compiling.do(job), ""
    else:
        outcome = warm.run(job)
        result, ending = outcome.result, outcome.message
    if isinstance(result, Compiled):
        return result
    words = result.message if isinstance(result, Refused) else ending
    raise DriverError(f"A source of the lab does not compile: {words}")


def time_calls(
    tools: Tools,
    loaded: LoadedLab,
    learner: Source,
    card: LimitCard | None,
    inputs: TimedInputs,
) -> tuple[Timed, Trials | None]:
    """Time a submission whose results are right.

    Args:
        inputs: of the lab's timed sizes.

    Returns:
        How fast it is, and what can run it once more; None where it was not timed.

    Raises:
        WrongOutput: they are not, when it is timed, or it can't be launched then.
        Crashed: the GPU stopped it.
        Hung: it did not end.
    """
    speed = loaded.lab.speed
    if speed is None:
        raise ValueError(f"{loaded.lab.id} has no speed to be graded.")
    judge = Judge(loaded.lab, speed, card)
    reference = own_source(tools.device, loaded, loaded.reference)
    baseline = own_source(tools.device, loaded, baseline_of(loaded, speed))
    stopping = Stopping()
    try:
        trials = Trials(tools, loaded, inputs, learner, reference, baseline)
    except (Crashed, Hung):
        raise
    except (TooLarge, BadRule, DriverError) as problem:
        return Timed(SpeedResult("not graded", str(problem), speed.sizes)), None
    try:
        times = trials.run(stopping, lambda *taken: judge.is_enough(stopping, *taken))
    except BadArguments as problem:
        # of the lab's own programs: the learner's are `WrongOutput`
        return Timed(SpeedResult("not graded", str(problem), speed.sizes)), None
    timed = Timed(
        judge.result(times), judge.flags(times), times.since_ns, times.until_ns
    )
    return timed, trials


def baseline_of(loaded: LoadedLab, speed: Speed) -> str:
    """Give the source that the learner's is compared with.

    Where no speed-up is asked for it is the reference: the starter of such a lab need
    not even be right.
    """
    if loaded.baseline:
        return loaded.baseline
    return loaded.reference if speed.of_baseline is None else loaded.starter


_FILES: dict[str, Language] = {SOURCE_NAME: "cuda", "kernel.py": "triton"}
#: a result is kept, and sent by a class's graders
_MOST_KERNELS = 8
_NOTE = "One more call was sampled; it was neither timed nor judged."


def sampled(trials: Trials, cubin: bytes, call_ns: float) -> Stalls:
    """Sample one call of the learner's program.

    Args:
        trials: that were timed.
        cubin: the program, with lines of its source.
        call_ns: that a call takes when it is not sampled.
    """
    period = period_for([round(call_ns)])
    try:
        library = cupti()
        samples = trials.sampled_once_more(lambda: sampling(period, library))
        stalls = attribution.stalls_of(
            samples, {library.crc(cubin): cubin}, _source_of, _NOTE
        )
    except NotSampled as problem:
        return Stalls(problem.state, str(problem))
    except DriverError as problem:
        return Stalls("failed", f"It could not be sampled: {problem}")
    # the card quotes the learner's file by their numbers
    own = [file.name in _FILES for file in stalls.files]
    kernels = (
        replace(kernel, lines=tuple(line for line in kernel.lines if own[line.file]))
        for kernel in stalls.kernels[:_MOST_KERNELS]
    )
    return replace(stalls, kernels=tuple(kernels))


def _source_of(path: str, _: str) -> attribution.Source:
    """Return the learner's file without its text; others are called by its lines."""
    name = PurePath(path).name
    return attribution.Source(
        name, "", _FILES.get(name, ""), is_library=name not in _FILES
    )
