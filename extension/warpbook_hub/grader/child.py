"""Grades one job: reads the order on stdin, writes the outcome on stdout, and ends.

It is a process of its own, so that a job that takes it down takes nothing else. One
that is started before its job is there is given a lab to get ready for.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

import msgspec

from warpbook.hub_protocol import GRADER_MESSAGE_BYTES, JobOrder
from warpbook_hub.grader.engine import NotGraded
from warpbook_hub.grader.labs import CantGrade, get_ready, grade
from warpbook_labs.errors import TooBusy

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    # what a library prints is no part of the answer
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if len(sys.argv) > 1:
        get_ready(sys.argv[1])
    order = msgspec.json.decode(
        sys.stdin.buffer.read(GRADER_MESSAGE_BYTES), type=JobOrder
    )
    try:
        outcome = msgspec.json.encode(grade(order))
    except CantGrade as problem:
        outcome = msgspec.json.encode(NotGraded(str(problem)))
    except TooBusy as problem:
        outcome = msgspec.json.encode(NotGraded(str(problem), is_busy=True))
    with answer:
        answer.write(outcome)


if __name__ == "__main__":
    main()
