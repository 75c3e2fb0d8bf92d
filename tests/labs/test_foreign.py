"""A lab of somebody's: nothing of it runs as the person, or passes for another."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from warpbook_labs.course.authoring import new_lab
from warpbook_labs.course.overview import hints_of
from warpbook_labs.course.progress import Progress, damaged_results
from warpbook_labs.course.session import check_public, find, submit, trust
from warpbook_labs.course.store import Store
from warpbook_labs.errors import BadLab, BadSource, NotTrusted
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load
from warpbook_labs.lab.sources import read_source


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return new_lab("my-lab", tmp_path)


def test_a_lab_of_somebodys_is_asked_about_once(lab: Path) -> None:
    with pytest.raises(NotTrusted, match="warpbook labs trust .*my_lab"):
        find(str(lab))
    trust(lab)
    loaded = find(str(lab))
    card = check_public(loaded, loaded.reference, use_gpu=False)
    assert card.passed and card.result.provenance is not None
    assert card.result.provenance.lab_digest == loaded.digest


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("open({secret!r}).read()", "PermissionError|FileNotFoundError"),
        ("open({trace!r}, 'w')", "PermissionError|FileNotFoundError|OSError"),
        ("__import__('os').system('true') and 1/0", "ZeroDivisionError"),
        ("__import__('socket').socket()", "Error"),
        ("__import__('os').fork()", "Error"),
        ("bytearray(1 << 40)", "MemoryError"),
    ],
)
def test_its_python_reaches_nothing(
    lab: Path, tmp_path: Path, attack: str, words: str
) -> None:
    secret, trace = tmp_path / "secret", tmp_path / "trace"
    secret.write_text("mine")
    code = attack.format(secret=str(secret), trace=str(trace))
    cases = lab / "cases.py"
    cases.write_text(f"{cases.read_text()}\nATTACK = {code}\n")
    # nothing of it runs before a check
    loaded = load(lab)
    with pytest.raises(BadLab, match=rf"cases\.py: inputs: .*({words})"):
        check_public(loaded, loaded.reference, use_gpu=False)
    assert not trace.exists()


def test_a_call_that_ends_its_process_is_told_and_the_next_is_answered(
    lab: Path,
) -> None:
    cases = lab / "cases.py"
    good = cases.read_text()
    cases.write_text(f"{good}\ndef expected(*_): __import__('os')._exit(0)\n")
    loaded = load(lab)
    for _ in range(2):
        with pytest.raises(BadLab, match="expected: .*process ended"):
            check_public(loaded, loaded.reference, use_gpu=False)


def test_an_id_of_the_catalogue_is_the_catalogues(tmp_path: Path) -> None:
    forged = tmp_path / "vector_add"
    shutil.copytree(next(CATALOGUE.glob("*/vector_add")), forged)
    trust(forged)
    with pytest.raises(BadLab, match="id: `vector-add` of the catalogue has it"):
        find(str(forged))


def test_files_that_are_no_texts_are_refused_in_a_line(lab: Path) -> None:
    starter, hints = lab / "starter.cu", lab / "hints.md"
    starter.unlink()
    os.mkfifo(starter)
    with pytest.raises(BadLab, match=r"starter\.cu: this is not a regular file"):
        load(lab)
    with pytest.raises(BadSource, match="not a regular file"):
        read_source(starter)
    hints.unlink()
    for target, words in (("/dev/zero", "regular file"), ("/etc/passwd", "outside")):
        hints.symlink_to(target)
        with pytest.raises(ValueError, match=rf"hints\.md: .*{words}"):
            hints_of(lab)
        hints.unlink()


def test_a_source_may_be_in_latin_1_with_any_ends_of_lines(tmp_path: Path) -> None:
    file = tmp_path / "old.cu"
    file.write_bytes("// Gr\u00f6\u00dfe\r// two\r\n// three\n".encode("latin-1"))
    assert read_source(file) == "// Gr\u00f6\u00dfe\n// two\n// three\n"


@pytest.mark.parametrize("damage", ["'{'", "x'00ff'", "7", "'{\"lab\": 1}'"])
def test_a_damaged_row_costs_a_line(lab: Path, data: Path, damage: str) -> None:
    store = Store(data / "labs.db")
    loaded = load(lab)
    numbers = [
        submit(store, loaded, loaded.reference, use_gpu=False).submission
        for _ in range(2)
    ]
    with sqlite3.connect(store.path) as connection:
        connection.execute(f"UPDATE results SET result = {damage} WHERE submission = 2")
    connection.close()
    assert numbers == [1, 2]
    progress = store.progress()["my-lab"]
    assert isinstance(progress, Progress) and progress.best is not None
    assert progress.best.passed and progress.attempts == 2
    assert len(store.newest("my-lab", 5)) == 1
    if "lab" not in damage:
        (line,) = damaged_results(store.path)
        assert "submission 2 is damaged" in line and "regrade 2" in line
