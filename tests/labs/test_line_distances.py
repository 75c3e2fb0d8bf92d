"""Which lines are named before others."""

from __future__ import annotations

from warpbook_labs.results.line_distances import in_order, suspicious


def test_a_line_that_right_answers_do_not_come_from_is_named_first() -> None:
    wrong = {10: 0, 8: 1, 5: 3, 3: 4}
    right = [{10: 0, 8: 1, 3: 4}, {10: 0, 8: 1, 4: 2, 3: 4}]
    assert in_order(suspicious(wrong, right))[:2] == (5, 10)
    assert in_order(suspicious(wrong, [])) == (10, 8, 5, 3)
