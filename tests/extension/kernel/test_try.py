"""`%%gpuprof --try`: what is tried, what it gives, and that nothing stays behind."""

from __future__ import annotations

import shutil
import signal
from typing import Any

import pytest
import torch

from tests.extension.kernel.in_shell import shown
from tests.extension.kernel.state_digest import digest
from warpbook.kernel.trying import copies, trials, turns
from warpbook.kernel.trying.saved_tensors import SavedTensors
from warpbook_profiler.techniques.registry import experiments

NAMES = [kind.name for kind in experiments()]
SETUP = """
import random, numpy as np, torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1),
    nn.Flatten(), nn.Linear(8 * 36, 4),
)
opt = torch.optim.Adam(model.parameters(), 1e-3)
images, labels = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))
losses, seen = [], {"steps": 0}
array = np.zeros(4)
mine, theirs, its = torch.Generator(), np.random.default_rng(0), random.Random(0)
"""
TRAINING = """
for _ in range(2):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    opt.step()
    losses.append(loss.item())
    seen["steps"] += 1
    array += 1
torch.rand(2, generator=mine), theirs.random(), its.random(), random.random()
images[0, 0, 0, 0] += np.random.rand()
model.eval(); model.train(seen["steps"] > 3)
losses[-1]
"""


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict, dict]]:
    """What the person has just before and after trials; both are one and the same."""
    pairs: list[tuple[dict, dict]] = []
    really = trials.try_changes

    def watched(shell: Any, *arguments: Any) -> Any:
        before = digest(shell.user_ns)
        try:
            return really(shell, *arguments)
        finally:
            pairs.append((before, digest(shell.user_ns)))

    monkeypatch.setattr(trials, "try_changes", watched)
    return pairs


@pytest.fixture
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_PAIRS", 4)


def tried(shell: Any, options: str, cell: str) -> dict[str, Any]:
    result = shell.run_cell(f"%%gpuprof -o p --try {options}\n{cell}")
    assert result.success
    return {trial.name: trial for trial in shell.user_ns["p"].trials}


def assert_unchanged(states: list[tuple[dict, dict]]) -> None:
    assert states
    for before, after in states:
        assert before.keys() == after.keys()
        assert [key for key in before if before[key] != after[key]] == []


# what torch.compile imports warns
@pytest.mark.filterwarnings("ignore")
def test_what_applies_is_measured_and_nothing_of_the_state_is_changed(
    shell: Any, states: Any, few_pairs: None, ingest: Any
) -> None:
    shell.run_cell(SETUP)
    by_change = tried(shell, "--try-seconds 600", TRAINING)
    assert_unchanged(states)
    assert list(by_change) == NAMES
    for name in ("bf16", "fused-optimizer", "channels-last", "compile"):
        trial = by_change[name]
        assert trial.refused is None, trial.sentence
        assert trial.pairs == 4
        assert trial.speed.low <= trial.speed.ratio <= trial.speed.high
        assert trial.difference.compared > 10
    for name in ("tf32", "pinned", "cuda-graph"):
        assert "nothing on a GPU" in by_change[name].refused
    # the cell itself ran once
    assert shell.user_ns["seen"] == {"steps": 2}
    assert len(shell.user_ns["losses"]) == 2
    # bf16 has eight bits, and dropout is drawn from other numbers when compiled
    assert by_change["bf16"].difference.differs
    assert not by_change["fused-optimizer"].difference.differs
    assert not by_change["channels-last"].difference.differs
    text, html = shown(shell), shown(shell, "text/html")
    for words in (text, html):
        assert "Tried on copies" in words
        assert "Not tried: the cell computes nothing on a GPU." in words
    (report,) = ingest.reports
    assert [trial.name for trial in report.profile.trials] == NAMES
    assert shell.user_ns["p"].to_dict()["trials"][1]["name"] == "bf16"


def test_one_name_is_one_trial_and_results_are_compared(
    shell: Any, states: Any, few_pairs: None
) -> None:
    shell.run_cell("import torch; a = torch.randn(64, 64)")
    by_change = tried(shell, "bf16", "b = a @ a\nb.sum()")
    assert list(by_change) == ["bf16"]
    difference = by_change["bf16"].difference
    assert difference.differs and difference.compared == 2
    assert difference.largest_relative < 0.1
    assert "The results differ: " in by_change["bf16"].sentence
    assert_unchanged(states)


def test_a_change_that_gives_the_same_bits_says_so(
    shell: Any, states: Any, few_pairs: None
) -> None:
    shell.run_cell("import torch; layer = torch.nn.Conv2d(3, 4, 3, bias=False)")
    shell.run_cell("x = torch.zeros(1, 3, 8, 8)")
    by_change = tried(shell, "channels-last", "with torch.no_grad(): y = layer(x)")
    assert by_change["channels-last"].difference.largest_absolute == 0
    assert "the same, bit for bit" in by_change["channels-last"].sentence
    assert_unchanged(states)


