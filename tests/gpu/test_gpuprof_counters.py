"""Tensor share and occupancy of a profile, against the chip's own counters.

    pytest -m gpu -s tests/gpu/test_gpuprof_counters.py

The share is held against GPM over the same window, the occupancy against Nsight Compute
(`ncu`), which replays each kernel in a process of its own.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.notebook import Notebook

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

GPM_SETUP = """
import time, torch
from warpbook.kernel.link.allocator import gpu_uuid
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.gpm import GpmWindow
half = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
single = torch.randn(8192, 8192, device="cuda")
gpu = nvml.call("nvmlDeviceGetHandleByUUID", gpu_uuid(0).encode())
window = GpmWindow(("sm_active_ratio", "tensor_active_ratio", "fp32_active_ratio"))
torch.set_float32_matmul_precision("highest")

def seconds_each(matrix):
    matrix @ matrix
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(20):
        matrix @ matrix
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / 20

half_s, single_s = seconds_each(half), seconds_each(single)
"""
#: a second and a half, in rounds of 60 ms; GPM needs 100 ms at least
ROUNDS = """
window.rest()
window.read(gpu)
for _ in range(25):
    for _ in range(round({share} * 0.06 / half_s)):
        half @ half
    for _ in range(round((1 - {share}) * 0.06 / single_s)):
        single @ single
torch.cuda.synchronize()
seen = window.read(gpu)
"""


def test_the_tensor_share_is_what_gpm_sees_of_the_tensor_cores(
    notebook: Notebook,
) -> None:
    """In a mix they are active for their share of what they are when alone."""
    notebook.run(GPM_SETUP)
    print("\n", notebook.value("[half_s, single_s]"), "s a product")
    cells = {f"bf16 {share:.0%}, rest fp32": share for share in (1, 0.75, 0.5, 0.25, 0)}
    by_name = {
        name: measured(notebook, ROUNDS.format(share=share))
        for name, share in cells.items()
    }
    notebook.run(
        'torch.set_float32_matmul_precision("high")\nsingle_s = seconds_each(single)'
    )
    by_name["tf32"] = measured(notebook, ROUNDS.format(share=0))
    print(
        "| cell | tensor share of kernel time | not known | busy | GPM tensor active |"
    )
    print("|---|---|---|---|---|")
    for name, (share, unknown, busy, gpm) in by_name.items():
        print(f"| {name} | {share:.3f} | {unknown:.3f} | {busy:.3f} | {gpm:.3f} |")
    alone_share, _, alone_busy, alone = by_name["bf16 100%, rest fp32"]
    wrong = []
    if alone_share < 0.99 or alone < 0.7:
        wrong.append("bf16 alone")
    for name in cells:
        share, unknown, busy, gpm = by_name[name]
        expected = alone * share * busy / (alone_share * alone_busy)
        if unknown > 0.01 or abs(gpm - expected) > 0.08:
            wrong.append(f"{name}: {expected:.3f} was expected of GPM")
    share, _, _, gpm = by_name["tf32"]
    if share < 0.99 or gpm < 0.3:
        wrong.append("tf32")
    assert not wrong


def measured(notebook: Notebook, cell: str) -> tuple[float, float, float, float]:
    """Give the tensor share, the share not known, the busy share, and GPM's."""
    figures = notebook.profile(cell)
    metrics = figures["metrics"]
    seen = notebook.value("seen")
    print(f"    GPM: SM {seen[0]}, tensor {seen[1]}, FP32 {seen[2]}")
    return (
        metrics["tensor_core_share"],
        metrics["tensor_core_unknown_ns"] / metrics["kernel_time_ns"],
        figures["gpu_busy_ns"] / figures["wall_ns"],
        seen[1],
    )


#: by operation: what it runs
OPERATIONS = {
    "pointwise": "x + 1",
    "sum": "x.sum()",
    "softmax": "torch.softmax(rows, -1)",
    "layer norm": "torch.nn.functional.layer_norm(rows, (4096,))",
    "bf16 product": "half @ half",
    "fp32 product": "single @ single",
    "attention, bf16": "torch.nn.functional.scaled_dot_product_attention(q, q, q)",
    "few blocks": "few + 1",
}
OPERANDS = """
import torch
torch.manual_seed(0)
x = torch.randn(1 << 26, device="cuda")
few = torch.randn(1 << 15, device="cuda")
rows = torch.randn(8192, 4096, device="cuda")
half = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
single = torch.randn(4096, 4096, device="cuda")
q = torch.randn(4, 16, 4096, 128, device="cuda", dtype=torch.bfloat16)
"""
ACHIEVED = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL = "sm__maximum_warps_per_active_cycle_pct"
WAVES = "launch__waves_per_multiprocessor"
DURATION = "gpu__time_duration.sum"


