"""The trusted process: it loads, launches, checks and times a learner's program.

    python -m warpbook_labs.engines.kernels.worker

It reads what is asked as msgpack, perhaps without the compiled program first, and
tells line by line, as JSON, what it does, so that its parent knows at what it hung or
crashed. No host code of a learner's is in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import msgspec

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.compiler.nvrtc import CompileError
from warpbook_labs.engines.kernels.ahead import Ahead
from warpbook_labs.engines.kernels.correctness import try_case
from warpbook_labs.engines.kernels.lane import KernelRequest
from warpbook_labs.engines.kernels.side import Source
from warpbook_labs.engines.kernels.speed import sampled, time_calls
from warpbook_labs.errors import BadLab, BadRule, NotInstalled
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import BadArguments, Crashed, DriverError, Hung
from warpbook_labs.gpu.jobs import (
    TIMED_CALLS,
    Began,
    CaseOutcome,
    Ended,
    Message,
    Sampled,
    Timed,
    Tried,
    Trying,
    device_case,
)
from warpbook_labs.gpu.speed import WrongOutput
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.sandbox.work import read_message

Tell = Callable[[Message], None]
#: a source, and the program that it is compiled to
_MOST_ASKED_BYTES = 256 << 20


def main() -> None:
    answers = os.dup(1)
    # what kernels print would come between the answers
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)

    def tell(what: Message) -> None:
        os.write(answers, msgspec.json.encode(what) + b"\n")

    tell(_done(tell))
    # a context that crashed or hangs can't be tidied up
    os._exit(0)


def _done(tell: Tell) -> Ended:
    try:
        # not compiled yet
        request = _read()
        ahead = Ahead(request)
        device = Device()
        tools = Tools(device)
        if not request.image:
            request = _read()
        _do(request, ahead, device, tools, tell)
    except Crashed as problem:
        return Ended("crash", str(problem))
    except Hung as problem:
        return Ended("hang", str(problem))
    except (BadArguments, BadRule) as problem:
        return Ended("launch", str(problem))
    except (DriverError, BadLab, CompileError, NotInstalled) as problem:
        return Ended("problem", str(problem))
    return Ended("done")


def _read() -> KernelRequest:
    message = read_message(sys.stdin.buffer, _MOST_ASKED_BYTES)
    if message is None:
        raise DriverError("Nothing was asked of the process that uses the GPU.")
    return msgspec.msgpack.decode(message, type=KernelRequest)


def _do(
    request: KernelRequest, ahead: Ahead, device: Device, tools: Tools, tell: Tell
) -> None:
    loaded = ahead.loaded
    tell(Began(device.name, device.architecture))
    program = device.assembled(request.image)
    right = True
    for number, (case, prepared) in enumerate(ahead.cases()):
        tell(Trying(case.about, number))
        try:
            result = try_case(tools, loaded, program, case, prepared)
        except (Crashed, Hung) as problem:
            # told with the case; the process is of no use any more
            tell(Tried(device_case(case, _stopped(problem))))
            raise
        tell(Tried(result))
        right = right and result.passed
    if request.is_timed and right and loaded.lab.speed is not None:
        _time(request, tell, tools, ahead, Source(ahead.rule, program))


def _time(
    request: KernelRequest, tell: Tell, tools: Tools, ahead: Ahead, source: Source
) -> None:
    loaded = ahead.loaded
    sizes = loaded.lab.speed.sizes if loaded.lab.speed else {}
    case = DrawnCase(TIMED_CALLS, sizes, "", 0, is_hidden=False)
    tell(Trying(case.about))
    try:
        timed, trials = time_calls(
            tools, loaded, source, request.limit_card, ahead.inputs()
        )
    except WrongOutput as problem:
        tell(Tried(device_case(case, CaseOutcome(problem.kind, str(problem)))))
        return
    except (Crashed, Hung) as problem:
        tell(Tried(device_case(case, _stopped(problem))))
        raise
    if timed.until_ns:
        tell(Tried(device_case(case, CaseOutcome("", ""))))
    tell(Timed(timed.result, timed.flags, timed.since_ns, timed.until_ns))
    if request.is_sampled and trials is not None:
        call_ns = timed.result.learner_ns or 0.0
        tell(Sampled(sampled(trials, source.cubin, call_ns)))


def _stopped(problem: Crashed | Hung) -> CaseOutcome:
    if isinstance(problem, Hung):
        return CaseOutcome("hang", str(problem))
    return CaseOutcome("crash", f"The GPU stopped the kernel: {problem}.")


if __name__ == "__main__":
    main()
