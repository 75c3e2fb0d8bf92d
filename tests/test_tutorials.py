"""The tutorials' commands are run, and show what the tutorials say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import warpbook
from tests.programs import ROOT

TUTORIALS = ROOT / "docs" / "tutorials"
HOW_TO = ROOT / "docs" / "how-to"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: figures differ from run to run, and so do their units
FIGURE = re.compile(r"\d[\d,.]*\d|\d")
UNIT = re.compile(r"# (ns|µs|ms|s)\b")


def blocks(name: str, folder: Path = TUTORIALS) -> list[tuple[str, str]]:
    return BLOCK.findall((folder / name).read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """Return a text without figures, with single spaces."""
    return UNIT.sub("# s", FIGURE.sub("#", re.sub(r"\s+", " ", text.strip())))


def shows(output: str, shortened: str) -> None:
    """Assert that each line stands in an output; `...` is what a line leaves out."""
    lines = [plain(line) for line in output.splitlines()]
    for line in shortened.splitlines():
        parts = [re.escape(part) for part in map(plain, line.split("..."))]
        pattern = re.compile(".*".join(parts))
        assert any(map(pattern.search, lines)), f"{line!r} is not in\n{output}"


def run(words: list[str], folder: Path) -> str:
    """Run a tutorial's command in a folder that is its home, and give what it says."""
    environment = os.environ | {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_a_first_lab_is_opened_mended_and_handed_in(tmp_path: Path) -> None:
    commands = 0
    for language, text in blocks("first-lab.md"):
        if language == "cuda":
            (tmp_path / "vector-add" / "kernel.cu").write_text(text)
        if language == "console":
            first, shortened = text.split("\n", 1)
            words = shlex.split(first.removeprefix("$ "))
            if words[2] in ("check", "submit"):
                words.append("--no-gpu")
            shows(run(words, tmp_path), shortened)
            commands += 1
    assert commands >= 5


def test_a_cluster_jobs_traces_name_the_rank_that_is_late(tmp_path: Path) -> None:
    said = ""
    for language, text in blocks("cluster-job.md"):
        if language == "python":
            (tmp_path / "train.py").write_text(text)
        if language == "bash":  # what Slurm would start
            (command,) = re.findall(r"^srun (.*)$", text, re.MULTILINE)
            said = run(shlex.split(command), tmp_path)
            assert len(list((tmp_path / "traces").iterdir())) == 2, said
        if language == "console":
            first, shortened = text.split("\n", 1)
            said = run(shlex.split(first.removeprefix("$ ")), tmp_path)
            shows(said, shortened)
    assert "Rank 1" in said


def test_the_memory_of_a_planned_run_is_what_the_page_shows(tmp_path: Path) -> None:
    (text,) = (
        text
        for language, text in blocks("plan-a-nemo-run.md", HOW_TO)
        if language == "console"
    )
    command, shortened = text.split("\n", 1)
    said = run(shlex.split(command.removeprefix("$ ")), tmp_path)
    # nothing is measured: each figure is the same everywhere
    assert [line for line in shortened.splitlines() if line not in said] == []


def test_what_records_a_training_step_gives_a_trace_with_its_steps(
    tmp_path: Path,
) -> None:
    (code,) = (
        text
        for language, text in blocks("record-a-trace.md", HOW_TO)
        if language == "python"
    )
    # a profiler leaves threads and caches that later times in this process would show
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    (trace,) = (tmp_path / "traces").iterdir()
    profile = warpbook.analyze(trace)
    assert len(profile.steps) == 4
    assert "FLOP/s" in str(profile)


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    yield shell
    warpbook.unload_ipython_extension(shell)


def test_a_first_profile_shows_the_verdicts_that_the_tutorial_has(
    shell: InteractiveShell,
) -> None:
    output, cells = "", 0
    for language, text in blocks("first-profile.md"):
        if language == "python":
            with capture_output() as captured:
                result = shell.run_cell(text)
            result.raise_error()
            shown = (out.data.get("text/plain", "") for out in captured.outputs)
            output = "\n".join([captured.stdout, *shown])
            cells += 1
        if language == "text":
            shows(output, text)
    assert cells >= 4
