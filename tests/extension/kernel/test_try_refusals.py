"""`%%gpuprof --try` refuses cells that can't be undone, and says where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from warpbook.kernel.trying import reach, saved_tensors
from warpbook.kernel.trying.copies import guarded
from warpbook.kernel.trying.reach import reach as reached_by
from warpbook.kernel.trying.refusals import NotIsolated

SETUP = """
import array, io, os, pathlib, random, subprocess, threading, time
import numpy as np, torch
from torch.utils.data import DataLoader, TensorDataset
a = torch.ones(2, 2)
data = DataLoader(TensorDataset(a), batch_size=1)
batches, numbers = iter(data), (n for n in range(9))
names = zip([1], [2])
class Log:
    def __init__(self, path): self.path = path
    def note(self, words):
        with open(self.path, "a") as file: file.write(words)
log = Log("log.txt")
def saves(tensor):
    x = tensor + 1
    torch.save(x, "x.pt")
def calls(tensor): return saves(tensor)
objects = np.array([object()])
class OverC(array.array): __slots__ = ()
over_c = OverC("i", [1])
held = io.StringIO()
"""
CELLS = [
    ("a @ a\ntorch.save(a, 'a.pt')", "writes files (line 3)"),
    ("a @ a\nopen('a.txt', 'w').close()", "opens a file for writing (line 3)"),
    ("mode = 'rb'\nopen('a.txt', mode).close()", "opens a file for writing (line 3)"),
    ("pathlib.Path('a.txt').write_text('a')", "writes files (line 2)"),
    ("np.save('a.npy', a.numpy())", "writes files (line 2)"),
    ("os.makedirs('folder', exist_ok=True)", "writes files (line 2)"),
    ("subprocess.run(['true'])", "starts or signals processes (line 2)"),
    ("os.system('true')", "starts or signals processes (line 2)"),
    ("import urllib.request as r\nr.Request('http://a')", "talks over the network"),
    ("import socket\nsocket.socket().close()", "talks over the network (line 3)"),
    ("threading.Thread(target=print).start()", "starts threads (line 2)"),
    ("x = eval('a')", "runs code that is not in sight (line 2)"),
    ("%time a @ a", "uses a magic or the shell (line 2)"),
    ("!true", "uses a magic or the shell (line 2)"),
    ("torch.nn.Linear.extra = 1\ndel torch.nn.Linear.extra", "sets an attribute of"),
    ("time.own = 1", "sets an attribute of time (line 2)"),
    ("import asyncio\nawait asyncio.sleep(0)", "awaits something (line 3)"),
    ("next(batches)", "works with batches, which is a torch.utils.data"),
    ("sum(numbers)", "works with numbers, which is a builtins.generator"),
    ("list(names)", "works with names, which is a builtins.zip"),
    ("calls(a)", "writes files (line 3 of saves)"),
    ("log.note('a')", "opens a file for writing (line 2 of Log.note)"),
    ("objects[0]", "works with objects, which is an array of Python objects"),
    (
        "over_c[0] = 2",
        "works with over_c, which is a __main__.OverC, which can't be put",
    ),
    ("held.write('a')", "works with held, which is an open file"),
    ("b = a\ndel a", "deletes a name, whose memory a copy would hold (line 3)"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("a")
    monkeypatch.chdir(work)
    return work


def refusal(shell: Any, cell: str) -> str:
    result = shell.run_cell(f"%%gpuprof -q -o p --try bf16\n{cell}")
    assert result.success
    (trial,) = shell.user_ns["p"].trials
    assert trial.outcome == "refused", trial.sentence
    return str(trial.refused)


def test_what_cannot_be_undone_is_refused_with_its_line(
    shell: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One shell for all: each cell runs once, as itself, and never on copies."""
    shell.run_cell(SETUP.replace("import matplotlib\n", ""))
    monkeypatch.setattr("warpbook.kernel.trying.trials._Trials.measure", None)
    for cell, reason in CELLS:
        assert reason in refusal(shell, cell), cell


def test_a_name_that_the_cell_sets_itself_may_be_deleted(
    shell: Any, folder: Path
) -> None:
    shell.run_cell("import torch\na = torch.ones(2, 2)")
    cell = "for part in a:\n    b = part + 1\n    del part, b\nc = a @ a"
    shell.run_cell(f"%%gpuprof -q -o p --try bf16\n{cell}")
    (trial,) = shell.user_ns["p"].trials
    assert trial.refused is None, trial.sentence


