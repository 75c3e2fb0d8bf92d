"""The lines of a learner's Python from which a value came."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from warpbook_labs.results.line_distances import in_order
from warpbook_labs.sandbox.following import Follower

FILE = "solution.py"


def followed(source: str, *arguments: Any) -> tuple[Any, Follower]:
    """Call `answer` of a source, and follow it."""
    follower = Follower(source, FILE)
    module: dict[str, Any] = {}
    with follower.watching():
        exec(compile(source, FILE, "exec"), module)
        answer = module["answer"](*arguments)
    return answer, follower


CHOICE = """
RATES = {"a": 2}

def scaled(x):
    return x * RATES["a"]

def answer(x):
    unused = x + 1
    if x > 3:
        y = scaled(x)
    else:
        y = -x
    return y
"""


def test_an_answer_names_what_computed_it_and_what_decided_and_nothing_else() -> None:
    large, follower = followed(CHOICE, 5)
    assert large == 10 and set(follower.result) == {2, 5, 9, 10, 13}
    assert in_order(follower.result)[0] == 13
    small, follower = followed(CHOICE, 1)
    assert small == -1 and set(follower.result) == {9, 12, 13}


def test_what_is_changed_in_place_is_known_by_every_name_of_it() -> None:
    source = """
def fill(held, value):
    held.append(value)

def answer(x):
    first = []
    other = first
    fill(other, x)
    return first
"""
    answer, follower = followed(source, 3)
    assert answer == [3] and {3, 6, 8, 9} <= set(follower.result)


def test_a_branch_that_was_not_taken_may_be_at_fault() -> None:
    source = """
def answer(x):
    missed = 0
    if x > 100:
        missed = missed + 1
    return missed
"""
    _, follower = followed(source, 3)
    assert set(follower.result) == {3, 4, 6}


def test_a_loop_names_its_head_and_an_early_return_what_let_it_pass() -> None:
    source = """
def answer(x):
    if not x:
        return 0
    total = 0
    for each in x:
        total += each
    return total
"""
    _, follower = followed(source, [1, 2])
    assert set(follower.result) == {3, 5, 6, 7, 8}


def test_settings_of_modules_are_kept_apart() -> None:
    source = """
import types
tools = types.ModuleType("tools")

def answer(x):
    tools.speed = x
    setattr(tools, "mode", x)
    return x
"""
    _, follower = followed(source, 1)
    assert set(follower.settings()) == {6, 7} and set(follower.result) == {8}


@pytest.mark.parametrize("most", [1, 2])
def test_a_statement_of_several_lines_counts_as_one(most: int) -> None:
    source = """
def answer(x):
    y = (
        x
        + x
    )
    return max(
        y,
        x,
    )
"""
    _, follower = followed(source, 2)
    named = set(follower.named(follower.result, most))
    assert named <= ({7, 8, 9} if most == 1 else {3, 4, 5, 7, 8, 9}) and 8 in named


def test_what_was_there_to_watch_is_there_again() -> None:
    before = sys.gettrace()
    followed(CHOICE, 1)
    assert sys.gettrace() is before
