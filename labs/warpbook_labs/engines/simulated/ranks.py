"""Has a lab's ranks run, each in a process of its own; the parent carries messages.

It reads none of what ranks and the lab's `run` say to one another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from warpbook_labs.engines.simulated.messages import Ask, HostRuns, RunOnRanks
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.kept import KeptProcessError
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import Outcome, Status
from warpbook_labs.sandbox.progress import Steps
from warpbook_labs.sandbox.work import Answer, Refused


def run_on_ranks(
    job: RunOnRanks, limits: Limits, steps: Steps | None
) -> Outcome[HostRuns]:
    """Do a job whose ranks are asked by it.

    Raises:
        NotInstalled: PyTorch is not installed.
        TooBusy: the machine has no CPU time for it.
    """
    began, asked = time.monotonic(), "The process that answers all ranks"
    ranks: dict[str, Callable[[bytes], bytes]] = {}
    with ExitStack() as stack:
        try:
            run = stack.enter_context(warm.kept(RunOnRanks, limits, steps))
            content = msgspec.msgpack.encode(job)
            while isinstance(
                result := (answer := _answer(job, run(content))).result, Ask
            ):
                asked = result.process
                if asked not in ranks:
                    kept = warm.kept(RunOnRanks, limits)
                    ranks[asked] = stack.enter_context(kept)
                content = ranks[asked](result.content)
        except KeptProcessError as problem:
            words = f"{asked}: {problem}"
            status: Status = "timeout" if problem.is_late else "crashed"
            return Outcome(status, words, None, None, time.monotonic() - began)
    took_s = time.monotonic() - began
    return Outcome("done", "", result, answer.tier, took_s, answer.is_filtered)


def _answer(job: RunOnRanks, content: bytes) -> Answer[HostRuns | Ask | Refused]:
    return job.work.decoder.decode(content)
