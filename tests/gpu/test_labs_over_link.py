"""Rows of a table on the host that a kernel reads over the link, on a real GPU.

pytest -m gpu -s tests/gpu/test_labs_over_link.py

What the lab on zero-copy says, measured; and what its simulated machine refuses is too
slow on a real one, or wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.host.lane import run_on_gpu
from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import report

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ZERO_COPY = load(CATALOGUE / "streams" / "zero_copy")
#: ms of some rows at random places of 2 GiB, by bytes of a row: read by a kernel, and
#: gathered by the host, one thread or 16, and copied; GB/s of what is read in its order
MEASURE = """
import json, mmap, statistics, time, torch
from given import seen_by_gpu

held = mmap.mmap(-1, 2 << 30)
flat = torch.frombuffer(held, dtype=torch.float32).uniform_()
assert not int(torch.cuda.cudart().cudaHostRegister(flat.data_ptr(), 2 << 30, 3))


def taken_ms(work):
    work()
    took = []
    for _ in range(7):
        torch.cuda.synchronize()
        began_s = time.perf_counter()
        work()
        torch.cuda.synchronize()
        took.append((time.perf_counter() - began_s) * 1e3)
    return statistics.median(took)


found = {}
for row_bytes, picked in ((32, 65536), (128, 65536), (512, 32768), (1024, 16384),
                          (4096, 4096)):
    table = flat.view(-1, row_bytes // 4)
    seen = seen_by_gpu(table)
    which = torch.randint(len(table), (picked,), device="cuda")
    assert torch.equal(seen[which].cpu(), table[which.cpu()])
    found[row_bytes] = [picked, taken_ms(lambda: seen[which])]
    for threads in (1, 16):
        torch.set_num_threads(threads)
        found[row_bytes].append(taken_ms(lambda: table[which.cpu()].to("cuda")))
part = flat[: 64 << 20]
there, seen = torch.empty(64 << 20, device="cuda"), seen_by_gpu(part)
gb = part.nbytes / 1e9
rates = {
    "copied": gb / taken_ms(lambda: there.copy_(part, non_blocking=True)) * 1e3,
    "read by a kernel": gb / taken_ms(lambda: torch.add(seen, 1, out=there)) * 1e3,
    "written by a kernel": gb / taken_ms(lambda: seen.fill_(2.0)) * 1e3,
}
print(json.dumps([found, rates]))
"""


def test_what_the_lab_says_of_rows_over_the_link() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", MEASURE],
        cwd=ZERO_COPY.folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=200,
    )
    times, gb_per_s = json.loads(completed.stdout)
    print("\n| bytes a row | rows | kernel, ms | GB/s | host, ms | 16 threads, ms |")
    print("|---|---|---|---|---|---|")
    by_row = {}
    for row_bytes, (picked, kernel_ms, host_ms, threads_ms) in times.items():
        by_row[int(row_bytes)] = int(row_bytes) * picked / kernel_ms / 1e6
        print(
            f"| {row_bytes} | {picked:,} | {kernel_ms:.3f} | "
            f"{by_row[int(row_bytes)]:.1f} | {host_ms:.3f} | {threads_ms:.3f} |"
        )
    print("\n| all of 256 MiB in order | GB/s |\n|---|---|")
    for name, rate in gb_per_s.items():
        print(f"| {name} | {rate:.1f} |")
    # short rows are slow, long ones nearly as fast as the link; the host is slower
    assert by_row[32] < by_row[128] < 0.5 * by_row[1024]
    _, by_kernel_ms, *by_host_ms = times["1024"]
    assert min(by_host_ms) > 2 * by_kernel_ms
    # in order, a kernel reads about as fast as the copy engine writes: on an H200 a
    # little slower, on an H100 a little faster
    assert gb_per_s["copied"] == pytest.approx(gb_per_s["read by a kernel"], rel=0.2)
    # the simulated machine's figures, on GPUs as fast as the one that they are of
    if gb_per_s["copied"] > 0.9 * rates.PINNED_BYTES_PER_S / 1e9:
        assert by_row[1024] == pytest.approx(
            rates.MAPPED_READ_BYTES_PER_S / 1e9, rel=0.3
        )


@pytest.mark.parametrize("name", sorted(ZERO_COPY.wrong))
def test_what_is_refused_without_a_gpu_is_slow_or_wrong_on_one(name: str) -> None:
    cases = public_cases(ZERO_COPY.lab)
    source = ZERO_COPY.wrong[name]
    result = run_on_gpu(find_gpu(), Submission(ZERO_COPY, source), cases, True)
    speed = result.speed
    status = "not timed" if speed is None else speed.status
    ratio = None if speed is None else speed.of_limit
    part = "" if ratio is None else f"{ratio.median:.2f} of the limit"
    wrong = next((case.message for case in result.cases if not case.passed), "")
    print(f"\n| {name} | {result.right} of {result.of} | {status} | {part} | {wrong} |")
    assert result.right < result.of or status != "fast enough"


def test_no_copy_is_in_a_trace_of_it(tmp_path: Path) -> None:
    trace = tmp_path / "t.trace.json.gz"
    log = tmp_path / "t.jsonl.gz"
    grader_of(ZERO_COPY.lab).record_trace(
        find_gpu(), Submission(ZERO_COPY, ZERO_COPY.reference), trace, log
    )
    trace_report = report(*read_chrome_trace(str(trace)))
    assert [copy.kind for copy in trace_report.copies if "HtoD" in copy.kind] == []
    # what reads the rows takes longest by far
    first = max(trace_report.kernels, key=lambda kernel: kernel.time_ns)
    print(f"\n| {first.name} | {first.time_ns / 1e6:.3f} ms of {first.calls} |")
    assert "gather" in first.name.lower() or "index" in first.name.lower()
