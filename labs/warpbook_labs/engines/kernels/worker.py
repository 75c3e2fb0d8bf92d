"""The trusted process: it loads, launches, checks and times a learner's program.

    python -m warpbook_labs.engines.kernels.worker

It reads what is asked as msgpack, and tells line by line, as JSON, what it does, so
that its parent knows at what it hung or crashed. No host code of a learner's is in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.compiler.nvrtc import CompileError, NoCompiler
from warpbook_labs.engines.kernels.correctness import Tried as CaseTried
from warpbook_labs.engines.kernels.correctness import told, try_case
from warpbook_labs.engines.kernels.speed import time_calls
from warpbook_labs.engines.kernels.timing import Source, WrongOutput
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import BadArguments, Crashed, DriverError, Hung
from warpbook_labs.gpu.jobs import (
    TIMED_CALLS,
    Asked,
    Began,
    Ended,
    Timed,
    Told,
    Tried,
    Trying,
)
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.lab.launch_rule import BadRule
from warpbook_labs.lab.loader import BadLab, LoadedLab, load
from warpbook_labs.lab.rules import rule_of

Tell = Callable[[Told], None]


def main() -> None:
    """Do one job."""
    answers = os.dup(1)
    # what kernels print would come between the answers
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)

    def tell(what: Told) -> None:
        os.write(answers, msgspec.json.encode(what) + b"\n")

    tell(_done(tell))
    # a context that crashed or hangs can't be tidied up
    os._exit(0)


def _done(tell: Tell) -> Ended:
    try:
        # before it knows what is asked: that is compiled meanwhile
        device = Device()
        tools = Tools(device)
        asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Asked)
        _do(asked, device, tools, tell)
    except Crashed as problem:
        return Ended("crash", str(problem))
    except Hung as problem:
        return Ended("hang", str(problem))
    except (BadArguments, BadRule) as problem:
        return Ended("launch", str(problem))
    except (DriverError, BadLab, CompileError, NoCompiler) as problem:
        return Ended("problem", str(problem))
    return Ended("done")


def _do(asked: Asked, device: Device, tools: Tools, tell: Tell) -> None:
    loaded = load(Path(asked.folder))
    rule = rule_of(loaded.lab.language, asked.source)
    tell(Began(device.name, device.architecture))
    program = device.assembled(asked.cubin)
    right = True
    for number, case in enumerate(asked.cases):
        tell(Trying(case.about, number))
        try:
            result = try_case(tools, loaded, rule, program, case)
        except (Crashed, Hung) as problem:
            # told with the case; the process is of no use any more
            tell(Tried(told(case, _stopped(problem))))
            raise
        tell(Tried(result))
        right = right and result.passed
    if asked.is_timed and right and loaded.lab.speed is not None:
        _time(asked, tell, tools, loaded, Source(rule, program))


def _time(
    asked: Asked, tell: Tell, tools: Tools, loaded: LoadedLab, source: Source
) -> None:
    sizes = loaded.lab.speed.sizes if loaded.lab.speed else {}
    case = DrawnCase(TIMED_CALLS, sizes, "", 0, is_hidden=False)
    tell(Trying(case.about))
    try:
        timed = time_calls(tools, loaded, source, asked.limit_card)
    except WrongOutput as problem:
        tell(Tried(told(case, CaseTried(problem.kind, str(problem)))))
        return
    except (Crashed, Hung) as problem:
        tell(Tried(told(case, _stopped(problem))))
        raise
    if timed.until_ns:
        tell(Tried(told(case, CaseTried("", ""))))
    tell(Timed(timed.result, timed.flags, timed.since_ns, timed.until_ns))


def _stopped(problem: Crashed | Hung) -> CaseTried:
    if isinstance(problem, Hung):
        return CaseTried("hang", str(problem))
    return CaseTried("crash", f"The GPU stopped the kernel: {problem}.")


if __name__ == "__main__":
    main()
