"""Cells that fail, others at work, graphs from before: the kernel works on afterwards.

    pytest -m gpu -s tests/gpu/test_gpuprof_failures.py

Each test has a kernel of its own and a time after which a hang is told as one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from jupyter_core.utils import ensure_event_loop

from tests.gpu.notebook import Notebook, open_notebook, summary

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

SETUP = """
import torch
x = torch.zeros(8, device="cuda")
x.add_(1)
torch.cuda.synchronize()
"""
TEN = "%%gpuprof -q -o p\nfor _ in range(10): x.add_(1)"
#: an index that is too large fails in the kernel, long after the call
ASSERTS = "torch.zeros(4, device='cuda')[torch.tensor([9], device='cuda')]"


@pytest.mark.parametrize("waits", ["torch.cuda.synchronize()", "pass"])
def test_a_failed_assertion_on_the_device_is_told_and_nothing_hangs(
    notebook: Notebook, waits: str
) -> None:
    """It breaks CUDA for the rest of the process: only a restart helps."""
    notebook.run(SETUP)
    failed = notebook.try_run(f"%%gpuprof -o p\n{ASSERTS}\n{waits}")
    print(f"\nended after {failed.took_s:.1f} s with {failed.error}:\n{failed.text}")
    if waits != "pass":
        assert failed.error in ("RuntimeError", "AcceleratorError")
    assert "device-side assert" in failed.text
    assert "No profile of this code" in failed.text
    # Python goes on
    assert notebook.value("1 + 1") == 2
    again = notebook.try_run(TEN)
    print(f"the next profile: {again.error}: {again.text[:600]}")
    assert again.error is not None or "No profile of this code" in again.text


def test_a_cell_that_runs_out_of_memory_is_profiled_until_then(
    notebook: Notebook,
) -> None:
    notebook.run(SETUP)
    failed = notebook.try_run(
        "%%gpuprof -o p\n"
        "for _ in range(100): x.add_(1)\n"
        "held = [torch.empty(1 << 36, dtype=torch.uint8, device='cuda')"
        " for _ in range(100)]"
    )
    print(f"\n{failed.error}: {failed.text[:3000]}")
    assert failed.error == "OutOfMemoryError"
    profile = notebook.profiled()
    assert profile["kernel_calls"] == profile["completeness"]["matched"] == 100
    notebook.run("held = None")
    notebook.run(TEN)
    assert notebook.profiled()["kernel_calls"] == 10


def test_an_interrupted_cell_is_profiled_until_then(notebook: Notebook) -> None:
    notebook.run(SETUP)
    stopped = notebook.try_run(
        "%%gpuprof -o p\n"
        "n = 0\n"
        "while True:\n"
        "    x.add_(1)\n"
        "    n += 1\n"
        "    if n == 1000: print('go', flush=True)",
        interrupt_at="go",
    )
    print(f"\n{stopped.error} after {stopped.took_s:.1f} s: {stopped.text[:2000]}")
    assert stopped.error == "KeyboardInterrupt"
    profile = notebook.profiled()
    complete = profile["completeness"]
    launched = notebook.value("n")
    assert complete["matched"] == complete["launches"]
    # the interrupt may fall between the launch and the count
    assert complete["launches"] - launched in (0, 1)
    notebook.run(TEN)
    assert notebook.profiled()["kernel_calls"] == 10


def test_an_interrupt_while_the_host_waits_for_the_gpu(notebook: Notebook) -> None:
    notebook.run(SETUP + "torch.cuda._sleep(1)\n")
    stopped = notebook.try_run(
        "%%gpuprof -o p\n"
        "print('go', flush=True)\n"
        "for _ in range(20): torch.cuda._sleep(1 << 30)\n"
        "torch.cuda.synchronize()\n"
        "while True: pass",
        interrupt_at="go",
    )
    print(f"\n{stopped.error} after {stopped.took_s:.1f} s: {stopped.text[:2000]}")
    assert stopped.error == "KeyboardInterrupt"
    assert notebook.try_run("%%gpuprof -q -o p\n_ = x.add_(1)").error is None
    assert notebook.profiled()["kernel_calls"] == 1


def test_graphs_from_before_a_profile_replay_after_it(notebook: Notebook) -> None:
    """The profiler lets CUPTI go each time, which broke replays before CUDA 12.6."""
    notebook.run(
        SETUP
        + """
