"""Where the warps of one more call wait, when nothing is timed or judged any more."""

from __future__ import annotations

from pathlib import PurePath

from msgspec.structs import replace

from warpbook_labs.compiler.nvrtc import SOURCE_NAME
from warpbook_labs.engines.kernels.timing import Trials
from warpbook_labs.gpu.errors import DriverError
from warpbook_profiler.model.stalls import Language, Stalls
from warpbook_profiler.stalls.attribution import Source, stalls_of
from warpbook_profiler.stalls.cupti import NotSampled, cupti
from warpbook_profiler.stalls.sampler import period_for, sampling

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
        stalls = stalls_of(samples, {library.crc(cubin): cubin}, _source_of, _NOTE)
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


def _source_of(path: str, _: str) -> Source:
    """Return the learner's file without its text; others are called by its lines."""
    name = PurePath(path).name
    return Source(name, "", _FILES.get(name, ""), is_library=name not in _FILES)
