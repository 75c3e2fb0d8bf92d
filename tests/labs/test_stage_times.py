"""Seconds of the stages of a grading, noted where somebody has asked for them."""

from __future__ import annotations

import threading

import pytest

from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load
from warpbook_labs.results.stage_times import add_stage, noted_stages, stage


def test_stages_of_all_threads_are_added_up() -> None:
    with noted_stages() as seconds:
        threads = [
            threading.Thread(target=add_stage, args=("GPU cases", 0.5))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with stage("compile"), stage("quiet GPU"):
            pass
    assert seconds["GPU cases"] == 2.0
    assert set(seconds) == {"GPU cases", "compile", "quiet GPU"}


def test_nothing_is_noted_where_nobody_asks() -> None:
    with noted_stages() as seconds:
        pass
    add_stage("compile", 1.0)
    assert seconds == {}


def test_a_stage_that_fails_has_its_time() -> None:
    with noted_stages() as seconds:
        with pytest.raises(ValueError), stage("correctness"):
            raise ValueError
    assert set(seconds) == {"correctness"}


def test_a_submission_has_the_time_of_its_check() -> None:
    lab = load(CATALOGUE / "kernels" / "vector_add")
    with noted_stages() as seconds:
        result = grader_of(lab.lab).grade(
            Submission(lab, lab.reference, 5, use_gpu=False)
        )
    assert result.status == "passed"
    assert set(seconds) == {"correctness"} and seconds["correctness"] > 0
