"""Objects of a learner's Python, and the lines they came from."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import Any

import pytest

from warpbook_labs.sandbox.lines.objects import Objects, part_of, version_of


class Holder:
    """Has an attribute, and one that only code could give."""

    def __init__(self, held: Any) -> None:
        self.held = held

    @property
    def computed(self) -> Any:
        """Not to be run."""
        raise AssertionError


def part(expression: str, **names: Any) -> Any:
    """Find a part of what names hold."""
    return part_of(ast.parse(expression, mode="eval").body, names)


def test_parts_are_found_without_the_code_of_objects() -> None:
    holder = Holder({"a": [1, 2]})
    assert part("x.held[key][1]", x=holder, key="a") == 2
    assert part("x.computed", x=holder) is None
    assert part("x.held['b'][0]", x=holder) is None
    assert part("x[9]", x=[1]) is None and part("f(x)", x=1) is None


def test_to_look_at_a_default_does_not_make_it() -> None:
    held: dict[str, list[int]] = defaultdict(list)
    assert part("held['a']", held=held) is None and not held


def test_an_object_is_known_by_where_it_was_made_and_changed() -> None:
    objects, held = Objects(version_of), [1]
    objects.make(held, {3: 0})
    objects.make(held, {9: 0})
    objects.change(held, {5: 0})
    objects.change(held, {6: 0})
    assert objects.lines(held) == {3: 0, 5: 1, 6: 0}
    assert objects.lines([1]) == {} and objects.lines(1) == {}


def test_what_is_held_has_its_changes_in_the_whole() -> None:
    objects, inner = Objects(version_of), [1]
    outer = Holder(inner)
    objects.make(inner, {2: 0})
    objects.make(outer, {3: 0}, [inner])
    objects.change(inner, {7: 0})
    assert objects.lines(outer) == {3: 0, 7: 1}


def test_a_tensor_is_changed_where_its_version_is_another() -> None:
    torch = pytest.importorskip("torch")
    objects, x = Objects(version_of), torch.zeros(2)
    assert list(objects.changed_tensors([x])) == []
    x.add_(1)
    assert [tensor is x for tensor in objects.changed_tensors([[x]])] == [True]
    assert list(objects.changed_tensors([x])) == []
    objects.make(x, {4: 0})
    assert objects.lines(x[:1]) == {4: 0}
