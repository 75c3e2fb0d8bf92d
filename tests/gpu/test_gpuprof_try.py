"""`%%gpuprof --try` on a real GPU: the sign of the gain, refusals, and the state.

    pytest -m gpu -s tests/gpu/test_gpuprof_try.py

Each cell is one that a change helps, or one that it does not. Whether a change is
faster is told by the interval of its own runs; no time is asserted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.gpu.notebook import Notebook
from tests.gpu.watched_state import watched_state

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

FRESH = """
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
torch.set_float32_matmul_precision("highest")
torch.backends.cudnn.allow_tf32 = False
"""


@pytest.fixture
def tried(
    shared_notebook: Callable[[], Notebook],
) -> Callable[..., dict[str, dict[str, Any]]]:
    """Run a setup, then try changes to a cell; give the trials by name."""

    def run(
        setup: str, cell: str, options: str, timeout_s: float = 300
    ) -> dict[str, dict[str, Any]]:
        notebook = shared_notebook()
        notebook.run(FRESH + watched_state() + setup)
        notebook.run(f"%%gpuprof -q -o p --try {options}\n{cell}", timeout_s)
        trials: list[dict[str, Any]] = notebook.value("p.to_dict()['trials']")
        for trial in trials:
            print(f"{trial['name']}: {trial['sentence']}")
        # nothing of the person's state is changed
        assert notebook.value("_states") == [[]]
        return {trial["name"]: trial for trial in trials}

    return run


def assert_measured(trial: dict[str, Any], outcome: str) -> None:
    assert trial["refused"] is None, trial["sentence"]
    assert trial["outcome"] == outcome, trial["sentence"]
    speed = trial["speed"]
    assert speed["low"] <= speed["ratio"] <= speed["high"]


def test_tf32_and_bf16_of_float_products(tried: Any) -> None:
    trials = tried(
        "m = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(4)]).cuda()\n"
        "x = torch.randn(4096, 4096, device='cuda')",
        "with torch.no_grad():\n    y = m(x)",
        "--try-seconds 60",
    )
    for name in ("tf32", "bf16"):
        assert_measured(trials[name], "faster")
        assert trials[name]["difference"]["differs"]
    assert "Conv2d" in trials["channels-last"]["refused"]
    assert "optimizer" in trials["fused-optimizer"]["refused"]
    assert "pageable" in trials["pinned"]["refused"]


def test_channels_last_of_half_convolutions(tried: Any) -> None:
    trials = tried(
        "m = nn.Sequential(*[nn.Conv2d(256, 256, 3, padding=1) for _ in range(8)])\n"
        "m = m.cuda().half()\n"
        "x = torch.randn(64, 256, 56, 56, device='cuda').half()",
        "with torch.no_grad():\n    y = m(x)",
        "channels-last",
    )
    assert_measured(trials["channels-last"], "faster")


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_a_fused_optimizer_of_many_tensors(tried: Any, kind: str) -> None:
    trials = tried(
        "ps = [torch.randn(256, 256, device='cuda', requires_grad=True)\n"
        "      for _ in range(400)]\n"
        "for p in ps: p.grad = torch.randn_like(p)\n"
        f"o = torch.optim.{kind}(ps, 1e-3, foreach=False)",
        "for _ in range(3): o.step()",
        "fused-optimizer",
    )
    assert_measured(trials["fused-optimizer"], "faster")
    assert not trials["fused-optimizer"]["difference"]["differs"]


def test_pinned_memory_of_pageable_copies(tried: Any) -> None:
    trials = tried(
        "hosts = [torch.randn(64, 3, 256, 256) for _ in range(8)]",
        "total = torch.zeros((), device='cuda')\n"
        "for host in hosts: total += host.to('cuda').sum()\n"
        "total",
        "pinned",
    )
    assert_measured(trials["pinned"], "faster")
    assert trials["pinned"]["difference"]["mismatch"] is None


def test_a_graph_of_small_kernels(tried: Any) -> None:
    trials = tried(
        "x = torch.randn(1024, device='cuda')",
        "y = x\nfor _ in range(300): y = torch.tanh(y) * 1.01 + 0.1\ny",
        "cuda-graph",
    )
    assert_measured(trials["cuda-graph"], "faster")
    assert trials["cuda-graph"]["difference"]["largest_absolute"] == 0


def test_a_graph_draws_the_numbers_that_the_cell_draws(tried: Any) -> None:
    trials = tried(
        "x = torch.randn(1024, device='cuda')",
        "y = torch.rand_like(x)\n"
        "for _ in range(100): y = F.dropout(torch.tanh(y), 0.01)\n"
        "y",
        "cuda-graph",
    )
    assert_measured(trials["cuda-graph"], "faster")
    assert trials["cuda-graph"]["difference"]["largest_absolute"] == 0


def test_a_capture_that_fails_leaves_torch_as_it_was(
    tried: Any, shared_notebook: Callable[[], Notebook]
) -> None:
    trials = tried(
        "x = torch.randn(1024, device='cuda')\n"
        "mine = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(mine): drawn = torch.rand_like(x)",
        "y = torch.rand_like(x)\ntorch.cuda.synchronize()\ny = y * 2",
        "cuda-graph",
    )
    assert "can't be captured" in trials["cuda-graph"]["refused"]
    # numbers are drawn, memory is given back, and graphs are replayed and captured
    shared_notebook().run(
        "torch.randn(1024, device='cuda')\n"
        "torch.cuda.empty_cache()\n"
        "mine.replay()\n"
        "other = torch.cuda.CUDAGraph()\n"
        "with torch.cuda.graph(other): again = torch.rand_like(x)\n"
        "other.replay()\n"
        "torch.cuda.synchronize()\n"
        "assert drawn.max() > 0 and again.max() > 0 and not torch.equal(drawn, again)"
    )


def test_a_graph_of_a_training_step_is_measured_or_refused_in_words(
    tried: Any,
) -> None:
    """Torch may refuse it: gradients that were first made on another stream."""
    trials = tried(
        "m = nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]).cuda()\n"
        "o = torch.optim.SGD(m.parameters(), 1e-3)\n"
        "x = torch.randn(32, 64, device='cuda')",
        "for _ in range(3):\n"
        "    o.zero_grad()\n"
        "    loss = m(x).square().mean()\n"
        "    loss.backward()\n"
        "    o.step()",
        "cuda-graph",
    )
    trial = trials["cuda-graph"]
    if trial["refused"] is None:
        assert_measured(trial, "faster")
        assert trial["difference"]["mismatch"] is None
    else:
        assert "can't be captured" in trial["refused"]


def test_what_waits_for_the_gpu_is_no_graph(tried: Any) -> None:
    trials = tried(
        "x = torch.randn(1024, device='cuda')",
        "for _ in range(5): s = x.sum().item()",
        "cuda-graph",
    )
    assert "waits for the GPU" in trials["cuda-graph"]["refused"]


def test_compiled_modules_of_pointwise_chains(tried: Any) -> None:
    trials = tried(
        "class Gelu(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x**3)))\n"
        "m = Gelu()\n"
        "x = torch.randn(8192, 8192, device='cuda')",
        "y = m(x)",
        "compile --try-seconds 120",
    )
    trial = trials["compile"]
    if "compile needs" in (trial["refused"] or ""):
        pytest.skip(trial["sentence"])
    assert_measured(trial, "faster")


def test_a_change_that_gains_nothing_is_told_as_that(tried: Any) -> None:
    """A memory-bound cell with one small product: the product does not matter."""
    trials = tried(
        "a = torch.randn(64, 64, device='cuda')\n"
        "big = torch.randn(1 << 28, device='cuda')",
        "small = a @ a\nbig.mul_(1.0001)",
        "tf32",
    )
    assert_measured(trials["tf32"], "no difference shown")


def test_a_training_loop_is_as_it_was_after_all_trials(tried: Any) -> None:
    """Dropout, batch norm, Adam, a scheduler and an autocast of nobody's."""
    trials = tried(
        "m = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(),\n"
        "    nn.Dropout(0.1), nn.Flatten(), nn.Linear(32 * 30 * 30, 10)).cuda()\n"
        "o = torch.optim.Adam(m.parameters(), 1e-3)\n"
        "plan = torch.optim.lr_scheduler.StepLR(o, 1)\n"
        "xs, ys = torch.randn(4, 64, 3, 32, 32), torch.randint(0, 10, (4, 64))\n"
        "losses = []",
        "for x, y in zip(xs, ys):\n"
        "    o.zero_grad()\n"
        "    loss = F.cross_entropy(m(x.to('cuda')), y.to('cuda'))\n"
        "    loss.backward()\n"
        "    o.step()\n"
        "    losses.append(loss.detach())\n"
        "plan.step()",
        "--try-seconds 120",
        timeout_s=600,
    )
    for name in ("tf32", "bf16", "fused-optimizer", "pinned", "channels-last"):
        assert trials[name]["refused"] is None, trials[name]["sentence"]
    assert "copies between host and GPU" in trials["cuda-graph"]["refused"]


