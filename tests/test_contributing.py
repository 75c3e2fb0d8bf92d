"""CONTRIBUTING's three changes are made in a copy of the tree, by its lists alone.

A change has all files of its list, and the tests that the list names pass; without any
one of them they fail.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FOLDERS = ("docs", "extension", "frontend", "labs", "monitors", "tests", "tools")
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", "node_modules", "labextension", "lib", ".yarn"
)
PYTEST_OPTIONS = ("-x", "-W", "ignore:Module already imported so cannot be rewritten")
#: what programs of the tree import from elsewhere, and takes a second
LIBRARIES = ("jupyter_server.serverapp", "IPython", "numpy", "sqlalchemy")
#: by file, in the order of the list: what stands there, and what comes in its place; of
#: a new file all of it, or the command that writes it
Edits = dict[str, list[tuple[str, str]] | str]

READING: Edits = {
    "monitors/warpbook_monitors/metrics.py": [
        (
            '    ("sm_clock_mhz", "mhz",',
            '    ("fan_speed_ratio", "ratio", "Fan speed", "Share of its fastest."),\n'
            '    ("sm_clock_mhz", "mhz",',
        )
    ],
    "monitors/warpbook_monitors/nvml/ways.py": [
        (
            '        "memory_temperature_celsius": _fields(',
            '        "fan_speed_ratio": _one("nvmlDeviceGetFanSpeed", scale=100),\n'
            '        "memory_temperature_celsius": _fields(',
        )
    ],
    "frontend/src/dashboard/tiles/tiles.ts": [
        (
            "  {\n    title: mark('Temperature'),",
            "  {\n    title: mark('Fan'),\n"
            "    lines: [['fan_speed_ratio', mark('fan')]]\n  },\n"
            "  {\n    title: mark('Temperature'),",
        )
    ],
    "extension/warpbook/figures/history_charts.py": [
        (
            '    "Temperature": (',
            '    "Fan": ("fan_speed_ratio",),\n    "Temperature": (',
        )
    ],
    "tests/stub_nvml/stubnvml.c": [
        (
            "ret nvmlDeviceGetCurrPcieLinkWidth(",
            "ret nvmlDeviceGetFanSpeed(dev *d, unsigned *v)"
            " { ENTER(d); *v = 30; return SUCCESS; }\n"
            "ret nvmlDeviceGetCurrPcieLinkWidth(",
        )
    ],
    "tests/monitors/nvml/test_probe.py": [
        (
            '        "memory_temperature_celsius": 41,\n',
            '        "memory_temperature_celsius": 41,\n'
            '        "fan_speed_ratio": 0.3,\n',
        )
    ],
    "tests/monitors/nvml/test_faults.py": [
        (
            '    ("nvmlDeviceGetPerformanceState",): {',
            '    ("nvmlDeviceGetFanSpeed",): {"fan_speed_ratio"},\n'
            '    ("nvmlDeviceGetPerformanceState",): {',
        )
    ],
    "docs/reference/metrics.md": "python tools/reference.py",
}
TECHNIQUE: Edits = {
    "monitors/warpbook_profiler/techniques/host/clones.py": (
        ROOT / "docs/examples/technique/warpbook_clones.py"
    ).read_text(encoding="utf-8"),
    "monitors/warpbook_profiler/techniques/registry.py": [
        ("    cell_by_cell,\n", "    cell_by_cell,\n    clones,\n"),
        ("inference, low_precision),", "inference, low_precision, clones),"),
    ],
    "tests/profiler/advice/test_clones.py": """
from tests.profiler.advice.exam_changes import changes_of


def test_copies_of_whole_tensors_are_advised_against() -> None:
    change = changes_of("masked_attention_by_hand")["fewer-clones"]
    assert "copies of whole tensors" in change.evidence
""",
    "docs/reference/changes.md": "python tools/reference.py",
}
LAB: Edits = {
    "labs/catalogue/kernels/my_lab/": (
        "warpbook labs new my-lab --language plan --folder labs/catalogue/kernels"
    ),
    "labs/catalogue/kernels/my_lab/solutions/wrong.toml": """
[[wrong]]
name = "whole_blocks"
reason = "The last block is left out where it is not full."
edits = [{ old = "(n + threads - 1) // threads", new = "n // threads" }]

