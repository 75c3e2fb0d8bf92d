"""How far a check is, in words: also while it stands still, and never after its end."""

from __future__ import annotations

import re
import threading

import pytest

from warpbook_labs.course import check_progress
from warpbook_labs.course.check_progress import told_progress
from warpbook_labs.sandbox.progress import Steps


def test_a_check_that_stands_still_tells_its_time_and_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check_progress, "_QUICK_S", 0.0)
    monkeypatch.setattr(check_progress, "_TICK_S", 0.001)
    words: list[str] = []
    is_enough = threading.Event()

    def tell(text: str) -> None:
        words.append(text)
        if len(words) >= 10:
            is_enough.set()

    with told_progress(tell):
        steps = Steps(3)
        steps.add(1)
        # nothing more is done: only the time goes on
        assert is_enough.wait(30)
    assert re.fullmatch(r"Checked 1 of 3 cases, \d+ s\.", words[-1])
    count = len(words)
    # a process that ends late says nothing below another cell
    steps.add(2)
    assert len(words) == count


def test_a_check_without_steps_tells_its_time_and_a_quick_one_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words: list[str] = []
    with told_progress(words.append):
        Steps(3).add(3)
    assert words == []
    monkeypatch.setattr(check_progress, "_QUICK_S", 0.0)
    monkeypatch.setattr(check_progress, "_TICK_S", 0.001)
    is_told = threading.Event()

    def tell(text: str) -> None:
        words.append(text)
        is_told.set()

    with told_progress(tell):
        assert is_told.wait(30)
    assert re.fullmatch(r"Checking, \d+ s\.", words[0])
