"""The same program as different people write it: named, and edited to the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.gpu.exam.graphs_on_cpu import replace_graphs
from tests.profiler.advice.loop_programs import PROGRAMS
from tests.profiler.advice.traced import namespace_of, traced
from warpbook.kernel.runs.called_code import called_code
from warpbook.kernel.trying.once import divided
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import profile
from warpbook_profiler.verdict.called_edits import called_edits


def offers(
    setup: str, cell: str, path: Path
) -> tuple[tuple[Change, ...], list[Change]]:
    """Give what a report advises, and all edits that `--apply` would run."""
    called = called_code(cell, namespace_of(setup))
    trace = traced(setup, cell, path / "torch.json").evidence(path).trace
    trace = Trace(trace.events, replace(trace.run, called=called))
    changes = profile(trace).changes
    unwritten = [one.name for one in changes if not one.code]
    written = called_edits(trace, called, unwritten)
    unrecorded = next((one.code for one in changes if one.name == "no-autograd"), "")
    tried = liberal_edits(cell, changes, True, called, written, unrecorded)
    return changes, [*(one for one in changes if one.code), *tried]


def result(setup: str, cell: str, code: str) -> torch.Tensor:
    names, sources = namespace_of(setup), divided(code, cell)
    exec(sources.once, names)
    exec(sources.cell, names)
    y: torch.Tensor = names["y"]
    return y


@pytest.mark.parametrize(("name", "setup", "cell"), PROGRAMS)
def test_a_program_is_named_and_edited(
    name: str, setup: str, cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda one=None, **_: one or (lambda f: f))
    replace_graphs(monkeypatch)
    changes, edits = offers(setup, cell, tmp_path)
    assert name in [one.name for one in changes[:2]]
    before = result(setup, cell, cell)
    (edit, *_) = [one for one in edits if one.name == name]
    assert result(setup, cell, edit.code).allclose(before, 1e-4, 1e-4)


@pytest.mark.parametrize(
    "cell",
    [
        # the matrix is another one in each turn, or may be
        "u = b\nfor k in range(30):\n    u = torch.linalg.solve(I + k * A, u)\n",
        "u = b\nfor k in range(9):\n    A += I\n    u = torch.linalg.solve(I + A, u)\n",
        "u = b\nfor k in range(30):\n    u = torch.linalg.solve(A + noisy(I), u)\n",
    ],
)
def test_another_matrix_is_factored_again(cell: str, tmp_path: Path) -> None:
    setup = "A, I, b = torch.randn(8, 8), 9 * torch.eye(8), torch.randn(8)\n"
    setup += "def noisy(x):\n    return x + torch.rand(8, 8)\n"
    changes, _ = offers(setup, cell, tmp_path)
    assert "factor-once" not in [one.name for one in changes]
