"""Techniques that other packages bring: one that works, and those that do not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "technique"
TRACE = ROOT / "tests/data/exam/h100/masked_attention_by_hand.json.gz"

#: faults by the entry point's name
FAULTY = """
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.checklist.facts import Question
from warpbook_profiler.techniques.technique import ChangeKind, Technique

def kind(name, question=None):
    return ChangeKind((name,), "what", "time", question, None)

def says(name, **texts):
    def rule(evidence):
        yield Proposal(name, **{"title": "t", "evidence": "e", "ways": None} | texts)
    return rule

def fails(of):
    raise RuntimeError("a defect \\x1b[31m" + "x" * 900)

def lies(facts):
    return "certainly", "evidence", ""

no_technique = 5
taken = Technique((kind("tf32"),), says("tf32"))
raises = Technique((kind("raises"),), fails)
undeclared = Technique((kind("declared"),), says("other"))
mistyped = Technique((kind("mistyped"),), says("mistyped", line="<b>"))
asks = Technique(questions=(Question("asks", "?", fails, "", None),
                            Question("lies", "?", lies, "", None)))
steers = Technique((kind("steers"),), says("steers", title="\\x1b[2J\\n" + "x" * 9000,
                                           code="a = 1\\n\\x1b[2J"))
astray = Technique((kind("astray", Question("nobody", "?", lies, "", None)),),
                   says("astray"))
markup = Technique((kind("markup"),), says("markup"),
                   (Question("m", "\\x1b[2J", fails, "", None),))
"""


def environment(*folders: Path) -> dict[str, str]:
    ours = [ROOT / name for name in ("extension", "labs", "monitors")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*ours, *folders]))}


def answers(command: str, *folders: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "warpbook.cli.main", command, "--json", str(TRACE)],
        env=environment(*folders),
        capture_output=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example, installed."""
    folder = tmp_path_factory.mktemp("example")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(folder)]
    # pip builds where the sources are
    sources = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("sources") / "example")
    subprocess.run([*command, str(sources)], check=True)
    return folder


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A folder with a package of techniques that are wrong, one after the other."""
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "ending.py").write_text("raise SystemExit('a defect')")
    info = tmp_path / "faulty-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
    names = ("no_technique", "taken", "raises", "undeclared", "mistyped", "asks")
    lines = [
        f"{name} = faulty:{name}" for name in (*names, "astray", "steers", "markup")
    ]
    lines += ["ending = ending:anything", "missing = nowhere:anything"]
    (info / "entry_points.txt").write_text("\n".join(["[warpbook.techniques]", *lines]))
    return tmp_path


def test_an_installed_package_advises_and_asks(example: Path) -> None:
    before, after = answers("analyze"), answers("analyze", example)
    (new,) = [one for one in after["changes"] if one not in before["changes"]]
    assert (new["name"], new["lab"]) == ("fewer-clones", "roofline")
    assert "copies of whole tensors" in new["evidence"]
    checklist = answers("advise", example)["checklists"][TRACE.name]
    lines = {line["name"]: line for line in checklist["lines"]}
    assert lines["clones"]["evidence"].startswith(new["evidence"])


def test_a_package_that_fails_is_named_and_nothing_else_changes(faulty: Path) -> None:
    before, after = answers("analyze"), answers("analyze", faulty)
    (steering,) = [one for one in after["changes"] if one not in before["changes"]]
    assert steering["name"] == "steers" and len(steering["title"]) == 500
    assert steering["title"].isprintable() and not steering["code"]
    assert after["verdict"] == before["verdict"]
    said = [line for line in after["bare"]["cautions"] if "The technique" in line]
    assert all(line.isprintable() and len(line) <= 500 for line in said)
    for name, why in {
        "no_technique": "not a Technique",
        "taken": "another technique has tf32",
        "raises": "a defect",
        "undeclared": "other",
        "mistyped": "line",
        "astray": "no question is named",
        "markup": "is not one line",
        "ending": "a defect",
        "missing": "nowhere",
    }.items():
        assert [line for line in said if f"technique {name} " in line and why in line]
    checklist = answers("advise", faulty)["checklists"][TRACE.name]
    lines = {line["name"]: line for line in checklist["lines"]}
    assert lines["asks"]["answer"] == lines["lies"]["answer"] == "unknown"
    assert "a defect" in lines["asks"]["evidence"]
    assert [line for line in checklist["warnings"] if "technique taken" in line]
