"""A training loop under `%%gpuprof --live` on a real GPU.

    pytest -m gpu -s tests/gpu/test_live_cell.py

prints the report: what the windows saw, what a step takes without and within them, and
what profiling took of the run.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

pytestmark = pytest.mark.gpu

PREPARE = """
import statistics, time, torch, warpbook
torch.set_float32_matmul_precision("high")
model = torch.nn.Sequential(
    *(torch.nn.Sequential(torch.nn.Linear(SIZE, SIZE), torch.nn.ReLU())
      for _ in range(12))
).cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
batch = torch.randn(ROWS, SIZE, device="cuda")
def train():
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
def steps_for(seconds):
    torch.cuda.synchronize()
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        train()
        steps += 1
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps * 1e3
steps_for(2)
"""
#: launches are all that the first does; the second fills the GPU
SIZES = {"launch-bound": (64, 64), "GPU-bound": (2048, 8192)}


@pytest.fixture
def shell() -> Iterator[Any]:
    InteractiveShell.clear_instance()
    config = Config(HistoryManager={"enabled": False})
    shell: Any = InteractiveShell.instance(config=config)
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    shell.extension_manager.load_extension("warpbook")
    yield shell
    print()
    for output in shell.display_pub.outputs:
        print(output["data"]["text/plain"])
    shell.extension_manager.unload_extension("warpbook")
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("kind", SIZES)
def test_each_window_is_whole_and_the_time_between_is_bare(
    shell: Any, kind: str
) -> None:
    size, rows = SIZES[kind]
    shell.user_ns |= {"SIZE": size, "ROWS": rows}
    shell.run_cell(PREPARE).raise_error()
    # the profiler is set up, and both are warm
    shell.run_cell("%%gpuprof -q\ntrain()").raise_error()
    bare_before_ms = shell.run_cell("steps_for(4)").result
    result = shell.run_cell("%%gpuprof --live --share 0.1 -o p\nsteps_for(30)")
    result.raise_error()
    bare_after_ms = shell.run_cell("steps_for(4)").result
    p = shell.user_ns["p"]
    live_view = p.live
    bare_ms = (bare_before_ms + bare_after_ms) / 2
    print(f"\n{kind}: bare {bare_before_ms:.3f} and {bare_after_ms:.3f} ms a step")
    print(f"live: {live_view.bare}\nin windows: {live_view.profiled}")
    for window in live_view.windows:
        print(window)

    assert live_view.steps_by == "optimizer"
    assert live_view.steps > 20_000 / bare_ms
    assert len(live_view.windows) >= 3
    # CUPTI was started anew for each, on the cell's own thread
    for window in live_view.windows:
        assert window.launches > 0
        assert window.matched == window.launches
        assert window.gpu_busy_ns is not None and window.gpu_busy_ns > 0
        assert window.steps >= 1
    # whole steps: the same launches in each
    per_step = {round(window.launches / window.steps) for window in live_view.windows}
    assert max(per_step) - min(per_step) <= 1

    assert live_view.overhead_ns < 0.1 * live_view.elapsed_ns
    # steps without the profiler run as if there were none
    assert live_view.bare is not None and live_view.bare.mean_ns is not None
    assert live_view.bare.mean_ns / 1e6 == pytest.approx(bare_ms, rel=0.08)
    # and so the whole run is longer by no more than what is told
    assert result.result == pytest.approx(bare_ms, rel=0.2)
    assert live_view.verdict is not None
    if kind == "launch-bound":
        assert live_view.verdict.kind in ("launch-bound", "mixed")
    else:
        assert live_view.verdict.kind in ("compute-bound", "memory-bound", "mixed")


def test_a_loop_that_tests_between_epochs(shell: Any) -> None:
    """A window that no step ends is given up, and the next one sees all kernels."""
    shell.user_ns |= {"SIZE": 64, "ROWS": 64}
    shell.run_cell(PREPARE).raise_error()
    shell.run_cell(
        "%%gpuprof --live --share 0.3 -o p\n"
        "end = time.monotonic() + 25\n"
        "while time.monotonic() < end:\n"
        "    steps_for(2.5)\n"
        "    stop = time.monotonic() + 4\n"
        "    while time.monotonic() < stop:\n"
        "        with torch.no_grad(): model(batch).sum().item()\n"
    ).raise_error()
    live_view = shell.user_ns["p"].live
    assert live_view.windows
    assert all(window.matched == window.launches for window in live_view.windows)
    # a window of a test would hold as many launches as four seconds can
    assert max(window.recorded_ns for window in live_view.windows) < 3_500_000_000
    assert live_view.slow_steps
    assert not torch.autograd._profiler_enabled()
    begin = time.monotonic()
    shell.run_cell("%%gpuprof -q -o q\ntrain()").raise_error()
    q = shell.user_ns["q"]
    assert q.completeness.matched == q.completeness.launches > 0
    print(f"a profile after it took {time.monotonic() - begin:.2f} s")
