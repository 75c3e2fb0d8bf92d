"""Edits that nothing but runs tells right from wrong: offered only if all agrees."""

from __future__ import annotations

import signal
from typing import Any

import msgspec
import pytest
import torch

from tests.extension.kernel.state_digest import digest
from warpbook.kernel.profile import applying
from warpbook.kernel.runs.recording import RunRecord
from warpbook.kernel.trying import edits, limits, turns
from warpbook.kernel.trying.forms import Forms, moved, unlike
from warpbook.kernel.trying.once import Sources, divided
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.rewriting.batches import batches
from warpbook_profiler.advice.rewriting.host_reads import read_after
from warpbook_profiler.advice.rewriting.layouts import channels_last
from warpbook_profiler.model.change import Change

#: what is slow sleeps, long beside what a busy machine adds
SETUP = """\
import time, torch
def slow(a, b):
    time.sleep(0.002)
    return torch.linalg.solve(a, b)
A, b, calls = torch.randn(60, 5, 5) + 9 * torch.eye(5), torch.randn(60, 5), []
def counted(a, b):
    calls.append(1)
    return slow(a, b)
def told(a, b):
    if len(calls) == 0:
        print("begun")
    return slow(a, b)
class Fit:
    times = 0
    def __call__(self, a, b):
        self.times += 1
        return slow(a, b)
fit = Fit()
"""
LOOP = "found = []\nfor i in range(60):\n    found.append({})\n"


