"""Lines of a source with their distances."""

from __future__ import annotations

from warpbook_labs.sandbox.line_distances import in_order, merge, nearest, suspicious


def test_the_nearer_of_two_distances_is_kept() -> None:
    lines = {3: 1, 5: 0}
    merge(lines, {3: 4, 7: 2}, 1)
    merge(lines, {3: 0}, 0)
    assert lines == {3: 0, 5: 0, 7: 3} and in_order(lines) == (5, 3, 7)


def test_of_many_lines_the_nearest_are_kept() -> None:
    lines = {line: line for line in range(1, 200)}
    kept = nearest(lines)
    assert len(kept) < len(lines) and set(kept) == set(range(1, len(kept) + 1))
    assert nearest({4: 2}) == {4: 2}


def test_lines_that_right_answers_do_not_come_from_are_first() -> None:
    wrong = {9: 0, 7: 1, 4: 2}
    right = [{9: 0, 7: 1}, {9: 0, 7: 1, 5: 1}]
    assert in_order(suspicious(wrong, right)) == (4, 9, 7)
    assert suspicious(wrong, []) == wrong


def test_a_line_that_right_answers_also_come_from_stays_where_it_is() -> None:
    wrong = {9: 0, 7: 1, 4: 2}
    assert in_order(suspicious(wrong, [wrong, wrong])) == (9, 7, 4)
