"""Judges recorded programs, in the jail: they are data that anybody may have written.

No right answer is in this process, and no learner's line: it runs what a program asks
on the inputs that count, and tells what came of it.
"""

from __future__ import annotations

import msgspec
import numpy as np

from warpbook_labs.engines.simulated.judging.judge import judge
from warpbook_labs.engines.simulated.messages import HostVerdicts, Judge, Trial, Verdict
from warpbook_labs.engines.simulated.program import Program, ProgramRefused
from warpbook_labs.lab.texts import INVALID_MESSAGE


def judged(job: Judge) -> HostVerdicts:
    return HostVerdicts(tuple(_verdict(trial) for trial in job.trials))


def _verdict(trial: Trial) -> Verdict:
    try:
        program = msgspec.msgpack.decode(trial.program, type=Program)
    except (msgspec.DecodeError, RecursionError):
        return Verdict(INVALID_MESSAGE)
    kinds = {buffer.name: buffer for buffer in trial.buffers}
    calls = [
        {
            name: np.frombuffer(data, kinds[name].dtype).reshape(kinds[name].shape)
            for name, data in call.items()
        }
        for call in trial.calls
    ]
    try:
        judgement = judge(program, trial.buffers, calls)
    except ProgramRefused as problem:
        return Verdict(str(problem))
    outputs = tuple(
        {name: np.ascontiguousarray(held).tobytes() for name, held in output.items()}
        for output in judgement.outputs
    )
    return Verdict(
        "",
        outputs,
        judgement.unwritten,
        judgement.writers,
        judgement.sources,
        judgement.findings,
        judgement.counts,
        judgement.count_lines,
        judgement.bars,
        judgement.first_look,
        dict(judgement.convolution_percents),
    )
