"""`%labquiz`: the placement quiz in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person who has done nothing yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def shown(shell: Any, line: str) -> dict[str, str]:
    shell.run_line_magic("labquiz", line)
    return shell.display_pub.outputs[-1]["data"]


def test_questions_are_shown_marked_and_kept_nowhere(shell: Any, data: Path) -> None:
    sheet = shown(shell, "")
    assert "int i = ____;" in sheet["text/markdown"]
    assert "- **c** `(z * h + y) * w + x`" in sheet["text/markdown"]
    assert "Nothing is kept." in sheet["text/plain"]
    marked = shown(shell, "c a ? b b d b b b c b d c d c a c b d c a")
    assert "20 of 21 answers are right. Begin with 2 Vector" in marked["text/plain"]
    assert 'warpbook.labs.open("vector-add")' in marked["text/markdown"]
    # what engines and sources say is text in Markdown, too
    assert r"3 \* 256 / 8" in marked["text/markdown"]
    assert not data.exists()


def test_a_texts_questions_are_asked_and_marked(shell: Any) -> None:
    sheet = shown(shell, "--text choosing-a-dtype")
    assert "%labquiz --text choosing-a-dtype a b c a b c a" in sheet["text/plain"]
    marked = shown(shell, "--text choosing-a-dtype b b c a c b b")
    assert "6 of 7 answers are right." in marked["text/plain"]
    assert "Begin with" not in marked["text/plain"]
    assert "There is no text `x`" in shown(shell, "--text x")["text/plain"]


def test_answers_that_are_none_are_refused_in_words(shell: Any) -> None:
    assert "21 questions and 2 answers" in shown(shell, "a b")["text/plain"]
    assert "Question 1: give one of" in shown(shell, "z" * 21)["text/plain"]
