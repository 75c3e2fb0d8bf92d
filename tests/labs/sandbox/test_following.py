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


def test_each_part_of_a_container_has_lines_of_its_own() -> None:
    source = """
def answer(x):
    held = {"a": [], "b": []}
    held["a"].append(x + 1)
    held["b"].append(x + 2)
    return held["b"][0]
"""
    answer, follower = followed(source, 3)
    assert answer == 5 and 5 in follower.result and 4 not in follower.result


def test_the_choice_of_a_table_names_the_line_of_its_entry() -> None:
    source = """
WANTED = {
    "slow": {"speed": 1},
    "fast": {"speed": 2},
}

def answer(name):
    speed = 0
    for value in WANTED[name].values():
        speed = value
    return speed
"""
    _, follower = followed(source, "fast")
    assert 4 in follower.result and 3 not in follower.result


def test_what_began_a_sum_stays_near_however_often_the_loop_goes_round() -> None:
    source = """
def answer(count):
    total = 7
    for each in range(count):
        total += each
    return total
"""
    near = [in_order(followed(source, n)[1].result) for n in (2, 50)]
    assert near[0] == near[1] and set(near[0]) == {3, 4, 5, 6}


def test_an_early_return_is_farther_than_what_computes() -> None:
    source = """
def answer(x):
    if x < 0:
        return 0
    y = x + 1
    z = y * 2
    return z
"""
    _, follower = followed(source, 1)
    assert in_order(follower.result) == (7, 6, 5, 3)


def test_a_line_within_a_function_leads_to_who_called_it_and_why() -> None:
    source = """
def made(held):
    held.append(1)

def answer(x):
    held = []
    if x > 2:
        made(held)
    return x
"""
    _, follower = followed(source, 3)
    assert {3, 8, 7} <= set(follower.of_line(3))


def test_of_a_store_the_place_is_apart_from_the_value() -> None:
    source = """
class tl:
    def store(where, value, mask=None):
        pass

def answer(x):
    where = x + 1
    value = x + 2
    mask = x + 3
    tl.store(where, value, mask=mask)
    return x
"""
    _, follower = followed(source, 1)
    value, place = in_order(follower.of_line(10)), in_order(follower.of_place(10))
    assert value.index(8) < min(value.index(7), value.index(9))
    assert place.index(8) > max(place.index(7), place.index(9))


def test_an_assignment_that_nothing_reads_is_told() -> None:
    source = """
def answer(x):
    held = [x]
    y = held[0]
    held = [x + 1]
    _ = y
    both = y
    return (lambda: both)()
"""
    _, follower = followed(source, 1)
    assert follower.unread() == (5,)


def test_what_an_optimizer_does_to_a_tensor_is_seen() -> None:
    torch = pytest.importorskip("torch")
    source = """
import torch

def answer(weight, x):
    held = [torch.nn.Parameter(weight)]
    optimizer = torch.optim.SGD(held, lr=0.1)
    loss = (held[0] * x).sum()
    loss.backward()
    optimizer.step()
    return weight
"""
    _, follower = followed(source, torch.ones(2), torch.ones(2))
    assert {5, 6, 7, 8, 9} <= set(follower.result)
    _, follower = followed(
        source.replace("    optimizer.step()\n", ""), torch.ones(2), torch.ones(2)
    )
    assert 8 not in in_order(follower.result)[:1]