def unknown(name: str) -> Change:
    return Change(*(name, f"Do {name}.", "", "unknown"), *[None] * 5, "", "")


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the report names; advice needs a GPU, so it is given here."""
    names: list[str] = []
    figures = RunRecord.figures

    def advised(record: RunRecord, lines: Any) -> Any:
        changes = tuple(map(unknown, names))
        return msgspec.structs.replace(figures(record, lines), changes=changes)

    monkeypatch.setattr(RunRecord, "figures", advised)
    monkeypatch.setattr(turns, "MOST_PAIRS", 4)
    return names


def applied(shell: Any, monkeypatch: Any, options: str, cell: str) -> Any:
    apply, pairs = applying.apply_changes, list[tuple[Any, Any]]()

    def watched(shell: Any, *arguments: Any) -> Any:
        before = digest(shell.user_ns)
        profile = apply(shell, *arguments)
        pairs.append((before, digest(shell.user_ns)))
        return profile

    monkeypatch.setattr(applying, "apply_changes", watched)
    shell.run_cell(f"%%gpuprof -o p --apply {options}\n{cell}").raise_error()
    ((before, after),) = pairs
    assert before == after
    return shell.user_ns["p"]


def test_an_edit_that_rules_wrote_for_a_function_is_tried(
    shell: Any, named: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[list[str], list[str]]]()

    def written(record: RunRecord, called: Any, names: Any) -> Any:
        asked.append((list(called), list(names)))
        code = "def quick(a, b):\n    return torch.linalg.solve(a, b)\n"
        code += "y = quick(A[0], b[0])\n"
        edit = msgspec.structs.replace(unknown("empty-cache"), code=code)
        return {"expandable-segments": (edit,)}

    monkeypatch.setattr(RunRecord, "called_edits", written)
    named.append("expandable-segments")
    shell.run_cell(SETUP.replace("0.002", "0.1"))
    edited = applied(shell, monkeypatch, "", "y = slow(A[0], b[0])").edited
    assert edited.changes == ("empty-cache",) and "Better: " in edited.sentence
    assert asked == [(["slow"], ["expandable-segments"])]


@pytest.mark.parametrize(
    ("cell", "is_offered"),
    [("y = slow(A[0], b[0])", True), ("A[0] = y = slow(A[0], b[0])", False)],
)
def test_what_a_cell_reads_may_be_a_copy_that_is_made_once(
    shell: Any,
    named: list[str],
    monkeypatch: pytest.MonkeyPatch,
    cell: str,
    is_offered: bool,
) -> None:
    quick = cell.replace("slow(", "torch.linalg.solve(")
    code = f"def kept(value):\n    return value.clone()\nA = kept(A)\n{quick}\n"
    edit = msgspec.structs.replace(unknown("pinned"), code=code)
    written = {"pinned": (edit,)}
    monkeypatch.setattr(RunRecord, "called_edits", lambda *_: written)
    named.append("pinned")
    shell.run_cell(SETUP.replace("0.002", "0.1"))
    edited = applied(shell, monkeypatch, "", cell).edited
    assert edited.sentence.startswith("Better: ") == is_offered


@pytest.mark.parametrize(
    ("names", "options"),
    [(["batch-linalg"], ""), (["batch-linalg"], "batch-linalg"), ([], "all")],
)
def test_one_that_agrees_and_gains_is_offered(
    shell: Any, named: list[str], monkeypatch: Any, names: list[str], options: str
) -> None:
    named += names
    shell.run_cell(SETUP)
    cell = LOOP.format("slow(A[i], b[i])") + "total = torch.stack(found).sum()\n"
    profile = applied(shell, monkeypatch, options, cell)
    edited = profile.edited
    assert edited.sentence.startswith("Better: "), edited
    assert "torch.vmap" in edited.code and edited.diff
    assert not any(change.code or change.diff for change in profile.changes)
    assert edited.changes == tuple(names or ["whole-tensor"])
    (trial,) = profile.trials
    assert trial.outcome == "faster" and not trial.difference.differs
    total = shell.user_ns["total"].clone()
    shell.run_cell(edited.code).raise_error()
    assert shell.user_ns["total"].allclose(total)


def test_an_edit_binds_no_name_of_other_cells_and_holds_rows_of_turns(
    shell: Any, named: list[str], monkeypatch: Any
) -> None:
    named += ["whole-tensor"]
    shell.run_cell(f"{SETUP}turns, of_turn, result = 7, 8, A[:1]")
    cell = (
        "found, words = torch.empty(60, 5), 'turns of one result'\n"
        "for k, row in enumerate(A):\n    found[k] = slow(row, b[k])"
    )
    edited = applied(shell, monkeypatch, "whole-tensor", cell).edited
    assert edited.sentence.startswith("Better: "), edited
    shell.run_cell(edited.code).raise_error()
    names = shell.user_ns
    assert (names["turns"], names["of_turn"]) == (7, 8)
    assert names["words"] == "turns of one result"
    assert names["result"].shape == (1, 5, 5)
    assert names["found"].allclose(torch.linalg.solve(names["A"], names["b"]))


@pytest.mark.parametrize("name", ["batch-linalg", "fuse"])
def test_what_a_cell_calls_of_another_cell_is_changed_for_it_alone(
    shell: Any, named: list[str], monkeypatch: Any, name: str
) -> None:
    named.append(name)

    def fast(a: Any, b: Any) -> Any:
        return torch.linalg.solve(a, b).contiguous()

    monkeypatch.setattr(torch, "compile", lambda _: fast)
    shell.run_cell(SETUP)
    shell.run_cell(
        "def solved(a, b):\n    found = []\n    for i in range(len(a)):\n"
        "        found.append(slow(a[i], b[i]))\n    return torch.stack(found)\n"
    )
    profile = applied(shell, monkeypatch, name, "total = solved(A, b).half()\n")
    edited = profile.edited
    assert edited.sentence.startswith("Better: "), edited
    before, solved = shell.user_ns["total"].clone(), shell.user_ns["solved"]
    if name == "fuse":
        assert edited.once.splitlines()[-1] == "solved_compiled = torch.compile(solved)"
        shell.run_cell(edited.once).raise_error()
    else:
        assert "def solved_edited(a, b):" in edited.code
    shell.run_cell(edited.code).raise_error()
    assert shell.user_ns["total"].allclose(before, atol=1e-2)
    assert shell.user_ns["solved"] is solved


#: how cells leave the same, and how an edit leaves it otherwise
LEFT = {
    "equal": ("rows = [b.clone(), 1.5]", "rows = [b * 1, 3 / 2]"),
    "deque": ("rows = deque([[1], [2]])", "rows = deque([[2], [2]])"),
    "one list": ("rows = [[1], [1]]", "row = [1]\nrows = [row, row]"),
    "namespace": ("n = SimpleNamespace(y=1)", "n = SimpleNamespace(y=2)"),
    "slots": ("s = Slots(1, b.clone())", "s = Slots(1, b * 2)"),
    "slots, equal": ("s = Slots(1, b.clone())", "s = Slots(1, b * 1)"),
    "decimal": ("d = Decimal('1.1')", "d = Decimal('1.2')"),
    "date": ("d = date(2026, 1, 1)", "d = date(2026, 1, 2)"),
    "library": ("c = Counted(1)", "c = Counted(2)"),
    "deep": ("d = [[[[[[1]]]]]]", "d = [[[[[[2]]]]]]"),
    "long keys": ("d = {40 * 'a': 1, 41 * 'a': 2}", "d = {40 * 'a': 1, 41 * 'a': 3}"),
    "sparse": ("m = torch.eye(3).to_sparse()", "m = (2 * torch.eye(3)).to_sparse()"),
    "strides": ("m = torch.ones(3, 4)", "m = torch.ones(4, 3).T"),
    "array order": ("m = np.ones((3, 4))", "m = np.ones((4, 3)).T"),
    "whole number": ("n = 2**60 + 1", "n = 2**60"),
    "float": ("lr = 0.1", "lr = torch.tensor(0.1).item()"),
    "float, equal": ("lr = 0.1", "lr = torch.tensor(0.1).double().item() * 0 + 0.1"),
    "clock": ("when = time.time()", "when = time.time() - 60"),
    "hidden": ("c = itertools.count(3)", "c = itertools.count(4)"),
    "stderr": ("print('a', file=sys.stderr)", "print('b', file=sys.stderr)"),
    "log": ("logging.getLogger('quiet').error('a')", "pass"),
    "display": ("display(HTML('a'))", "display(HTML('b'))"),
    "gradient": (
        "w = torch.ones(2, requires_grad=True)\nw.sum().backward()",
        "w = torch.ones(2, requires_grad=True)\n(2 * w).sum().backward()",
    ),
}
LEAVES = """\
import itertools, logging, sys, numpy as np
from collections import deque
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from IPython.display import HTML
from warpbook.kernel.trying.turns import Times as Counted_
@dataclass(slots=True)
class Slots:
    at: int
    value: object