def test_an_optimizer_that_the_cell_makes_is_fused_too(
    shell: Any, states: Any, few_pairs: None
) -> None:
    shell.run_cell("import torch; layer = torch.nn.Linear(4, 4); x = torch.ones(2, 4)")
    cell = (
        "opt = torch.optim.AdamW(layer.parameters())\n"
        "for _ in range(3):\n"
        "    layer(x).sum().backward()\n"
        "    opt.step()\n"
        "    opt.zero_grad()"
    )
    by_change = tried(shell, "fused-optimizer", cell)
    assert by_change["fused-optimizer"].refused is None
    assert shell.user_ns["opt"].param_groups[0]["fused"] is None
    assert_unchanged(states)


@pytest.mark.parametrize(
    "name, setup, cell, reason",
    [
        ("tf32", "a = torch.ones(4, 4)", "a @ a", "nothing on a GPU"),
        ("bf16", "a = torch.ones(4)", "a + a", "multiplies no float32"),
        (
            "bf16",
            "a = torch.ones(4, 4)",
            "with torch.autocast('cpu'): b = a @ a",
            "already uses autocast",
        ),
        ("channels-last", "a = torch.ones(4)", "a + a", "no torch.nn.Conv2d ran"),
        (
            "channels-last",
            "a = torch.ones(1, 1, 4, 4)",
            "torch.nn.Conv2d(1, 1, 2)(a)",
            "itself creates its modules",
        ),
        ("compile", "a = torch.ones(4)", "a + a", "no torch.nn.Module was called"),
        ("fused-optimizer", "a = torch.ones(4)", "a + a", "no optimizer of torch"),
        (
            "fused-optimizer",
            "a = torch.ones(4, requires_grad=True); a.sum().backward()\n"
            "opt = torch.optim.SGD([a], 0.1, fused=True)",
            "opt.step()",
            "already update all tensors at once",
        ),
    ],
)
def test_a_change_that_does_not_apply_says_why(
    shell: Any, states: Any, name: str, setup: str, cell: str, reason: str
) -> None:
    shell.run_cell(f"import torch\n{setup}")
    by_change = tried(shell, name, cell)
    assert reason in by_change[name].refused
    assert_unchanged(states)


