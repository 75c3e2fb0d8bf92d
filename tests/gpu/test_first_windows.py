"""The first windows of several GPUs' counters, read at once, do not end the process.

Needs more than one GPU, four to be sure: `pytest -m two_gpus -s tests/gpu`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.two_gpus

PROCESSES = 48
#: as the server does: every GPU has a thread, and all of them begin at the same tick
OURS = """
import time
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.sampling.sampler import Sampler

sampler = Sampler([NvmlSource()])
sampler.open()
for _ in range(2):
    with sampler.watch("a test"):
        time.sleep(0.6)
frame = sampler.newest
for device, reading in zip(sampler.devices, frame.readings):
    if device.index is not None:
        values = dict(zip([each.name for each in device.metrics], reading.values))
        assert values["sm_active_ratio"] is not None, reading
sampler.close()
"""
#: the same with the binding alone, to see whether NVML still needs our care
PLAIN = """
import threading, time, pynvml
pynvml.nvmlInit()
gpus = [
    pynvml.nvmlDeviceGetHandleByIndex(number)
    for number in range(pynvml.nvmlDeviceGetCount())
]
begin = threading.Barrier(len(gpus))

def read(gpu):
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = 1
    request.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
    request.sample1 = pynvml.nvmlGpmSampleAlloc()
    request.sample2 = pynvml.nvmlGpmSampleAlloc()
    begin.wait()
    pynvml.nvmlGpmSampleGet(gpu, request.sample1)
    time.sleep(0.1)
    pynvml.nvmlGpmSampleGet(gpu, request.sample2)
    pynvml.nvmlGpmMetricsGet(request)

threads = [threading.Thread(target=read, args=(gpu,)) for gpu in gpus]
[each.start() for each in threads]
[each.join() for each in threads]
"""


def run(script: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stderr


def test_the_first_windows_of_all_gpus_at_once_end_no_process() -> None:
    with ThreadPoolExecutor(6) as pool:
        ours = list(pool.map(run, [OURS] * PROCESSES))
        plain = Counter(code for code, _ in pool.map(run, [PLAIN] * PROCESSES))
    ended = Counter(code for code, _ in ours)
    print("\n| read by | processes | ended by SIGSEGV | otherwise |")
    print("|---|---|---|---|")
    for name, codes in (("warpbook", ended), ("the binding alone", plain)):
        others = PROCESSES - codes[0] - codes[-11]
        print(f"| {name} | {PROCESSES} | {codes[-11]} | {others} |")
    assert ended == {0: PROCESSES}, next(words for code, words in ours if code)
