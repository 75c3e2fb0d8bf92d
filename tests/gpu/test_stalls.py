"""Stalls on a real GPU: twelve planted faults, found on their lines with the reason.

    pytest -m gpu -s tests/gpu/test_stalls.py

`stalls/kernels.cu` and `stalls/triton_kernels.py` name their faults themselves. What is
printed is kept in `docs/evidence/stalls.md`.
"""

from __future__ import annotations

import csv
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.gpu.notebook import Notebook
from tests.gpu.stalls.planted import planted
from warpbook_profiler.model.stalls import KernelStalls
from warpbook_profiler.stalls.line_table import LineTable

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
FAULTS = {fault.name: fault for fault in planted()}
RUNS = 3
#: of the twelve
LEAST_FOUND = 11
#: a warp that is issued, or could be, does not wait
NO_WAITS = ("selected", "not_selected")
NOBODY = "65534"


@cache
def sampled(name: str) -> tuple[KernelStalls, ...]:
    """Return what several runs of a kernel gave."""
    from tests.gpu.stalls.exam import runs, stalls

    runs()[name]()
    return tuple(stalls(name).kernels[0] for _ in range(RUNS))


def test_faults_are_found_on_their_lines() -> None:
    found = 0
    print()
    for name, fault in FAULTS.items():
        kernel = sampled(name)[0]
        said = []
        is_found = False
        for line in kernel.lines[:2]:
            waits = [one for one in line.reasons if one not in NO_WAITS][:2]
            share = 100 * line.samples / kernel.samples
            said.append(f"line {line.line} {share:.0f} % ({', '.join(waits)})")
            is_found |= line.line == fault.line and bool(fault.reasons & {*waits})
        found += is_found
        verdict = "found" if is_found else "NOT FOUND"
        print(
            f"| {fault.language} | {name} | {fault.line} | {'; '.join(said)} | "
            f"{kernel.samples:,} | {verdict} |"
        )
    print(f"found: {found} of {len(FAULTS)}")
    assert found >= LEAST_FOUND


def test_shares_are_the_same_in_each_run() -> None:
    worst = 0.0
    for name in FAULTS:
        shares: dict[int, list[float]] = defaultdict(list)
        for kernel in sampled(name):
            for line in kernel.lines:
                shares[line.line].append(line.samples / kernel.samples)
        for of_line in shares.values():
            least = min(of_line) if len(of_line) == RUNS else 0.0
            worst = max(worst, max(of_line) - least)
    print(f"\na line's share differs by up to {100 * worst:.1f} % in {RUNS} runs")
    assert worst <= 0.05


def test_kernels_and_profiles_are_as_before() -> None:
    timed()
    before, seen = timed(), recorded()
    for name in FAULTS:
        sampled.__wrapped__(name)
    after, seen_after = timed(), recorded()
    ratios = {name: after[name] / before[name] for name in FAULTS}
    print("\n" + ", ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()))
    print(f"kernels in a profile of torch, before: {seen}, after: {seen_after}")
    assert all(0.98 <= ratio <= 1.02 for ratio in ratios.values())
    assert seen == seen_after
    assert sorted(seen) == sorted(FAULTS)


def timed() -> dict[str, float]:
    """Return each kernel's median time on the GPU in ms."""
    import torch

    from tests.gpu.stalls.exam import runs

    times = {}
    for name, run in runs().items():
        for _ in range(3):
            run()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(102)]
        for event in events:
            event.record()
            run()
        torch.cuda.synchronize()
        times[name] = statistics.median(
            one.elapsed_time(two) for one, two in pairwise(events)
        )
    return times