def test_without_a_compiler_nothing_is_compiled(
    shell: Any, states: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run_cell("import torch; layer = torch.nn.Linear(2, 2); x = torch.ones(1, 2)")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    by_change = tried(shell, "compile", "layer(x)")
    assert "needs a C++ compiler" in by_change["compile"].refused
    assert_unchanged(states)


@pytest.mark.filterwarnings("ignore")
def test_what_a_trial_has_compiled_runs_for_the_person_too(
    shell: Any, few_pairs: None
) -> None:
    """torch runs the same code again, which reads names that torch made up."""
    shell.run_cell(
        "import torch\n"
        "class Gelu(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        y = 0.5 * x\n"
        "        torch._dynamo.graph_break()\n"
        "        return y * (1 + torch.tanh(x + 0.044715 * x**3))\n"
        "model, x = Gelu(), torch.randn(64, 64)"
    )
    by_change = tried(shell, "compile --try-seconds 120", "y = model(x)")
    assert by_change["compile"].refused is None, by_change["compile"].sentence
    assert not by_change["compile"].difference.differs
    shell.run_cell("z = torch.compile(model)(x)").raise_error()
    assert torch.allclose(shell.user_ns["z"], shell.user_ns["y"], atol=1e-6)
    # and so does the next trial
    by_change = tried(shell, "compile --try-seconds 120", "y = model(x)")
    assert by_change["compile"].refused is None, by_change["compile"].sentence


def test_a_budget_that_holds_no_pairs_is_told(shell: Any, states: Any) -> None:
    shell.run_cell("import time, torch; a = torch.ones(2, 2)")
    cell = "a @ a\ntime.sleep(0.1)"
    by_change = tried(shell, "bf16 --try-seconds 0.2", cell)
    assert "give more by --try-seconds" in by_change["bf16"].refused
    assert_unchanged(states)


def test_what_trials_print_and_show_is_not_heard(
    shell: Any, few_pairs: None, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("import torch; a = torch.ones(2, 2)")
    tried(shell, "bf16", "print('once')\ndisplay(a)\na @ a;")
    assert capsys.readouterr().out.count("once") == 1
    # the cell's own, and the report
    assert len(shell.display_pub.outputs) == 2


def test_an_interrupted_trial_puts_everything_back_and_the_report_is_shown(
    shell: Any, states: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run_cell(SETUP)
    calls = 0
    really = turns.wait_for_gpu

    def interrupted() -> None:
        nonlocal calls
        calls += 1
        really()
        # after the body of a changed run
        if calls == 8:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(turns, "wait_for_gpu", interrupted)
    by_change = tried(shell, "bf16", TRAINING)
    assert calls == 8
    assert by_change["bf16"].refused == "it was interrupted."
    assert_unchanged(states)


def test_an_interrupt_while_things_are_put_back_waits_until_they_are(
    shell: Any, states: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.run_cell(SETUP)
    really = SavedTensors.restore
    calls = 0

    def interrupted(self: SavedTensors) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            signal.raise_signal(signal.SIGINT)
        really(self)

    monkeypatch.setattr(SavedTensors, "restore", interrupted)
    by_change = tried(shell, "bf16", TRAINING)
    assert by_change["bf16"].refused == "it was interrupted."
    assert_unchanged(states)


def test_a_change_that_raises_is_refused_and_everything_is_put_back(
    shell: Any, states: Any
) -> None:
    shell.run_cell(SETUP)
    # autocast makes another dtype, at which this cell stops in its middle
    cell = TRAINING + "if (images.view(4, -1) @ images.view(4, -1).T).dtype != "
    cell += "torch.float32: raise OSError('no halves')"
    by_change = tried(shell, "bf16", cell)
    assert "raised OSError: no halves" in by_change["bf16"].refused
    assert_unchanged(states)


def test_a_cell_that_does_not_run_twice_is_refused(shell: Any, states: Any) -> None:
    shell.run_cell("import torch; a = [torch.ones(2, 2)]")
    by_change = tried(shell, "bf16", "b = a.pop() @ torch.ones(2, 2)")
    assert "does not run a second time" in by_change["bf16"].refused
    assert "IndexError" in by_change["bf16"].refused
    assert_unchanged(states)


def test_a_cell_that_fails_is_not_tried(shell: Any, states: Any) -> None:
    shell.run_cell("%%gpuprof -o p --try\nimport torch\ntorch.ones(2)\n1 / 0")
    assert shell.user_ns["p"].trials == ()
    assert states == []


def test_a_graph_of_the_persons_own_can_still_go_backward(
    shell: Any, few_pairs: None
) -> None:
    """Its versions are put back too, or torch would say that a weight was changed."""
    shell.run_cell(SETUP)
    setup = "weight = torch.ones(3, 3, requires_grad=True)\n"
    shell.run_cell(f"{setup}mark = torch.ones(1)")
    # the first run alone changes the weight, and what is held is made after that
    cell = "with torch.no_grad():\n    weight.add_(1)\nheld = (weight @ weight).sum()\n"
    assert tried(shell, "bf16", cell)["bf16"].refused is None
    assert shell.run_cell("held.backward()").success
    assert shell.user_ns["weight"].grad is not None


def test_memory_that_several_share_and_an_array_that_grows_are_put_back(
    shell: Any, states: Any
) -> None:
    shell.run_cell(
        "import numpy as np, torch; shared = np.ones(8); grown = np.ones(3)\n"
        "few, whole = torch.from_numpy(shared[:2]), torch.from_numpy(shared)"
    )
    cell = "few.sum(); whole.add_(1); grown.resize(grown.size + 1, refcheck=False)"
    shell.run_cell(f"%%gpuprof -q -o p --try bf16\n{cell}")
    assert shell.user_ns["p"] is not None
    [(before, after)] = states
    assert before == after


def test_the_line_magic_tries_its_expression(
    shell: Any, states: Any, few_pairs: None
) -> None:
    shell.run_cell("import torch; a = torch.ones(8, 8)")
    result = shell.run_cell("b = %gpuprof -o p --try bf16 a @ a")
    assert result.success
    assert [trial.name for trial in shell.user_ns["p"].trials] == ["bf16"]
    shell.run_cell("b = %gpuprof -o p --try a @ a")
    assert len(shell.user_ns["p"].trials) == len(NAMES)
    assert_unchanged(states)


def test_a_change_that_is_never_tried_says_why(shell: Any) -> None:
    result = shell.run_cell("%%gpuprof --try keep-mask\nran = True")
    error = result.error_before_exec or result.error_in_exec
    assert "needs an edit of the cell" in str(error) and "tf32" in str(error)
    assert "ran" not in shell.user_ns


def test_the_guard_watches_only_while_a_cell_runs_on_copies(tmp_path: Any) -> None:
    with copies.guarded("<cell>"):
        pass
    (tmp_path / "free").write_text("written")
    assert torch.is_grad_enabled()