def test_the_occupancy_is_what_ncu_says(notebook: Notebook, tmp_path: Path) -> None:
    """It is the most that the launch allows; what is achieved is printed beside it."""
    kernels = ncu_kernels(tmp_path)
    notebook.run(f"{OPERANDS}_ = {'; _ = '.join(OPERATIONS.values())}")
    rows, wrong = [], []
    for name, code in OPERATIONS.items():
        # a last expression would be shown, which takes dozens of kernels
        figures = notebook.profile(f"_ = {code}")
        ours = 100 * (figures["metrics"]["occupancy_share"] or 0.0)
        mine, kernels = (
            kernels[: figures["kernel_calls"]],
            kernels[figures["kernel_calls"] :],
        )
        if len(mine) < figures["kernel_calls"]:
            wrong.append(f"{name}: ncu saw fewer kernels than the profile")
            continue
        time_ns = sum(kernel[DURATION] for kernel in mine)
        allowed, achieved = (
            sum(kernel[DURATION] * value(kernel) for kernel in mine) / time_ns
            for value in (
                lambda kernel: kernel[THEORETICAL] * min(kernel[WAVES], 1),
                lambda kernel: kernel[ACHIEVED],
            )
        )
        longest = max(mine, key=lambda kernel: kernel[DURATION])["name"]
        rows.append(
            f"| {name} | {longest[:50]} | {ours:.1f} | {allowed:.1f} | {achieved:.1f} |"
        )
        if abs(ours - allowed) > 3:
            wrong.append(f"{name}: {ours:.1f} and {allowed:.1f} %")
    print("\n| operation | kernel | ours % | ncu: allowed % x waves | achieved % |")
    print("|---|---|---|---|---|", *rows, sep="\n")
    if kernels:
        wrong.append(f"ncu saw {len(kernels)} kernels more: {kernels}")
    assert not wrong


def ncu_kernels(folder: Path) -> list[dict[str, Any]]:
    """Give name and counters of each kernel of the operations, in order."""
    program = shutil.which("ncu")
    assert program is not None, "ncu (Nsight Compute) is not on PATH"
    # once as they are: libraries choose and load their kernels
    measured = "\n".join(
        f"torch.cuda.profiler.start(); {code}; torch.cuda.synchronize(); "
        "torch.cuda.profiler.stop()"
        for code in OPERATIONS.values()
    )
    warm = "\n".join(OPERATIONS.values())
    script = folder / "operations.py"
    script.write_text(f"{OPERANDS}{warm}\ntorch.cuda.synchronize()\n{measured}\n")
    log = folder / "ncu.csv"
    done = subprocess.run(
        [
            *(program, "--profile-from-start", "off", "--clock-control", "none"),
            *("--metrics", ",".join((ACHIEVED, THEORETICAL, WAVES, DURATION))),
            *("--csv", "--print-units", "base", "--log-file", str(log)),
            *(sys.executable, str(script)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    text = log.read_text() if log.exists() else ""
    assert "ERR_NVGPUCTRPERM" not in text + done.stdout, (
        "ncu may not read counters here: run as root, or have the driver loaded with "
        "NVreg_RestrictProfilingToAdminUsers=0"
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{text[-3000:]}"
    kernels = read_ncu(text)
    assert kernels, f"ncu told of no kernel:\n{text[-3000:]}"
    return kernels


def read_ncu(text: str) -> list[dict[str, Any]]:
    """Read ncu's CSV, which has a row for each metric, or a column."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    kernels: dict[str, dict[str, Any]] = {}
    for row in csv.DictReader(lines):
        if not row["ID"]:
            continue  # the units of the columns
        kernel = kernels.setdefault(row["ID"], {"name": row["Kernel Name"]})
        values = (
            {row["Metric Name"]: row["Metric Value"]} if "Metric Name" in row else row
        )
        for name, value in values.items():
            if name in (ACHIEVED, THEORETICAL, WAVES, DURATION):
                kernel[name] = float(re.sub(",", "", value))
    return list(kernels.values())
