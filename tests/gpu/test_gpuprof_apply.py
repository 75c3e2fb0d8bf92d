"""`%%gpuprof --apply` on a real GPU: edits of real advice, and the state.

    pytest -m gpu -s tests/gpu/test_gpuprof_apply.py

Whether an edit is better is told by the interval of its own runs; no time is asserted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.gpu.notebook import Notebook
from tests.gpu.watched_state import watched_state

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

SETUP = """
import torch
torch.manual_seed(0)
torch.autograd.set_detect_anomaly(False)
x = torch.randn(256, 256, device="cuda")
w = torch.randn(256, 256, device="cuda", requires_grad=True)
opt, sums = torch.optim.Adam([w]), []
parts = [torch.randn(1 << 18, device="cuda") for _ in range(200)]
"""
#: two changes that an expert makes, and a state that moves on with each run
SLOW = """\
torch.autograd.set_detect_anomaly(True)
for _ in range(20):
    loss = (x @ w).relu().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
joined = parts[0]
for part in parts[1:]:
    joined = torch.cat([joined, part])
sums.append(loss.detach())"""


@pytest.fixture
def applied(shared_notebook: Callable[[], Notebook]) -> Callable[..., dict[str, Any]]:
    """Apply changes to a cell; give the profile."""

    def run(cell: str, options: str, before: str = "") -> dict[str, Any]:
        notebook = shared_notebook()
        notebook.run(SETUP + watched_state() + before)
        ran = notebook.run(f"%%gpuprof -o p --apply {options}\n{cell}", 300)
        print(ran)
        # nothing of the person's state is changed
        assert notebook.value("_states") == [[]]
        assert notebook.value("len(sums)") == 1
        profile: dict[str, Any] = notebook.value(
            "{k: v for k, v in p.to_dict().items() if k in ('edited', 'trials')}"
        )
        return profile

    return run


def test_all_that_gain_are_kept(applied: Any) -> None:
    profile = applied(SLOW, "all --try-seconds 120")
    edited, whole = profile["edited"], profile["trials"][-1]
    assert {"no-anomaly-mode", "cat-once"} <= set(edited["changes"])
    assert whole["name"] == "all" and whole["outcome"] == "faster", whole
    assert not whole["difference"]["differs"], whole
    assert "set_detect_anomaly(True)" not in edited["code"]


def test_of_a_cell_that_writes_the_edit_is_shown_unmeasured(applied: Any) -> None:
    profile = applied(f"{SLOW}\ntorch.save(w.detach(), '/dev/null')", "no-anomaly-mode")
    edited = profile["edited"]
    assert edited["sentence"] == "Not measured: the cell writes files (line 12)."
    assert "-torch.autograd.set_detect_anomaly(True)" in edited["diff"]


def test_an_interrupt_leaves_everything_as_it_was(applied: Any) -> None:
    late = (
        "import os, signal, threading\n"
        "from warpbook.kernel.trying import copies, turns\n"
        "def _late(*arguments):\n"
        "    stop = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "    threading.Timer(0.2, stop).start()\n"
        "    while True: turns.take_turns(*arguments)\n"
        "copies.take_turns = _late\n"
    )
    edited = applied(SLOW, "no-anomaly-mode", late)["edited"]
    assert edited["sentence"] == "Not measured: it was interrupted."
    assert "set_detect_anomaly(True)" not in edited["code"]