def recorded() -> dict[str, int]:
    """Return how many kernels of each name a profile of torch has."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from tests.gpu.stalls.exam import runs
    from warpbook_profiler.capture.cupti import let_go

    # as a profiled cell does: attached, CUPTI does not see kernels being loaded
    with (
        let_go(),
        profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled,
    ):
        for run in runs().values():
            run()
        torch.cuda.synchronize()
    averages = profiled.key_averages()
    return {one.key: one.count for one in averages if one.key in FAULTS}


def test_nsight_compute_names_the_same_lines(tmp_path: Path) -> None:
    if shutil.which("ncu") is None:
        pytest.skip("no ncu")
    from tests.gpu.stalls.exam import known_cubins, runs, stalls

    began_s = time.monotonic()
    own = {name: stalls(name).kernels[0].lines[0].line for name in runs()}
    own_s = time.monotonic() - began_s
    program = (
        "from tests.gpu.stalls.exam import runs\nfor run in runs().values(): run()"
    )
    python = [sys.executable, "-c", program]
    report = tmp_path / "report.ncu-rep"
    names = f"regex:^({'|'.join(FAULTS)})$"
    alone_s = run_s(*python)
    ncu_s = run_s(
        *("ncu", "--section", "SourceCounters", "-k", names, "-o", str(report)),
        *python,
    )
    page = ["ncu", "--import", str(report), "--page", "source", "--csv"]
    text = subprocess.run(page, check=True, capture_output=True, text=True).stdout
    tables = [LineTable(cubin) for cubin in known_cubins.values()]
    theirs = {
        name: first_line(tables, name, samples)
        for name, samples in ncu_samples(text).items()
    }
    print()
    for name in FAULTS:
        print(f"| {name} | {own[name]} | {theirs.get(name)} |")
    same = sum(own[name] == theirs.get(name) for name in FAULTS)
    print(f"the same first line: {same} of {len(FAULTS)}")
    print(f"{own_s:.1f} s; ncu {ncu_s:.1f} s, the program alone {alone_s:.1f} s")
    assert same >= LEAST_FOUND
    assert own_s < ncu_s - alone_s


def run_s(*command: str) -> float:
    path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    began_s = time.monotonic()
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": path},
        timeout=200,
    )
    return time.monotonic() - began_s


def ncu_samples(text: str) -> dict[str, list[int]]:
    """Return by kernel the samples of each instruction."""
    samples: dict[str, list[int]] = {}
    name, column = "", -1
    for row in csv.reader(text.splitlines()):
        if row[:1] == ["Kernel Name"]:
            name, column = row[1], -1
            samples[name] = []
        elif "# Samples" in row:
            column = row.index("# Samples")
        elif name and 0 <= column < len(row):
            samples[name].append(int(row[column] or 0))
    return samples


def first_line(tables: list[LineTable], name: str, samples: list[int]) -> int:
    (table,) = (one for one in tables if name in one.functions)
    lines: Counter[int] = Counter()
    for at, count in enumerate(samples):
        calls = table.calls(name, 16 * at)
        if calls:
            lines[next(one.line for one in calls if one.path == calls[-1].path)] += (
                count
            )
    return lines.most_common(1)[0][0]


def test_kernels_that_are_loaded_between_samplings_are_sampled() -> None:
    import torch

    from warpbook_profiler.stalls.sampler import sampling

    x = torch.ones(1 << 22, device="cuda")
    for load in (x.sin_, x.erf_, x.lgamma_):
        load()
        with sampling(8) as samples:
            load()
            torch.cuda.synchronize()
        assert len(samples.kernels) == 1
        assert samples.unseen == 0


def test_an_ordinary_user_samples(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("this is one already")
    program = """\
import os, torch
from warpbook_profiler.stalls.sampler import sampling
x = torch.randn(1 << 24, device="cuda")
with sampling(10) as samples:
    x.sin()
    torch.cuda.synchronize()
print(os.getuid(), *(len(kernel.offsets) for kernel in samples.kernels.values()))
"""
    ran = subprocess.run(
        ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        + ["--inh-caps=-all", sys.executable, "-c", program],
        env={**os.environ, "HOME": str(tmp_path)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )
    print(f"\n{ran.stdout}{ran.stderr[-500:]}")
    user, *instructions = ran.stdout.split()
    assert user == NOBODY
    assert int(instructions[0]) > 10


SETUP = """\
import signal, torch, triton
import triton.language as tl

@triton.jit
def slow(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + (at * 4099 & 0xFFFFFF))
    tl.store(y + at, v + tl.max(v, 0))

@torch.compile
def fused(x):
    a = torch.sin(x) * x
    return a + torch.exp(x)