def Counted(n):
    return Counted_([n], [])
logging.getLogger("quiet").addHandler(logging.NullHandler())
logging.getLogger("quiet").propagate = False
"""


def test_all_that_a_cell_leaves_is_compared_or_refuses_its_edit(
    shell: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(turns, "MOST_PAIRS", 4)
    shell.run_cell(SETUP + LEAVES).raise_error()
    shell.run_cell("%%gpuprof -o p\ntorch.ones(2)").raise_error()
    refusals: dict[str, str | None] = {}
    for name, cells in LEFT.items():
        before, after = (Sources("", one) for one in cells)
        profile = shell.user_ns["p"]
        trial, _ = edits.try_edit(
            shell, (before, after), [], "edit", 300, profile, liberal=True
        )
        is_wrong = trial.difference is not None and trial.difference.differs
        refusals[name] = trial.refused or ("differs" if is_wrong else None)
    equal = {name for name, refusal in refusals.items() if refusal is None}
    assert equal == {name for name in LEFT if name.endswith("equal")}, refusals
    assert refusals["hidden"] == (
        "the cell leaves c, a itertools.count, which can't be compared."
    )


def test_another_layout_is_no_other_result_where_it_is_the_change(shell: Any) -> None:
    shell.run_cell(
        "import torch\nimport torch.nn.functional as F\n"
        "x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)\n"
        "net = torch.nn.Conv2d(3, 4, 3).requires_grad_(False)\n"
        "other = torch.randn(4, 3, 3, 3)\nflat = other.view(-1)"
    ).raise_error()
    shell.run_cell("%%gpuprof -o p\ntorch.ones(2)").raise_error()
    cells = {
        "equal": "y = F.relu(net(x)) + F.conv2d(x, w)\n",
        "written": "y = F.conv2d(x, other).sum()\nflat.mul_(0.5)\n"
        "z = F.conv2d(x, other).sum()\n",
        "viewed": "y = F.conv2d(x, w).view(2, -1)\n",
    }
    refusals = {}
    for name, cell in cells.items():
        *_, text = channels_last(CellCode(cell))
        sides = Sources("", cell), divided(text, cell)
        trial, _ = edits.try_edit(
            shell, sides, ["channels-last"], "edit", 300, shell.user_ns["p"], None, True
        )
        is_wrong = trial.difference is not None and trial.difference.differs
        refusals[name] = trial.refused or ("differs" if is_wrong else None)
    assert [name for name in cells if not refusals[name]] == ["equal"], refusals


@pytest.mark.parametrize(
    ("after", "refusal"),
    [
        ("while True: y = 1", "with the edit a run takes more than "),
        (
            "while True:\n    try:\n        time.sleep(9)\n    except Exception: pass",
            "with the edit a run takes more than ",
        ),
        (
            "y = torch.empty(3 << 28)",
            "with the edit the cell needs more memory than is free.",
        ),
    ],
)
def test_an_edit_without_end_or_with_no_room_is_ended(
    shell: Any, monkeypatch: Any, after: str, refusal: str
) -> None:
    handler = signal.getsignal(signal.SIGALRM)
    monkeypatch.setattr(edits, "_EXTRA_S", 0.5)
    monkeypatch.setattr(limits, "free_host_bytes", lambda: 0)
    shell.run_cell(SETUP).raise_error()
    shell.run_cell("%%gpuprof -o p\ntorch.ones(2)").raise_error()
    sides, profile = (Sources("", "y = 1"), Sources("", after)), shell.user_ns["p"]
    trial, _ = edits.try_edit(shell, sides, [], "edit", 300, profile, liberal=True)
    assert trial.refused is not None and trial.refused.startswith(refusal)
    assert "y" not in shell.user_ns
    assert signal.getsignal(signal.SIGALRM) is handler
    # afterwards there is room again
    torch.empty(3 << 28)


def test_what_an_edit_reads_is_read_in_the_cell() -> None:
    cell = LOOP.format("slow(A[i], b[i]).sum().item()")
    code = CellCode(cell)
    texts = [*batches(code), *read_after(code)]
    assert len(texts) > 1 and any("numbers(" in text for text in texts)
    for text in texts:
        sources = divided(text, cell)
        assert not sources.once
        names: dict[str, Any] = {}
        exec(SETUP, names)
        exec(sources.cell, names)
        assert len(names["found"]) == 60


def test_what_is_read_after_a_loop_has_memory_of_its_own() -> None:
    (text, *_) = read_after(CellCode(LOOP.format("(A[i] @ b[i]).cpu()")))
    names: dict[str, Any] = {}
    exec(SETUP, names)
    exec(text, names)
    rows = names["found"]
    assert all(row.untyped_storage().nbytes() == 20 for row in rows)
    rows[0] += torch.ones(5, requires_grad=True)
    # a view of what later turns write to
    cell = "acc = torch.zeros(5)\n" + LOOP.format("acc.view(5).tolist()")
    (text, *_) = read_after(CellCode(cell.replace(":\n", ":\n    acc.add_(b[i])\n")))
    exec(text, names)
    assert len(set(map(tuple, names["found"]))) == 60


@pytest.mark.parametrize(
    "cell",
    [
        # functions that count, print or keep, which vmap calls once
        LOOP.format("counted(A[i], b[i])"),
        LOOP.format("told(A[i], b[i])"),
        LOOP.format("fit(A[i], b[i])"),
        # each turn draws
        LOOP.format("(A[i] + torch.rand(5)).sum(0)"),
        # the person's own tensor, a row at a time
        LOOP.format("b[i].mul_(slow(A[i], b[i]).sum())"),
    ],
)
def test_one_that_leaves_anything_else_is_not(
    shell: Any, named: list[str], monkeypatch: Any, cell: str
) -> None:
    named += ["whole-tensor"]
    assert list(liberal_edits(cell, (unknown("whole-tensor"),), only_named=True))
    shell.run_cell(SETUP)
    profile = applied(shell, monkeypatch, "all", cell)
    assert not profile.edited.code and not profile.edited.diff
    assert not profile.trials
    # not the edit, but what it gave
    known = "No edit is made: none is known to be right and to gain 5 % (whole-tensor: "
    assert profile.edited.sentence.startswith(known)


@pytest.mark.parametrize(
    "cell",
    [
        # views of the person's own memory
        LOOP.format("slow(A[i], b[i]) is None or A[i].T"),
        # numbers that become tensors
        "last = 0\nfor i in range(60):\n    y = torch.linalg.solve(A[i], b[i])\n"
        "    if y.sum() > 1e9:\n        last = y\n",
    ],
)
def test_some_have_no_edit_that_could_be_tried(cell: str) -> None:
    changes = unknown("whole-tensor"), unknown("branch-on-gpu")
    assert not list(liberal_edits(cell, changes, only_named=True))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        # of a tensor that was copied to the host before it was printed
        ("a tensor(0.5, device='cuda:0')", "a tensor(0.5)", ""),
        ("[1.],\n  device='cuda:1', grad_fn=<MulBackward0>)", "[1.])", ""),
        ("tensor(0.5, device='cuda:0')", "tensor(0.6)", "what it prints"),
        ("tensor(0.5, dtype=torch.float64)", "tensor(0.5)", "what it prints"),
        ("step 1\nstep 2\n", "step 2\nstep 1\n", "what it prints"),
    ],
)
def test_a_tensor_may_be_printed_of_the_host(
    before: str, after: str, words: str
) -> None:
    said = [Forms({}, {}, frozenset(), one, {}, {}, {}) for one in (before, after)]
    found = unlike(*said, lambda path: True)
    assert found.startswith(words) and bool(found) == bool(words)


@pytest.mark.parametrize(
    ("before", "after", "is_result", "places"),
    [
        ("Tensor torch.float32 (4,) on cpu strides [1]", "cuda:0", False, ["cuda:0"]),
        # a later cell reads it
        ("Tensor torch.float32 (4,) on cpu strides [1]", "cuda:0", True, None),
        ("str 'work on cpu'", "cuda:0", False, None),
        ("Tensor torch.float32 (4,) on cuda:0 strides [1]", "cuda:0", True, []),
    ],
)
def test_a_step_towards_results_may_be_on_another_device(
    before: str, after: str, is_result: bool, places: list[str] | None
) -> None:
    kinds = before, before.replace("on cpu", f"on {after}")
    forms = [Forms({"f": one}, {}, frozenset(), "", {}, {}, {}) for one in kinds]
    refused = unlike(*forms, lambda path: is_result)
    assert bool(refused) == (places is None)
    if places is not None:
        assert [place for _, place in moved(*forms)] == places