[[wrong]]
name = "one_at_least"
reason = "A block is counted where there is none to launch, and the last is left out."
edits = [{ old = "(n + threads - 1) // threads", new = "max(1, n // threads)" }]
""",
    "docs/tutorials/learning-paths.md": [
        (
            "then the text [inference-ladder]",
            "[my-lab](../../labs/catalogue/kernels/my_lab/text.md), "
            "then the text [inference-ladder]",
        )
    ],
    "tests/corpus/sources/my_lab/counted.py": """# Counts in a loop.
def blocks(n, threads):
    count = 0
    while count * threads < n:
        count += 1
    return count
""",
    "tests/corpus/sources/my_lab/edits.toml": """
[[wrong]]
name = "stops_early"
base = "counted"
cause = "result"
reason = "the last block is left out"
lines = ["while"]
edits = [{ old = "count * threads < n", new = "(count + 1) * threads < n" }]
""",
}
CHANGES = {
    "A reading on the dashboard": READING,
    "A technique": TECHNIQUE,
    "A lab": LAB,
}


def steps(title: str) -> tuple[list[str], list[list[str]]]:
    """Return the files of a list, and the commands that test the change."""
    text = CONTRIBUTING.partition(f"\n### {title}\n")[2]
    files = re.findall(r"^\d+\. `([^`]+)`", text.partition("```")[0], re.MULTILINE)
    commands = text.split("```")[1].replace("\\\n", "").strip().splitlines()
    return files, [shlex.split(command) for command in commands]


class Copy:
    """A copy of the tree, and a process that forks to run the tree's programs."""

    def __init__(self, tree: Path, forks: subprocess.Popen[str]) -> None:
        self.tree, self._forks = tree, forks

    def failure(self, commands: list[list[str]]) -> str:
        """Return what the first command that fails prints; nothing if none does."""
        for command in commands:
            assert command[0] == "python"
            more = PYTEST_OPTIONS if "pytest" in command else ()
            status, printed = self._run([*command[1:], *more])
            if status:
                return printed[-4000:] or "no output"
        return ""

    def _run(self, words: list[str]) -> tuple[int, str]:
        assert self._forks.stdin is not None and self._forks.stdout is not None
        self._forks.stdin.write(f"{json.dumps(words)}\n")
        self._forks.stdin.flush()
        status, printed = json.loads(self._forks.stdout.readline())
        return status, printed


def apply(tree: Path, file: str, edit: list[tuple[str, str]] | str) -> None:
    """Make the part of a change that one line of its list asks for."""
    path = tree / file
    if isinstance(edit, list):
        text = path.read_text(encoding="utf-8")
        for old, new in edit:
            assert text.count(old) == 1, (file, old)
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    elif "\n" in edit:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(edit, encoding="utf-8")
    else:
        done = run(tree, shlex.split(edit))
        assert done.returncode == 0, done.stdout + done.stderr


def run(tree: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name(command[0])), *command[1:]],
        cwd=tree,
        env=environment(tree),
        capture_output=True,
        text=True,
        check=False,
    )


def environment(tree: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": "extension:labs:monitors",
        "XDG_DATA_HOME": str(tree / "data"),
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    tree = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=LEFT_OUT)
    for file in ("CONTRIBUTING.md", "README.md", "SECURITY.md", "pyproject.toml"):
        shutil.copy(ROOT / file, tree)
    with subprocess.Popen(
        [sys.executable, "tests/forked_python.py", *LIBRARIES],
        cwd=tree,
        env=environment(tree),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as forks:
        yield Copy(tree, forks)
        forks.stdin.close()


# some twenty runs of pytest
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("title", CHANGES)
def test_a_change_by_its_list_is_whole_and_nothing_of_it_can_be_left_out(
    title: str, copy: Copy
) -> None:
    edits = CHANGES[title]
    files, commands = steps(title)
    assert files == list(edits)
    before = {file: read(copy.tree / file) for file in edits}
    for file, edit in edits.items():
        apply(copy.tree, file, edit)
    assert not copy.failure(commands)
    for file, content in before.items():
        after = read(copy.tree / file)
        write(copy.tree / file, content)
        assert copy.failure(commands), f"nothing fails without {file}"
        write(copy.tree / file, after)
    for file, content in before.items():
        write(copy.tree / file, content)


def read(path: Path) -> dict[Path, bytes]:
    """Return what a file or a folder holds, by path."""
    files = [path] if path.is_file() else path.rglob("*")
    return {file: file.read_bytes() for file in files if file.is_file()}


def write(path: Path, content: dict[Path, bytes]) -> None:
    """Put back what `read` returned, and nothing else."""
    for file in read(path).keys() - content.keys():
        file.unlink()
    for file, data in content.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
