"""What a statement of a learner's Python reads and changes."""

from __future__ import annotations

import ast

import pytest

from warpbook_labs.sandbox.lines.statements import Statement, statements_of


def statement(source: str) -> Statement:
    """Read a source of one line."""
    return statements_of(source)[1]


def parts(nodes: list[ast.expr]) -> set[str]:
    """Write parts of objects as Python."""
    return {ast.unparse(node) for node in nodes}


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
    one_statement = statement(source)
    assert (one_statement.whole, one_statement.places) == (whole, places)


def test_a_part_of_an_object_is_read_alone() -> None:
    one_statement = statement("y = model.weight[0] + n")
    assert one_statement.reads == {"model", "n"} and one_statement.whole == {"n"}
    assert parts(one_statement.parts) == {"model.weight[0]"}


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
    one_statement = statement(source)
    assert (
        changes <= one_statement.changes
        and parts(one_statement.changed_parts) == changed_parts
    )


def test_another_name_is_no_new_object() -> None:
    assert statement("y = held[0]").is_alias and not statement("y = f(x)").is_alias
    assert statement("y = x + 1").assigned == "y" and not statement("y += 1").assigned
