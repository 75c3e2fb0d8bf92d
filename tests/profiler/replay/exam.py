"""Cells of everyday work on an H100: their traces, and what they take bare.

`times_ms.json` has median, fastest and slowest of seven synchronised runs in the same
process: before the profile, after it, and of the cell that an expert changed.
"""

import json
from pathlib import Path

from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.bare_run import BareTimes

EXAM = Path(__file__).parents[2] / "data" / "exam_h100"
H200 = Path(__file__).parents[2] / "data" / "traces"
TRACES = sorted([*EXAM.glob("*.json.gz"), *H200.glob("*.json.gz")])
TIMES_MS: dict[str, dict[str, list[float]]] = json.loads(
    (EXAM / "times_ms.json").read_text()
)
#: cells of which the GPU decides how long they take, and those of the host
BY_GPU = ("attention_by_hand", "batches_from_pageable", "fp32_linear_stack")
BY_HOST = ("adam_loop_over_tensors", "loss_item_each_step", "resnet18_one_image")


def times(name: str) -> BareTimes:
    """What the cell took before the profile."""
    median_ns, least_ns, most_ns = (
        round(time_ms * 1e6) for time_ms in TIMES_MS[name]["before"]
    )
    return BareTimes(7, median_ns, least_ns, most_ns, "executions")


def read(name: str) -> tuple[Columns, Run]:
    return read_chrome_trace(str(EXAM / f"{name}.json.gz"))