def test_what_source_does_not_show_is_stopped_as_it_happens(
    shell: Any, folder: Path
) -> None:
    """A library writes: the second run is stopped before it does."""
    shell.run_cell("import torch, shelve, logging.handlers, uuid\na = torch.ones(2, 2)")
    cell = "a @ a\nshelf = shelve.open('shelf'); shelf['a'] = 1; shelf.close()"
    # the cell's own run has written it
    reason = refusal(shell, cell)
    assert "(line 3)" in reason and ("file" in reason), reason
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert "shelf" in "".join(times)


def test_what_only_reads_is_tried(
    shell: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook.kernel.trying.turns.MOST_PAIRS", 4)
    shell.run_cell(SETUP.replace("import matplotlib\n", ""))
    cell = (
        "with open('a.txt') as file: words = file.read()\n"
        "torch.backends.cudnn.benchmark = True\n"
        "batches = iter(data)\n"
        "for (batch,) in batches: result = batch @ a\n"
        "print(result, os.environ.get('HOME'), os.path.exists('a.txt'))"
    )
    assert shell.run_cell(f"%%gpuprof -q -o p --try bf16\n{cell}").success
    (trial,) = shell.user_ns["p"].trials
    assert trial.refused is None, trial.sentence
    torch.backends.cudnn.benchmark = False


def test_no_room_for_a_copy_is_refused_with_the_figures(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run_cell("import torch; a = torch.ones(512, 512)")
    monkeypatch.setattr(saved_tensors, "free_host_bytes", lambda: 1 << 20)
    reason = refusal(shell, "a @ a")
    assert "takes 1.00 MiB; 1.00 MiB of the host's memory are free" in reason


def test_too_many_objects_are_refused(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run_cell(
        "import torch; a = torch.ones(2, 2); rows = [[n] for n in range(99)]"
    )
    monkeypatch.setattr(reach, "MOST_OBJECTS", 50)
    reason = refusal(shell, "a @ a\nrows[0]")
    assert "more Python objects than can be kept" in reason and "rows[" in reason


def test_the_guard_stops_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(NotIsolated, match="opens a file for writing"):
        with guarded("<no cell>"):
            path.write_text("a")
    assert not path.exists()
    path.write_text("free again")


def test_functions_lead_to_what_they_change() -> None:
    counts: list[int] = []
    weight = torch.ones(2)

    def inner() -> None:
        counts.append(int(weight[0]))

    space = {"outer": lambda: inner(), "unused": [1]}
    reached = reached_by(["outer"], space)
    assert any(value is counts for _, value in reached.containers)
    assert any(value is weight for _, value in reached.tensors)
    assert not any(value is space["unused"] for _, value in reached.containers)
    assert reached.problems == []


def test_what_python_keeps_of_a_class_is_no_state() -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(
        "import abc, collections, dataclasses, enum, functools, operator, typing\n"
        "class Interval(typing.NamedTuple):\n"
        "    low: float\n"
        "    high: float = 1.0\n"
        "Pair = collections.namedtuple('Pair', 'x y')\n"
        "class Base(abc.ABC):\n"
        "    __slots__ = ('size',)\n"
        "    @abc.abstractmethod\n"
        "    def run(self): ...\n"
        "class Loss(Base):\n"
        "    counts = []\n"
        "    by_name = {1: operator.itemgetter(1), 2: operator.attrgetter('x')}\n"
        "    def run(self): return self.counts\n"
        "    @functools.cached_property\n"
        "    def kept(self): return 1\n"
        "    @property\n"
        "    def now(self): return 2\n"
        "class Shaped(typing.Protocol):\n"
        "    shape: tuple\n"
        "class Mode(enum.Enum):\n"
        "    FAST = 1\n"
        "@dataclasses.dataclass(slots=True)\n"
        "class Step:\n"
        "    names: list = dataclasses.field(default_factory=list)\n"
        "loss, step = Loss(), Step()\n",
        space,
    )
    reached = reached_by(space.keys() - {"__builtins__"}, space)
    assert reached.problems == []
    # what the person gives a class is
    assert any(value is space["Loss"].counts for _, value in reached.containers)
