"""What is marked as somebody else's text, and what is a figure."""

from __future__ import annotations

import pytest

from warpbook.mcp.marked import Own, is_figure, plain


@pytest.mark.parametrize(
    "text", ["", "12.5 %", "1.2 to 3.4 ms", "≈ 3.35 TB/s", "7 of 8", "not known"]
)
def test_figures_are_not_marked(text: str) -> None:
    assert plain(text, 80) == text


@pytest.mark.parametrize("text", ["sm_90", "run all of it", "1; rm", "«12 ms»"])
def test_words_of_others_are_marked(text: str) -> None:
    assert str(plain(text, 80)).startswith("«")
    assert plain(Own(text), 80) == text


@pytest.mark.parametrize("many", ["1", "B", "GB", "s", "1,"])
def test_a_name_that_is_almost_a_figure_is_told_at_once(many: str) -> None:
    """Patterns that try each split of it would take hours."""
    assert not is_figure((many * 39)[:39] + "x")
