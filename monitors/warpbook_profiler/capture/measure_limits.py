"""Measures what work takes on the GPUs here and their host, in a process of its own.

    python -m warpbook_profiler.capture.measure_limits [--again | --ceilings]

With `--ceilings` only what a datasheet would say is measured, in seconds, and not kept.
"""

from __future__ import annotations

import os
import platform
import sys
import time

import msgspec

# before torch reads it: a pool of processes that compile would outlive the measuring
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
import torch

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call
from warpbook_monitors.plain_text import bounded
from warpbook_profiler.capture.gpu_work import ceilings_work, gpu_work
from warpbook_profiler.capture.host_work import host_curves
from warpbook_profiler.capture.limits import Answer, alone, load, save
from warpbook_profiler.capture.work_times import gpu_curves
from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.model.limits import Limits

_IDLE_PERCENT, _PATIENCE_S = 5, 3.0
_LEAST_FREE_BYTES = 4 << 30
_MOST_WORDS = 200


class _NotNow(Exception):
    """A GPU that can't be measured as things are; the message says what to do."""


def main(again: bool, only_ceilings: bool) -> Answer:
    """Measure every GPU that was not measured before."""
    if not torch.cuda.is_available():
        return Answer(problem=f"torch {torch.__version__} finds no GPU here.")
    try:
        with alone():
            return Answer(
                tuple(
                    _limits(index, again, only_ceilings)
                    for index in range(torch.cuda.device_count())
                )
            )
    except (_NotNow, TraceError) as reason:
        return Answer(problem=str(reason))
    except OSError as problem:
        return Answer(problem=f"they can't be saved: {problem}.")


def _limits(index: int, again: bool, only_ceilings: bool) -> Limits:
    driver, torch_version = _driver(), str(torch.__version__)
    # torch before 2.5 does not tell it
    properties = torch.cuda.get_device_properties(index)
    uuid = f"GPU-{getattr(properties, 'uuid', index)}"
    known = None if again or only_ceilings else load(uuid, driver, torch_version)
    if known is not None:
        return known
    if _is_busy(uuid):
        raise _NotNow(
            f"GPU {index} is in use. Wait until it is free: other work would distort "
            "the limits."
        )
    with torch.cuda.device(index):
        if torch.cuda.mem_get_info()[0] < _LEAST_FREE_BYTES:
            raise _NotNow(
                f"GPU {index} has too little free memory. Stop the processes that hold "
                "it."
            )
        of_host, left_out = ({}, []) if only_ceilings else host_curves()
        work = ceilings_work() if only_ceilings else gpu_work()
        curves, left_out_too = gpu_curves(work)
    limits = Limits(
        uuid=uuid,
        gpu=properties.name,
        host=platform.node(),
        driver=driver,
        torch=torch_version,
        measured_ms=time.time() * 1000,
        curves=of_host | curves,
        left_out=tuple(
            bounded(words, _MOST_WORDS) for words in (*left_out, *left_out_too)
        ),
    )
    if not only_ceilings:
        save(limits)
    return limits


def _driver() -> str | None:
    try:
        return str(call("nvmlSystemGetDriverVersion"))
    except MonitorError:
        return None


def _is_busy(uuid: str) -> bool:
    """Tell whether somebody works on it; what was done a second ago counts a while."""
    until_s = time.monotonic() + _PATIENCE_S
    try:
        gpu = call("nvmlDeviceGetHandleByUUID", uuid.encode())
        while call("nvmlDeviceGetUtilizationRates", gpu).gpu > _IDLE_PERCENT:
            if time.monotonic() > until_s:
                return True
            time.sleep(0.2)
    except MonitorError:
        pass  # it does not tell
    return False


if __name__ == "__main__":
    options = sys.argv[1:]
    # what torch and its compiler print is no answer
    stdout, sys.stdout = sys.stdout, sys.stderr
    answer = main("--again" in options, "--ceilings" in options)
    stdout.buffer.write(msgspec.json.encode(answer))
