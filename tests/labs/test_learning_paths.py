"""Which lab comes next, and the page of learning paths."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.programs import ROOT
from warpbook_labs.course.overview import next_lab, overview, skipped_words
from warpbook_labs.errors import BadLab
from warpbook_labs.lab.entries import SoFar
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.languages.language import Here
from warpbook_labs.lab.loader import cycles, load_all

LABS, _ = overview(Here("13.3", "", True, True, 0), {"area-codes": SoFar("passed")})
PAGE = ROOT / "docs" / "tutorials" / "learning-paths.md"
#: of each path of the page, its labs
PATHS = {
    title: re.findall(r"\[([\w-]+)\]\(\.\./\.\./labs/catalogue/", path)
    for title, path in (
        section.split("\n", 1) for section in PAGE.read_text().split("\n## ")
    )
    if not title.startswith("#")
}


@pytest.mark.parametrize("title", ["An afternoon", "A week", "A term"])
def test_a_path_has_each_lab_once_and_behind_what_it_needs(title: str) -> None:
    path, by_id = PATHS[title], {lab.id: lab for lab in LABS}
    assert len(path) == len(set(path)) and set(path) <= set(by_id)
    for place, name in enumerate(path):
        assert set(by_id[name].after) <= set(path[:place]), name


def test_a_term_has_every_lab_of_the_catalogue() -> None:
    missing = {lab.id for lab in LABS} - set(PATHS["A term"])
    assert not missing, f"put them into {PAGE.name}: {sorted(missing)}"


def test_labs_that_wait_for_one_another_are_found_and_refused(tmp_path: Path) -> None:
    assert cycles({lab.id: lab.after for lab in LABS}) == ()
    after = {"a": ["b"], "b": ["c"], "c": ["b"], "d": [], "e": ["d", "elsewhere"]}
    assert cycles(after) == ("a", "b", "c")
    for track, name in (("kernels", "vector_add"), ("kernels", "thread_and_block")):
        shutil.copytree(CATALOGUE / track / name, tmp_path / track / name)
    file = tmp_path / "kernels" / "vector_add" / "lab.toml"
    file.write_text(f'after = ["thread-and-block"]\n{file.read_text()}')
    with pytest.raises(BadLab, match=r"one another: thread-and-block, vector-add"):
        load_all(tmp_path)


def test_the_next_lab_is_not_passed_and_can_be_checked() -> None:
    assert LABS[0].id == "area-codes"
    following = next_lab(LABS)
    assert following is not None and following.id == LABS[1].id
    # it follows the last that is passed, and what was passed over comes in the end
    passed = [
        msgspec.structs.replace(lab, progress=SoFar("passed" if number == 3 else "new"))
        for number, lab in enumerate(LABS)
    ]
    following, last = next_lab(passed), next_lab(passed, LABS[-1].id)
    assert following is not None and following.id == LABS[4].id
    assert last is not None and last.id == LABS[0].id
    without = [
        msgspec.structs.replace(lab, can_check=lab.id != LABS[1].id, why="No.")
        for lab in LABS
    ]
    following = next_lab(without)
    assert following is not None and following.id == LABS[2].id
    assert f"{LABS[1].number} {LABS[1].title}. No." in skipped_words(without)