def record(count):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count): x.add_(1)
    return graph
x.zero_()
graphs = [record(200)]
graphs[0].replay()
"""
    )
    expected = 200
    for session in range(5):
        # one that does not touch the graph, and one that replays it
        notebook.run("%%gpuprof -q -o p\ny = x + 1")
        notebook.run("graphs[0].replay()")
        profile = notebook.profile("graphs[0].replay()")
        notebook.run(f"graphs.append(record({session + 1}))\ngraphs[-1].replay()")
        expected += 400 + session + 1
        assert notebook.value("x.tolist()") == [float(expected)] * 8, session
        assert (profile["kernel_calls"], profile["launches"]) == (200, 1), summary(
            profile
        )
    notebook.run("for graph in graphs: graph.replay()")
    expected += 200 + 1 + 2 + 3 + 4 + 5
    assert notebook.value("x.tolist()") == [float(expected)] * 8


def test_compiled_graphs_from_before_a_profile_replay_after_it(
    notebook: Notebook,
) -> None:
    notebook.run(
        SETUP
        + """
@torch.compile(mode="reduce-overhead")
def step(value):
    return torch.sin(value) * 2 + torch.cos(value)
value = torch.arange(1024, device="cuda") / 100
right = torch.sin(value) * 2 + torch.cos(value)
for _ in range(4): result = step(value).clone()
""",
        timeout_s=300,
    )
    close = "torch.allclose(result, right, atol=1e-5)"
    assert notebook.value(close)
    for _ in range(3):
        profile = notebook.profile("result = step(value).clone()")
        assert profile["kernel_calls"] and notebook.value(close)
        notebook.run("result = None\nresult = step(value).clone()")
        assert notebook.value(close)


def test_a_profiler_of_the_cells_own_is_told(notebook: Notebook) -> None:
    notebook.run(SETUP + "from torch.profiler import profile, ProfilerActivity\n")
    ran = notebook.try_run(
        "%%gpuprof -o p\n"
        "with profile(activities=[ProfilerActivity.CUDA]) as theirs:\n"
        "    x.add_(1)\n"
        "    torch.cuda.synchronize()"
    )
    print(f"\n{ran.error}: {ran.text}")
    assert "No profile of this code" in ran.text or ran.error is not None
    notebook.run(TEN)
    assert notebook.profiled()["kernel_calls"] == 10


def profile_on_a_thread(notebook: Notebook, cell: str) -> dict[str, Any]:
    try:
        return notebook.profile(cell)
    finally:
        # which the client has made for this thread, and does not close
        ensure_event_loop().close()


def test_two_notebooks_profile_one_gpu_at_once(notebook: Notebook) -> None:
    cell = (
        "end = time.monotonic() + 3\n"
        "n = 0\n"
        "while time.monotonic() < end:\n"
        "    x.add_(1)\n"
        "    n += 1"
    )
    with open_notebook() as other, ThreadPoolExecutor(1) as pool:
        for notebook_used in (notebook, other):
            notebook_used.run("import time\n" + SETUP)
        # once alone: what is set up once takes longer than the cell
        other.run(TEN)
        notebook.run(TEN)
        of_other = pool.submit(profile_on_a_thread, other, cell)
        mine, theirs = notebook.profile(cell), of_other.result()
        for profile, used in ((mine, notebook), (theirs, other)):
            launched = used.value("n")
            assert (
                profile["kernel_calls"]
                == profile["completeness"]["matched"]
                == launched
            )
