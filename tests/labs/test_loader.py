"""A bad lab is refused, with its file and the key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from warpbook_labs.course.authoring import new_lab
from warpbook_labs.course.session import check_public
from warpbook_labs.errors import BadLab
from warpbook_labs.grading.validation import validate
from warpbook_labs.lab.languages.table import LANGUAGES
from warpbook_labs.lab.loader import load, load_all
from warpbook_labs.lab.spec import LanguageName


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return new_lab("my-lab", tmp_path)


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_a_new_lab_loads_and_is_not_written_over(lab: Path) -> None:
    loaded = load(lab)
    assert (loaded.lab.id, len(loaded.hints)) == ("my-lab", 3)
    assert set(loaded.wrong) == {"no_bound.cu", "whole_blocks_only.cu"}
    with pytest.raises(BadLab, match="is there already"):
        new_lab("my-lab", lab.parent)
    for name in ("My-Lab", "../x", "a", "", "9lab", "x" * 60):
        with pytest.raises(BadLab, match="is no id"):
            new_lab(name, lab.parent)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_lab_of_any_language_grades_fairly(
    language: LanguageName, tmp_path: Path
) -> None:
    loaded = load(new_lab("my-lab", tmp_path, language))
    assert loaded.lab.language == language
    verdicts = list(validate(loaded, seeds=(5,)))
    assert len(verdicts) >= 6
    assert not [verdict for verdict in verdicts if not verdict.ok]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("minutes = 20", "minutes = 'x'", r"\$\.minutes"),
        ("minutes = 20", "minuets = 20", "minuets"),
        ('title = "Scale a vector"', "", "title"),
        ("number = 900", "number = 0", r"\$\.number"),
        ('track = "kernels"', 'track = "cooking"', r"\$\.track"),
        ('id = "my-lab"', 'id = "other-lab"', "id: the folder must be called other"),
        ('shape = ["n"]', 'shape = ["rows"]', "parameters.x.shape: There is no `rows`"),
        ('name = "factor"', 'name = "x"', "parameters: two have the same name"),
        ('kind = "output"', 'kind = "input"', "parameters: none is an output"),
        (
            "sizes = { n = 256 }",
            "sizes = { m = 256 }",
            r"public\[0\].sizes: it needs",
        ),
        ("sizes = { n = 256 }", "sizes = { n = 0 }", r"\$\.public\[0\]\.sizes"),
        ("seed = 1", 'values = "odd"', r"public\[1\].values: not in hidden.values"),
        ("sizes.n =", "sizes.m =", "hidden.sizes: it needs n"),
        ("least = 2", "least = 4001", "hidden.sizes.n: least is 4001, and most is"),
        (
            "most = 4000",
            "most = 4000, device_most = 9",
            "hidden.sizes.n: device_most is 9, and most is 4000",
        ),
        ("always = [1,", "always = [0,", "hidden.sizes.n: a size is below 1"),
        ('bytes = "8 * n"', 'bytes = "8 ** n"', "work.bytes"),
        ('most = "2 * ceil', 'most = "2 * floor', "counted.global_sectors"),
        (
            'count = "global_sectors"',
            'count = "sectors"',
            r"counted\[0\]\.count`: it is one of .*`global_sectors`, .*`host_ns`",
        ),
        ('kind = "size"', 'kind = "big"', "kind`: it is one of `inout`, `input`, "),
        ("[hidden]", "[hidden", "lab.toml"),
    ],
)
def test_a_mistake_in_the_specification_is_told_with_its_key(
    lab: Path, old: str, new: str, words: str
) -> None:
    change(lab / "lab.toml", old, new)
    with pytest.raises(BadLab, match=words) as refused:
        load(lab)
    assert "lab.toml" in str(refused.value)


@pytest.mark.parametrize(
    "name",
    ["lab.toml", "text.md", "starter.cu", "reference.cu", "hints.md", "cases.py"],
)
def test_a_file_that_is_missing_empty_or_no_text_is_named(lab: Path, name: str) -> None:
    for content, words in ((b" \n", "is empty"), (b"\xff\xfe", "no text in UTF-8")):
        (lab / name).write_bytes(content)
        with pytest.raises(BadLab, match=words) as refused:
            load(lab)
        assert name in str(refused.value)
    (lab / name).unlink()
    with pytest.raises(BadLab, match=f"{name}: this file is missing"):
        load(lab)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("def tolerance", "def tolerances", r"no function tolerance\(\)"),
        ("def inputs(", "def inputs((", "SyntaxError"),
    ],
)
def test_a_mistake_in_the_labs_python_is_told(
    lab: Path, old: str, new: str, words: str
) -> None:
    change(lab / "cases.py", old, new)
    with pytest.raises(BadLab, match=f"cases.py: .*{words}"):
        load(lab)


def test_a_mistake_that_shows_when_it_runs_is_told_then(lab: Path) -> None:
    change(lab / "cases.py", "import numpy as np", "import nompy as np")
    loaded = load(lab)
    with pytest.raises(BadLab, match="cases.py: inputs: ModuleNotFoundError"):
        check_public(loaded, loaded.reference)


EDITED = """
[[KIND]]
name = "never_multiplies"
reason = "the factor is left out"
edits = [{ old = "OLD", new = "NEW" }]
"""


@pytest.mark.parametrize("kind", ["correct", "wrong"])
def test_a_solution_may_be_told_by_what_differs(lab: Path, kind: str) -> None:
    file = lab / "solutions" / f"{kind}.toml"
    reference = (lab / "reference.cu").read_text()
    old, new = "factor * x[i]", "x[i]"
    entry = EDITED.replace("KIND", kind)
    file.write_text(entry.replace("OLD", old).replace("NEW", new))
    solutions = getattr(load(lab), kind)
    wanted = reference.replace(old, new)
    assert solutions["never_multiplies.cu"] == wanted != reference
    for old, words in (("nowhere at all", "0 times"), ("i", "times, not once")):
        file.write_text(entry.replace("OLD", old))
        with pytest.raises(BadLab, match=rf"{kind}\.toml: never_multiplies: .*{words}"):
            load(lab)
    file.write_text(entry.replace("edits", 'base = "nobody"\nedits'))
    with pytest.raises(BadLab, match="there is no source `nobody`"):
        load(lab)
    other = {"correct": "wrong", "wrong": "correct"}[kind]
    file.write_text(EDITED.replace("KIND", other))
    with pytest.raises(BadLab, match=rf"must be `\[\[{kind}\]\]`"):
        load(lab)


def test_a_picture_that_is_not_in_the_folder_is_told(lab: Path) -> None:
    (lab / "figure.svg").unlink()
    with pytest.raises(BadLab, match=r"text.md: `figure.svg` is not in the folder"):
        load(lab)


def test_what_the_catalogue_has_is_refused_with_what_to_do(lab: Path) -> None:
    with pytest.raises(BadLab, match=r"has a lab `vector-add`: choose another id"):
        new_lab("vector-add", lab.parent)
    assert not (lab.parent / "vector_add").exists()
    change(lab / "lab.toml", "number = 900", "number = 2")
    words = r"lab\.toml: number: `vector-add` of the catalogue has it\. Choose another"
    with pytest.raises(BadLab, match=words):
        next(validate(load(lab)))
    change(lab / "lab.toml", "number = 2", "number = 900")
    change(lab / "lab.toml", 'id = "my-lab"', 'id = "vector-add"')
    same_id = load(lab.rename(lab.with_name("vector_add")))
    with pytest.raises(BadLab, match=r"lab\.toml: id: `vector-add` of the"):
        next(validate(same_id))


def test_a_new_lab_on_host_code_has_a_text_and_a_picture_of_its_own(
    tmp_path: Path,
) -> None:
    host = load(new_lab("my-host-lab", tmp_path, "host"))
    kernel = load(new_lab("my-lab", tmp_path))
    assert "thread" not in host.text.lower() and host.text != kernel.text
    figures = [(loaded.folder / "figure.svg").read_text() for loaded in (host, kernel)]
    assert "thread" not in figures[0] and "thread" in figures[1]


def test_a_source_without_a_launch_rule_is_told(lab: Path) -> None:
    change(lab / "solutions/wrong/no_bound.cu", "// launch:", "// lunch:")
    with pytest.raises(BadLab, match=r"no_bound.cu: .* how its kernel is launched"):
        load(lab)


def test_a_solution_of_another_language_is_refused_by_its_name(lab: Path) -> None:
    place = lab / "solutions" / "correct"
    (place / ".x.cu.swp").write_text("of an editor")
    (place / "__pycache__").mkdir()
    assert len(load(lab).correct) == 2
    (place / "x.py").write_text("x = 1")
    with pytest.raises(BadLab, match=r"correct/x\.py: .* ends in \.cu\. Rename it"):
        load(lab)


def test_a_lab_needs_right_and_wrong_solutions(lab: Path) -> None:
    shutil.rmtree(lab / "solutions" / "wrong")
    with pytest.raises(BadLab, match="solutions/wrong: there is none"):
        load(lab)


def test_two_labs_of_one_number_are_refused(tmp_path: Path) -> None:
    for name in ("one-lab", "two-lab"):
        new_lab(name, tmp_path / "track")
    with pytest.raises(BadLab, match="`one-lab` has them"):
        load_all(tmp_path)
