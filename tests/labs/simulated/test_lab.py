"""A lab on host code: loaded, refused, opened, listed and parted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.labs.simulated.sample_lab import write_lab
from warpbook_labs.course.authoring import part
from warpbook_labs.course.notebook import open_lab
from warpbook_labs.course.overview import overview
from warpbook_labs.course.session import check_public, find, submit
from warpbook_labs.course.store import Store
from warpbook_labs.errors import BadLab
from warpbook_labs.lab.files import VAULT
from warpbook_labs.lab.languages.language import Here
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load

HOST = '[host]\nwithout_gpu = "torch"\ncalls = 2\ncase_s = 2.0\n'
COUNT = '[[counted]]\ncount = "{}"\nmost = "1"\nabout = "Less."'


@pytest.mark.parametrize(
    ("file", "before", "after", "words"),
    [
        ("lab.toml", HOST, "", "host: it goes with the language `host`"),
        (
            "lab.toml",
            'language = "host"',
            'language = "cuda"',
            "starter.cu: this file is missing",
        ),
        ("lab.toml", '"torch"', '"numpy"', "$.host.without_gpu"),
        ("lab.toml", 'place = "device"', 'place = "disk"', "$.parameters[0].place"),
        ("lab.toml", "calls = 2", "calls = 0", "$.host.calls"),
        ("lab.toml", "calls = 2", 'on_ranks = ["f"]\ncalls = 2', "host.on_ranks: it"),
        ("starter.py", "def run", "def runs", "starter.py: it has no run()."),
        ("reference.py", "def prepare(n):", "def prepare(n:", "reference.py: line 6"),
        ("given.py", "return", "retrun", "given.py: line 3"),
        ("cases.py", "def expected", "def expects", "no function expected()"),
    ],
)
def test_a_bad_lab_is_refused_with_file_and_key(
    tmp_path: Path, file: str, before: str, after: str, words: str
) -> None:
    at = write_lab(tmp_path)
    text = (at / file).read_text(encoding="utf-8")
    assert before in text
    (at / file).write_text(text.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(BadLab) as refused:
        load(at)
    assert words in str(refused.value)


def test_only_what_counts_can_be_bounded(tmp_path: Path) -> None:
    with pytest.raises(BadLab, match="launches: only the simulated GPU counts"):
        load(write_lab(tmp_path, more=COUNT.format("launches")))
    with pytest.raises(BadLab, match="bank_conflicts: only of kernels"):
        load(write_lab(tmp_path, "simulated", more=COUNT.format("bank_conflicts")))


def test_opening_gives_the_learner_what_they_import(
    simulated: LoadedLab, tmp_path: Path
) -> None:
    opened = open_lab(simulated, tmp_path / "mine")
    assert opened.source.name == "solution.py"
    assert opened.source.with_name("given.py").read_text() == simulated.given
    cells = json.loads(opened.notebook.read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    assert "`prepare(n)`, which is called once for a case" in text
    assert "`run(state, x, y, factor, out)`" in text
    assert "| `x` | input | float32 | `n` | pinned memory of the host |" in text
    assert "what you ask is recorded" in text
    assert "def total(x, y):" in text and "%%lab scaled-sums" in text


def test_the_list_says_what_each_kind_needs(tmp_path: Path) -> None:
    for track, without_gpu in (("one", "torch"), ("two", "simulated")):
        write_lab(tmp_path / without_gpu / track, without_gpu)

    def of(without_gpu: str, here: Here) -> tuple[tuple[str, ...], bool, str]:
        [entry], bad = overview(here, {}, tmp_path / without_gpu)
        assert bad == ()
        return entry.needs, entry.can_check, entry.why

    bare = Here(None, "NVRTC is missing.", triton=False, torch=False, gpus=0)
    needs, can_check, why = of("torch", bare)
    assert needs == ("PyTorch",) and not can_check and "warpbook-labs[torch]" in why
    assert of("simulated", bare) == ((), True, "")
    with_gpu = Here(None, "", triton=False, torch=False, gpus=1)
    needs, can_check, why = of("simulated", with_gpu)
    assert can_check and why.startswith("Nothing is run on the GPU without PyTorch")


def test_what_is_shown_is_checked_where_the_rest_is_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lab(tmp_path / "whole" / "streams", "simulated")
    learners, vault = tmp_path / "learners", tmp_path / "vault"
    part(learners, vault, tmp_path / "whole")
    names = {path.name for path in learners.rglob("*") if path.is_file()}
    assert "given.py" in names and not names & {"cases.py", "reference.py"}
    right = find("scaled-sums", tmp_path / "whole").reference
    parted = find("scaled-sums", learners)
    # with the inputs of every call
    assert check_public(parted, right, use_gpu=False).passed
    assert not check_public(parted, parted.starter, use_gpu=False).passed
    monkeypatch.setenv(VAULT, str(vault))
    whole = find("scaled-sums", learners)
    store = Store(tmp_path / "labs.db")
    assert submit(store, whole, right, use_gpu=False).passed
