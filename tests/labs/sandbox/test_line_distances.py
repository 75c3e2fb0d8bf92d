"""Lines of a source with their distances."""

from __future__ import annotations

from warpbook_labs.sandbox.lines.objects import in_order, merge, nearest


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
