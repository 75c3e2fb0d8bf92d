"""`%%gpuprof --try` in a real ipykernel: a trial, and a real interrupt of one."""

from __future__ import annotations

from typing import Any

SETUP = (
    "import os, signal, threading, torch\n"
    "torch.manual_seed(0)\n"
    "layer = torch.nn.Linear(64, 64)\n"
    "opt = torch.optim.Adam(layer.parameters())\n"
    "x = torch.randn(32, 64)"
)
CELL = "opt.zero_grad(); layer(x).square().mean().backward(); opt.step()"
INTERRUPTED = (
    "from warpbook.kernel.trying import copies\n"
    "_turns = copies.take_turns\n"
    "def _endless(*arguments):\n"
    "    stop = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
    "    threading.Timer(0.2, stop).start()\n"
    "    while True: _turns(*arguments)\n"
    "copies.take_turns = _endless"
)


def test_trials_in_a_real_kernel(kernel: Any, ingest: Any) -> None:
    """One kernel for all of it: a kernel with torch takes seconds to start."""
    kernel.run(SETUP)
    reply, outputs = kernel.run(f"%%gpuprof --try bf16\n{CELL}")
    assert reply["status"] == "ok"
    (shown,) = outputs
    assert "Tried on copies\nbf16: " in shown["data"]["text/plain"]
    assert "<dt>bf16</dt>" in shown["data"]["text/html"]
    assert ingest.reports[-1].profile.trials[0].refused is None
    # the cell itself, and no trial, made a step
    kernel.run("steps = opt.state[layer.weight]['step'].item()")
    reply, outputs = kernel.run("steps")
    assert outputs[0]["data"]["text/plain"] == "1.0"

    kernel.run(INTERRUPTED)
    reply, outputs = kernel.run(f"%%gpuprof --try bf16\n{CELL}")
    assert reply["status"] == "ok"
    (trial,) = ingest.reports[-1].profile.trials
    assert trial.refused == "it was interrupted."
    reply, outputs = kernel.run("opt.state[layer.weight]['step'].item()")
    assert outputs[0]["data"]["text/plain"] == "2.0"
    # and the kernel is as it was for the next one
    kernel.run("copies.take_turns = _turns")
    kernel.run(f"%%gpuprof -q --try fused-optimizer\n{CELL}")
    assert ingest.reports[-1].profile.trials[0].refused is None
