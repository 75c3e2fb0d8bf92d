"""What a statement of a learner's Python reads and changes."""

from __future__ import annotations

import ast

import pytest

from warpbook_labs.sandbox.statements import Statement, statements_of


def statement(source: str) -> Statement:
    """Read a source of one line."""
    return statements_of(source)[1]


def parts(nodes: list[ast.expr]) -> set[str]:
    """Write parts of objects as Python."""
    return {ast.unparse(each) for each in nodes}


@pytest.mark.parametrize(
    ("source", "whole", "places"),
    [
        ("y = tl.load(p + i, m, other=z)", {"p", "i", "z"}, {"p", "i", "m"}),
        ("tl.store(p + i, v, m)", {"v"}, {"p", "i", "m"}),
        ("tl.store(p, v, mask=m)", {"v"}, {"p", "m"}),
        ("tl.atomic_add(p, v, m)", {"v"}, {"p", "m"}),
        ("held[i] = v", {"v"}, {"i"}),
        ("y = held[i]", {"i"}, set()),
    ],
)
def test_places_are_told_from_values(
    source: str, whole: set[str], places: set[str]
) -> None:
    found = statement(source)
    assert (found.whole, found.places) == (whole, places)


def test_a_part_of_an_object_is_read_alone() -> None:
    found = statement("y = model.weight[0] + n")
    assert found.reads == {"model", "n"} and found.whole == {"n"}
    assert parts(found.parts) == {"model.weight[0]"}


@pytest.mark.parametrize(
    ("source", "changes", "changed_parts"),
    [
        ("self.held[key] = v", {"self"}, {"self.held[key]"}),
        ("self.held.append(v)", {"self"}, {"self.held"}),
        ("x[a:b].copy_(y)", {"x"}, {"x[a:b]"}),
        ("z = torch.mul(x, y, out=held)", {"held"}, set()),
        ("x += y", {"x"}, set()),
    ],
)
def test_what_is_changed_in_place(
    source: str, changes: set[str], changed_parts: set[str]
) -> None:
    found = statement(source)
    assert changes <= found.changes and parts(found.changed_parts) == changed_parts


def test_another_name_is_no_new_object() -> None:
    assert statement("y = held[0]").is_alias and not statement("y = f(x)").is_alias
    assert statement("y = x + 1").assigned == "y" and not statement("y += 1").assigned
