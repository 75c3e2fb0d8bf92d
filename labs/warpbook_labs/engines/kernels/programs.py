"""The lab's own programs for a GPU, compiled where they are timed."""

from __future__ import annotations

from warpbook_labs.compiler import compiling
from warpbook_labs.compiler.jobs import Compile, Compiled
from warpbook_labs.compiler.programs import image_of, job_of
from warpbook_labs.engines.kernels.timing import Source
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.submission import Submission
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.work import Job, Refused


def own_source(device: Device, loaded: LoadedLab, source: str) -> Source:
    """Compile one of the lab's own sources for its timed sizes.

    Raises:
        DriverError: it can't be compiled.
    """
    sizes = loaded.lab.speed.sizes if loaded.lab.speed else {}
    job = job_of(Submission(loaded, source), device.architecture, [sizes])
    rule = rule_of(loaded.lab, source)
    return Source(rule, device.assembled(image_of(_compiled(job))))


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
