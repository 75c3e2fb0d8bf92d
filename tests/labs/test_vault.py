"""Labs whose solutions are kept apart: what works without them, and with the vault."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from warpbook.cli.main import main
from warpbook_labs.course import session
from warpbook_labs.course.authoring import part
from warpbook_labs.course.session import check_public, find, regrade, submit
from warpbook_labs.course.store import Store
from warpbook_labs.errors import BadLab, KeptApart
from warpbook_labs.grading.validation import validate
from warpbook_labs.lab.files import CATALOGUE, VAULT
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load_all

LAB, TRACK = "vector-add", "kernels"


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Part two labs: one of kernels, and one whose answers are judged by Python."""
    catalogue = tmp_path_factory.mktemp("whole")
    for name in (f"{TRACK}/vector_add", "memory/occupancy"):
        shutil.copytree(CATALOGUE / name, catalogue / name)
    folder = tmp_path_factory.mktemp("parted")
    learners, vault = folder / "learners", folder / "vault"
    assert part(learners, vault, catalogue) == [LAB, "occupancy"]
    return learners, vault


def right() -> str:
    return next(iter(find(LAB).correct.values()))


def learners_lab(parted: tuple[Path, Path]) -> LoadedLab:
    return find(LAB, parted[0])


def test_nothing_that_gives_a_lab_away_is_with_the_learners(parted) -> None:
    learners, vault = parted
    names = {path.name for path in learners.rglob("*") if path.is_file()}
    assert {"lab.toml", "text.md", "starter.cu", "hints.md", "public.npz"} <= names
    assert not names & {"reference.cu", "cases.py", "reference.py"}
    assert not list(learners.rglob("solutions"))
    assert (vault / TRACK / "vector_add" / "reference.cu").is_file()
    assert (vault / TRACK / "vector_add" / "solutions" / "wrong").is_dir()


def test_what_the_lab_shows_is_checked_without_the_vault(parted) -> None:
    loaded = learners_lab(parted)
    assert check_public(loaded, right(), use_gpu=False).passed
    wrong = check_public(loaded, loaded.starter, use_gpu=False)
    whole = check_public(find(LAB), loaded.starter, use_gpu=False)
    assert not wrong.passed
    assert wrong.result == replace(whole.result, provenance=wrong.result.provenance)


def test_a_submission_is_kept_and_graded_once_the_vault_is_there(
    parted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "labs.db")
    with pytest.raises(KeptApart, match=r"Submission 1 is recorded.*regrade .* 1"):
        submit(store, learners_lab(parted), right(), use_gpu=False)
    kept = store.submission(1)
    assert kept is not None and kept.source == right() and store.gradings(1) == []
    monkeypatch.setenv(VAULT, str(parted[1]))
    monkeypatch.setattr(session, "find", lambda name: find(name, parted[0]))
    assert regrade(store, 1, use_gpu=False).passed
    assert regrade(store, 1, use_gpu=False).passed
    results = [grading.result for grading in store.gradings(1)]
    # the same hidden cases, and each result beside those before
    assert len(results) == 2 and results[0] == results[1]
    assert store.submissions(LAB) == [1] and store.submissions("matmul") == []


def test_a_vault_makes_labs_whole_again(parted, monkeypatch) -> None:
    learners, vault = parted
    monkeypatch.setenv(VAULT, str(vault))
    for name, loaded in load_all(learners).items():
        whole = find(name)
        assert loaded.reference == whole.reference
        assert loaded.correct == whole.correct and loaded.wrong == whole.wrong


def test_what_only_python_can_judge_says_that_it_is_elsewhere(parted) -> None:
    loaded = find("occupancy", parted[0])
    with pytest.raises(KeptApart, match=VAULT):
        check_public(loaded, loaded.starter)
    with pytest.raises(BadLab, match="kept apart"):
        next(iter(validate(loaded)))


def test_the_commands(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    source = tmp_path / "kernel.cu"
    source.write_text(right())
    assert main(["labs", "submit", LAB, str(source), "--no-gpu"]) == 0
    assert main(["labs", "regrade", "1", "--no-gpu"]) == 0
    assert "Submission 1 of vector-add: passed (before: passed)" in (
        capsys.readouterr().out
    )
    assert main(["labs", "regrade", LAB, "--no-gpu", "--json"]) == 0
    (card,) = json.loads(capsys.readouterr().out)["cards"]
    assert (card["passed"], card["submission"]) == (True, 1)
    assert len(Store().gradings(1)) == 3
    assert main(["labs", "regrade", "99"]) == 2
    assert "no submission 99" in capsys.readouterr().err
    assert main(["labs", "part", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "what they need not see" in capsys.readouterr().out
    assert main(["labs", "part", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
