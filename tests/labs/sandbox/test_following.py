"""The lines of a learner's Python from which a value came."""

from __future__ import annotations

import sys
from typing import Any

from warpbook_labs.sandbox.lines.follower import MOST_LINES, Follower
from warpbook_labs.sandbox.lines.objects import in_order

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
    assert set(follower.settings) == {6, 7} and set(follower.result) == {8}


def test_a_message_names_few_lines_and_the_nearest() -> None:
    steps = "\n".join(f"    x = x + {step}" for step in range(20))
    _, follower = followed(f"def answer(x):\n{steps}\n    return x\n", 1)
    lines, unread = follower.explanation(follower.result)
    assert lines[:2] == (22, 21) and len(lines) == MOST_LINES and not unread


def test_assignments_that_nothing_reads_are_told_apart() -> None:
    source = """
def answer(x):
    scale = 2
    scale = 3
    half = x / 2
    _, rest = x, x
    return x * scale
"""
    _, follower = followed(source, 1)
    lines, unread = follower.explanation(follower.result)
    assert set(lines) == {7, 4} and unread == (3, 5)
    assert follower.unread() == unread


def test_where_a_line_reads_is_told_from_what_it_computes() -> None:
    source = """
def answer(x):
    held = [x, x]
    place = 1
    held[place] = x
    value = x + 1
    held[place] = value
    return held
"""
    _, follower = followed(source, 1)
    value, place = follower.of_line(7), follower.of_place(7)
    assert value[6] < value[4] and place[4] < place[6]


def test_what_was_there_to_watch_is_there_again() -> None:
    before = sys.gettrace()
    followed(CHOICE, 1)
    assert sys.gettrace() is before


def test_values_side_by_side_each_have_lines_of_their_own() -> None:
    source = """
def answer(x):
    large = x * 2
    small = x + 1
    a, b = large, small
    return b
"""
    _, follower = followed(source, 1)
    assert set(follower.result) == {4, 5, 6}


def test_a_comprehension_s_own_names_are_nobody_else_s() -> None:
    source = """
def answer(x):
    first = [each + x for each in (1, 2)]
    second = [each * 2 for each in (3, 4)]
    return second
"""
    _, follower = followed(source, 1)
    assert set(follower.result) == {4, 5}


def test_of_a_long_statement_its_first_and_last_operands_come_first() -> None:
    source = """
def answer(x):
    scale = x * 3
    both = (
        x
        + scale
        + 1
        - 2
    )
    return both
"""
    _, follower = followed(source, 1)
    lines, _ = follower.explanation(follower.result)
    assert set(lines[:3]) == {5, 8, 10}
    assert lines.index(3) < lines.index(6)
