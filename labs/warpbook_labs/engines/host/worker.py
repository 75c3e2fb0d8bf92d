"""The trusted process of the host lane: it owns all that a verdict is made of.

    python -m warpbook_labs.engines.host.worker

It reads what is asked as msgpack, and tells line by line, as JSON, what it does. It has
never loaded PyTorch or a learner's source; two children do that, and are asked over
pipes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from warpbook_labs.compiler.nvrtc import CompileError
from warpbook_labs.engines.host.child_handle import CantBegin, Lost
from warpbook_labs.engines.host.lane import HostRequest
from warpbook_labs.engines.host.session import Session, TooLarge
from warpbook_labs.engines.host.timing import Disturbed
from warpbook_labs.errors import BadLab, NotInstalled
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.gpu.jobs import TIMED_CALLS, Ended, Message, Timed, Tried, Trying
from warpbook_labs.gpu.speed import WrongOutput
from warpbook_labs.lab.loader import load
from warpbook_labs.results.device import DeviceCase, SpeedResult
from warpbook_labs.sandbox import linux
from warpbook_labs.sandbox.work import read_message

Tell = Callable[[Message], None]

_MOST_ASKED_BYTES = 64 << 20
#: a source that loses its process again and again is not tried any further
_MOST_STARTS = 4


def main() -> None:
    linux.die_with_parent()
    linux.hide_memory()
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)

    def tell(what: Message) -> None:
        os.write(answers, msgspec.json.encode(what) + b"\n")

    asked = read_message(sys.stdin.buffer, _MOST_ASKED_BYTES)
    request = msgspec.msgpack.decode(asked or b"", type=HostRequest)
    tell(_done(request, tell))
    os._exit(0)


def _done(request: HostRequest, tell: Tell) -> Ended:
    try:
        _do(request, tell)
    except (CantBegin, Lost) as problem:
        return Ended("problem", str(problem))
    except (DriverError, BadLab, CompileError, NotInstalled, TooLarge) as problem:
        return Ended("problem", str(problem))
    return Ended("done")


def _do(request: HostRequest, tell: Tell) -> None:
    loaded = load(Path(request.folder))
    device = Device() if request.has_gpu else None
    too_large = ""
    try:
        session = Session(request, loaded, device)
    except TooLarge as problem:
        if not request.is_timed:
            raise
        # what is not timed is smaller
        too_large = str(problem)
        untimed = msgspec.structs.replace(request, is_timed=False)
        session = Session(untimed, loaded, device)
    try:
        right = _all_right(request, tell, session)
        if right and too_large:
            tell(Timed(SpeedResult("not graded", too_large, {})))
        elif right and session.is_timed:
            if request.is_held:
                read_message(sys.stdin.buffer, _MOST_ASKED_BYTES)
            _time(tell, session)
    finally:
        session.close()


def _all_right(request: HostRequest, tell: Tell, session: Session) -> bool:
    """Try the cases; a source that loses its process gets another one."""
    right, starts = True, 0
    if not request.cases:
        problem = session.start()
        tell(session.began())
        return not problem
    for number, case in enumerate(request.cases):
        if not session.has_learner:
            if starts == _MOST_STARTS:
                return False
            starts += 1
            problem = session.start()
            tell(session.began())
            if problem:
                # it can't even be loaded: no other case will be better
                tell(Trying(case.about, number))
                tell(Tried(session.refused(case, problem)))
                return False
        tell(Trying(case.about, number))
        result = session.tried(case)
        tell(Tried(result))
        right = right and result.passed
    return right


def _time(tell: Tell, session: Session) -> None:
    tell(Trying(TIMED_CALLS))
    sizes = session.timed_sizes
    try:
        timed = session.timed()
    except WrongOutput as problem:
        wrong = DeviceCase(
            TIMED_CALLS, False, False, problem.kind, str(problem), dict(sizes)
        )
        tell(Tried(wrong))
        return
    except Disturbed as problem:
        tell(Timed(SpeedResult("too busy", str(problem), dict(sizes))))
        return
    if timed.until_ns:
        tell(Tried(DeviceCase(TIMED_CALLS, False, True, sizes=dict(sizes))))
    tell(Timed(timed.result, timed.flags, timed.since_ns, timed.until_ns))


if __name__ == "__main__":
    main()
