"""Learning paths name labs that are there, in an order in which they can be done."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from warpbook_labs.course.next_lab import next_lab, skipped_words
from warpbook_labs.course.overview import overview
from warpbook_labs.course.paths import (
    LabPath,
    along,
    choose_path,
    chosen_path,
    find_path,
    path_entry,
    path_mistakes,
    read_paths,
    unmet,
)
from warpbook_labs.course.reading import read_texts
from warpbook_labs.errors import BadLab, BadPath, NoPath
from warpbook_labs.lab.entries import PathPart, SoFar
from warpbook_labs.lab.files import CATALOGUE, PATHS
from warpbook_labs.lab.languages.language import Here
from warpbook_labs.lab.loader import load_all
from warpbook_labs.lab.prerequisites import cycles

LABS, _ = overview(Here("13.3", "", True, True, 0), {"area-codes": SoFar("passed")})


def test_paths_are_an_afternoon_a_week_and_a_term_without_mistakes() -> None:
    paths = read_paths()
    assert [path.id for path in paths] == ["afternoon", "week", "term"]
    texts = [text.id for text in read_texts()]
    assert [
        mistake for path in paths for mistake in path_mistakes(path, LABS, texts)
    ] == []
    assert paths[-1].parts[-1].texts == ("inference-ladder",)
    minutes = [path_entry(path, LABS).minutes for path in paths]
    assert minutes == sorted(minutes)
    # an afternoon has four hours
    assert minutes[0] <= 4 * 60


def test_a_term_has_every_lab_of_the_catalogue() -> None:
    missing = {lab.id for lab in LABS} - set(find_path("term").labs)
    assert not missing, f"put them into labs/paths/term.toml: {sorted(missing)}"


def test_mistakes_of_a_path_name_the_lab() -> None:
    ids = ("vector-add", "matmul", "vector-add", "nowhere")
    path = LabPath("mine", 9, "Mine", "Short.", (PathPart("All", ids, ("none",)),))
    assert list(path_mistakes(path, LABS, ["some"])) == [
        "mine: `matmul` needs `tiled-transpose` before it",
        "mine: `matmul` needs `reduction-and-scan` before it",
        "mine: `vector-add` is there twice",
        "mine: there is no lab `nowhere`",
        "mine: there is no text `none`",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("number = 1", 'number = "one"', r"afternoon\.toml: .*\$\.number"),
        ("[[parts]]", "[[days]]", r"afternoon\.toml: .*days"),
        ('id = "afternoon"', 'id = "evening"', r"must be called evening\.toml"),
    ],
)
def test_a_path_that_can_not_be_used_is_refused_with_file_and_key(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = (PATHS / "afternoon.toml").read_text()
    (tmp_path / "afternoon.toml").write_text(text.replace(old, new))
    with pytest.raises(BadPath, match=words):
        read_paths(tmp_path)


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


def test_the_next_lab_follows_the_path_and_goes_on_behind_its_end() -> None:
    path = LabPath(
        "mine", 9, "Mine", "", (PathPart("All", ("roofline", "vector-add")),)
    )
    in_order = along(path, LABS)
    assert [lab.id for lab in in_order[:3]] == ["roofline", "vector-add", "area-codes"]
    assert len(in_order) == len(LABS)

    def following(passed: set[str]) -> str:
        labs = [
            msgspec.structs.replace(
                lab, progress=SoFar("passed" if lab.id in passed else "new")
            )
            for lab in in_order
        ]
        next_one = next_lab(labs)
        assert next_one is not None
        return next_one.id

    assert following(set()) == "roofline"
    assert following({"roofline"}) == "vector-add"
    assert following({"roofline", "vector-add"}) == "area-codes"
    without = [
        msgspec.structs.replace(lab, can_check=lab.id != "roofline", why="No.")
        for lab in in_order
    ]
    assert "9 Roofline: name the bound. No." in skipped_words(without)


def test_what_is_known_of_a_path_is_told_and_the_rest_is_not() -> None:
    path = find_path("afternoon")
    by_id = {lab.id: lab for lab in LABS}
    entry = path_entry(path, LABS)
    assert entry.minutes == sum(by_id[name].minutes for name in path.labs)
    assert entry.passed == 1
    assert entry.minutes_left == entry.minutes - by_id["area-codes"].minutes
    unknown = [msgspec.structs.replace(lab, progress=None) for lab in LABS]
    entry = path_entry(path, unknown)
    assert (entry.passed, entry.minutes_left) == (None, None)
    assert unmet(by_id["matmul"], LABS) == ("tiled-transpose", "reduction-and-scan")
    assert unmet(by_id["vector-add"], LABS) == ()


def test_a_choice_is_kept_and_what_is_damaged_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert chosen_path() is None
    choose_path("week")
    chosen = chosen_path()
    assert chosen is not None and chosen.id == "week"
    with pytest.raises(NoPath, match=r"no path `../week`.*afternoon, week, term"):
        choose_path("../week")
    (file,) = (tmp_path / "warpbook").iterdir()
    for damaged in (b'"gone"', b"{", b"\xff", b""):
        file.write_bytes(damaged)
        assert chosen_path() is None
    choose_path("term")
    choose_path("")
    assert chosen_path() is None and not list((tmp_path / "warpbook").iterdir())