def test_an_interrupt_leaves_everything_as_it_was(notebook: Notebook) -> None:
    """A real one, from outside, somewhere in the trials."""
    notebook.run(FRESH + watched_state())
    notebook.run(
        "import os, signal, threading\n"
        "m = nn.Linear(2048, 2048).cuda()\n"
        "o = torch.optim.Adam(m.parameters())\n"
        "x = torch.randn(4096, 2048, device='cuda')\n"
        "from warpbook.kernel.trying import copies, turns\n"
        "_turns = turns.take_turns\n"
        "def _late(*arguments):\n"
        "    stop = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "    threading.Timer(0.2, stop).start()\n"
        "    while True: _turns(*arguments)\n"
        "copies.take_turns = _late"
    )
    notebook.run(
        "%%gpuprof -q -o p --try tf32 --try-seconds 20\n"
        "for _ in range(20):\n"
        "    o.zero_grad(); m(x).square().mean().backward(); o.step()"
    )
    assert notebook.value("_states") == [[]]
    (trial,) = notebook.value("p.to_dict()['trials']")
    assert trial["refused"] == "it was interrupted."


def test_a_copy_that_does_not_fit_beside_the_state_lies_on_the_host(
    tried: Any,
) -> None:
    patch = (
        "from warpbook.kernel.trying import saved_tensors\n"
        "_free = saved_tensors.free_gpu_bytes\n"
        "saved_tensors.free_gpu_bytes = lambda device: 1 << 20\n"
    )
    trials = tried(
        patch + "a = torch.randn(4096, 4096, device='cuda')",
        "b = a @ a\na.mul_(0.5);",
        "tf32",
    )
    assert_measured(trials["tf32"], "faster")