x = torch.randn(1 << 24, device="cuda")
y = torch.empty_like(x)
ran = 0
fused(x)
slow[(1 << 16,)](x, y, 256)
"""


def test_a_cell_is_sampled_on_copies(shared_notebook: Callable[[], Notebook]) -> None:
    notebook = shared_notebook()
    notebook.run("import os; os.environ['INDUCTOR_PROVENANCE'] = '1'")
    notebook.run(SETUP)
    notebook.run(
        "%%gpuprof -q -o p --stalls\n"
        "ran += 1\nslow[(1 << 16,)](x, y, 256)\nz = fused(x)\nw = torch.cumsum(x, 0)"
    )
    assert notebook.value("ran") == 1
    stalls = notebook.value("p.to_dict()['stalls']")
    print(f"\n{stalls['state']}: {stalls['note']} {stalls['seconds']:.2f} s")
    files = [file["name"] for file in stalls["files"]]
    for kernel in stalls["kernels"]:
        lines = [(files[one["file"]], one["line"]) for one in kernel["lines"][:3]]
        origins = [(files[one["file"]], one["line"]) for one in kernel["origins"]]
        print(
            kernel["name"][:60], kernel["language"], kernel["launches"], lines, origins
        )
    assert stalls["state"] == "sampled"
    kernels = {kernel["language"]: kernel for kernel in stalls["kernels"]}
    assert kernels.keys() == {"triton", "inductor", ""}
    first = kernels["triton"]["lines"][0]
    assert files[first["file"]] == "cell"
    text = stalls["files"][first["file"]]["text"].splitlines()
    assert "tl." in text[first["line"] - 1]
    assert {files[one["file"]] for one in kernels["inductor"]["origins"]} == {"cell"}
    assert not kernels[""]["lines"]


def test_a_cell_that_is_interrupted_leaves_the_sampler_off(
    shared_notebook: Callable[[], Notebook],
) -> None:
    notebook = shared_notebook()
    notebook.run(SETUP)
    cell = "%%gpuprof -q -o p --stalls rerun\nran += 1\n_ = y.mul_(1.0)"
    notebook.run(cell + "\nif ran == 2: signal.raise_signal(signal.SIGINT)")
    stalls = notebook.value("p.to_dict()['stalls']")
    assert (stalls["state"], notebook.value("ran")) == ("failed", 2)
    assert "interrupted" in stalls["note"]
    profile = notebook.profile("_ = y.mul_(1.0)")
    assert profile["kernel_calls"] == 1
    notebook.run(cell)
    stalls = notebook.value("p.to_dict()['stalls']")
    assert stalls["state"] == "sampled"
    assert "ran a second time" in stalls["note"]


def test_a_cell_of_cupy_is_sampled_when_it_runs_itself_again(
    shared_notebook: Callable[[], Notebook],
) -> None:
    pytest.importorskip("cupy")
    notebook = shared_notebook()
    source = (ROOT / "tests" / "gpu" / "stalls" / "kernels.cu").read_text()
    notebook.run(
        "import cupy\n"
        f"module = cupy.RawModule(code={source!r}, options=('-lineinfo',))\n"
        "chain = module.get_function('long_chain')\n"
        "a, o = cupy.random.rand(1 << 20, dtype=cupy.float32), cupy.empty(1 << 20)"
    )
    cell = "chain((132,), (128,), (a, o, cupy.int32(20000)))"
    notebook.run(f"%%gpuprof -q -o p --stalls\n{cell}")
    on_copies = notebook.value("p.to_dict()['stalls']")
    print(f"\n{on_copies['state']}: {on_copies['note']}")
    assert on_copies["state"] == "refused"
    notebook.run(f"%%gpuprof -q -o p --stalls rerun\n{cell}")
    stalls = notebook.value("p.to_dict()['stalls']")
    (kernel,) = stalls["kernels"]
    first = kernel["lines"][0]
    assert first["line"] == FAULTS["long_chain"].line
    assert stalls["files"][first["file"]]["text"] == source


def test_a_cell_that_loses_the_context_leaves_the_kernel_alive(
    notebook: Notebook,
) -> None:
    notebook.run(SETUP)
    ran = notebook.try_run(
        "%%gpuprof -q -o p --stalls rerun\nran += 1\ny.mul_(1.0)\n"
        "i = torch.full((1,), 0 if ran == 1 else 1 << 30, device='cuda')\nz = y[i]"
    )
    print(f"\n{ran.error} {ran.text[-300:]}")
    assert notebook.value("1 + 1") == 2
    stalls = notebook.value("p.to_dict()['stalls']")
    print(f"{stalls['state']}: {stalls['note']}")
    assert stalls["state"] == "failed"
