"""What a worker of Ray runs: one job, in a process that knows nothing of Ray."""

from __future__ import annotations

import os
from collections.abc import Sequence

from warpbook.hub_protocol import JobOrder
from warpbook_hub.grader.engine import JobEnd
from warpbook_hub.grader.job_run import Bounds, JobRun

#: names, on a node, the account that grades there; empty: the node's own
GRADED_USER = "WARPBOOK_HUB_GRADED_USER"


def run_job(order: JobOrder, bounds: Bounds, command: Sequence[str]) -> JobEnd:
    """Run a job to its end.

    Its environment is made anew: no token, and no address of Ray's. When Ray
    cancels it, the interrupt ends the job's process and all that it started.
    """
    user = os.environ.get(GRADED_USER, "")
    return JobRun(order, bounds, command, user=user).ended()
