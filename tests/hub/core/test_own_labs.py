"""A course's own labs: texts are shown without HTML, and no file from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import ROOT
from warpbook_hub.service.lab_texts import (
    OWN_LABS,
    hint_count,
    lab_of,
    labs,
    picture,
    starter,
    text_html,
)

VECTOR_ADD = ROOT / "labs" / "catalogue" / "kernels" / "vector_add" / "lab.toml"
TEXT = """# Mine
<script>alert(1)</script> <img src=x onerror=alert(1)>

![up](../../secret.svg) ![other](https://evil.example/x.svg) ![own](own.svg)

[link](javascript:alert(1))
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(OWN_LABS, str(tmp_path))
    return tmp_path / "mine"


def begin(own: Path, folder: str, name: str) -> Path:
    place = own / folder
    place.mkdir(parents=True)
    text = VECTOR_ADD.read_text().replace('"vector-add"', f'"{name}"')
    (place / "lab.toml").write_text(text)
    return place


def test_text_of_a_lab_brings_no_html_and_no_foreign_picture(own: Path) -> None:
    place = begin(own, "own_lab", "own-lab")
    (place / "text.md").write_text(TEXT + "\n\nOff by $n \\cdot 2^{-24}$.\n")
    shown = text_html("own-lab", "pictures/")
    # a page without LaTeX has formulas as plain text
    assert "<p>Off by n · 2^-24.</p>" in shown
    assert "<script" not in shown and "<img src=x" not in shown
    assert "javascript:" not in shown
    assert shown.count("<img") == 1 and 'src="pictures/own.svg"' in shown


def test_hints_are_counted_where_a_lab_has_any(own: Path) -> None:
    place = begin(own, "own_lab", "own-lab")
    assert hint_count("own-lab") == 0
    (place / "hints.md").write_text("Think.\n\n---\n\nThink again.\n")
    assert hint_count("own-lab") == 2


def test_links_in_a_lab_lead_to_no_file_from_elsewhere(own: Path) -> None:
    place = begin(own, "own_lab", "own-lab")
    secret = own / "secret"
    secret.write_text("secret")
    for name in ("text.md", "starter.cu", "own.svg"):
        (place / name).symlink_to(secret)
    assert text_html("own-lab", "pictures/") == ""
    assert starter("own-lab") == ""
    assert picture("own-lab", "own.svg") is None
    for name in ("../own_lab/own.svg", "lab.toml", "..", ""):
        assert picture("own-lab", name) is None


def test_lab_in_a_folder_of_another_name_takes_no_others_place(own: Path) -> None:
    begin(own, "elsewhere", "vector-add")
    begin(own, "misnamed", "not-the-folder")
    (own / "broken").mkdir()
    (own / "broken" / "lab.toml").write_bytes(b"\xff\xfe")
    listed = {lab.id for lab in labs()}
    assert "not-the-folder" not in listed and "vector-add" in listed
    # all that is listed can be published
    assert {name for name in listed if lab_of(name) is None} == set()
    assert lab_of("misnamed") is None
