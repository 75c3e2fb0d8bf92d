"""Which part of a script's run is looked at, on traces of real trainings."""

from pathlib import Path

from warpbook_profiler.events.columns import Category
from warpbook_profiler.files.read_trace import read_trace
from warpbook_profiler.files.script_run import after_beginnings

DATA = Path(__file__).parents[2] / "data"


def test_the_first_of_several_steps_is_left_out() -> None:
    events, run = read_trace(str(DATA / "exam_h100/loss_item_each_step.json.gz"))
    kept, later = after_beginnings(events, run)
    assert later.start_ns > run.start_ns
    assert kept.start_ns.min() >= later.start_ns
    assert later.notes == (
        "Looked at is what follows the first of 50 steps of the optimizer.",
    )
    kernels = len(events.only(Category.KERNEL))
    # of 50 equal steps one is gone; its last kernels may still run
    assert kernels * 48 // 50 <= len(kept.only(Category.KERNEL)) < kernels


def test_without_steps_it_begins_with_the_first_kernel() -> None:
    events, run = read_trace(str(DATA / "exam_h100/batches_from_pageable.json.gz"))
    kept, later = after_beginnings(events, run)
    assert len(kept.only(Category.KERNEL)) == len(events.only(Category.KERNEL))
    assert len(kept.only(Category.COPY)) == len(events.only(Category.COPY)) - 1
    assert "from its first kernel on" in later.notes[0]


def test_a_run_without_a_gpu_is_looked_at_as_a_whole() -> None:
    events, run = read_trace(str(DATA / "cpu/matmul.json.gz"))
    assert after_beginnings(events, run) == (events, run)
