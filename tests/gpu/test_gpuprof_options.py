"""`%%gpuprof`'s options on a real GPU: repeats, memory, lines, comparison.

pytest -m gpu -s tests/gpu/test_gpuprof_options.py
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import report

pytestmark = pytest.mark.gpu

MIB = 2**20


@pytest.fixture
def shell() -> Iterator[Any]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    shell.extension_manager.load_extension("warpbook")
    torch.ones(8, device="cuda").add_(1)
    run(shell, "import torch", "x = torch.ones(8, device='cuda')")
    yield shell
    print(f"\n{shown(shell)}")
    shell.extension_manager.unload_extension("warpbook")
    InteractiveShell.clear_instance()


def run(shell: Any, *lines: str, **options: Any) -> Any:
    return shell.run_cell("\n".join(lines), **options)


def shown(shell: Any) -> str:
    return "\n".join(
        output["data"]["text/plain"] for output in shell.display_pub.outputs
    )


def test_the_bare_time_of_ten_launches_is_far_below_the_profiled(shell: Any) -> None:
    run(shell, "%%gpuprof -r 10 -w 3 -o p", "for _ in range(10): x.add_(1)")
    p = shell.user_ns["p"]
    assert p.completeness.matched == p.completeness.launches == 10
    assert (len(p.repeats.bare_ns), len(p.repeats.profiled_ns)) == (10, 10)
    assert min(p.repeats.bare_ns) < min(p.repeats.profiled_ns) == p.wall_ns
    print(p.repeats)


def test_each_profiled_repeat_has_all_its_kernels(shell: Any) -> None:
    """Session after session in one cell, each with a bare run before it."""
    run(shell, "%%gpuprof -r 20 -q -o p", "for _ in range(200): x.add_(1)")
    assert shell.user_ns["p"].kernel_calls == 200
    assert shell.user_ns["p"].completeness.matched == 200


def test_bare_runs_wait_for_the_gpu(shell: Any) -> None:
    run(
        shell,
        "a = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)",
        "b = a @ a",
        "torch.cuda.synchronize()",
    )
    run(shell, "%%gpuprof -r 3 -q -o p", "for _ in range(10): a @ a")
    p = shell.user_ns["p"]
    # GPU-bound: the profiler adds little, and no run is only the launches
    assert min(p.repeats.bare_ns) > 0.8 * p.gpu_busy_ns


def test_memory_is_exact_and_the_users_peak_stays(shell: Any) -> None:
    run(shell, f"big = torch.empty({512 * MIB}, dtype=torch.uint8, device='cuda')")
    run(shell, "del big; keep = None")
    peak = torch.cuda.max_memory_allocated()
    before = torch.cuda.memory_allocated()
    run(
        shell,
        "%%gpuprof --memory -o p",
        f"keep = torch.empty({64 * MIB}, dtype=torch.uint8, device='cuda')",
        f"torch.empty({128 * MIB}, dtype=torch.uint8, device='cuda').fill_(1)",
        "None",
    )
    (use,) = shell.user_ns["p"].memory
    assert torch.cuda.max_memory_allocated() == peak
    assert use.peak_allocated_bytes == before + 192 * MIB
    assert use.allocated_change_bytes == 64 * MIB
    assert use.allocated_bytes == torch.cuda.memory_allocated()
    assert use.reserved_bytes == torch.cuda.memory_reserved()
    assert use.peak_reserved_bytes is not None
    assert use.retries == 0 and use.fragmentation_share is not None
    assert "Memory of torch" in shown(shell)
    # a peak above all earlier ones becomes the process's
    run(
        shell,
        "%%gpuprof -q -o p",
        f"t = torch.empty({1024 * MIB}, dtype=torch.uint8, device='cuda'); del t",
    )
    assert shell.user_ns["p"].peak_allocated_bytes == torch.cuda.max_memory_allocated()


def test_lines_charge_kernels_copies_and_waits(shell: Any) -> None:
    run(shell, "h = torch.ones(16 << 20).pin_memory()", "total = 0.0")
    run(
        shell,
        "%%gpuprof --lines -o p",
        "for _ in range(20):",
        "    y = x + 1",
        "    y = y.relu()",
        "    total += y.sum().item()",
        "d = h.to('cuda', non_blocking=True)",
        "torch.cuda.synchronize()",
    )
    p = shell.user_ns["p"]
    lines = {row.line: row for row in p.lines}
    assert [lines[at].kernels for at in (3, 4)] == [20, 20]
    assert lines[5].kernels >= 20 and lines[5].wait_ns > 0
    assert lines[6].copy_ns > lines[3].copy_ns == 0
    assert lines[7].wait_ns > 0 and lines[7].kernels == 0
    kernels_ns = sum(row.kernel_ns for row in p.lines)
    assert kernels_ns == p.kernel_time_ns
    items = [point for point in p.metrics.sync_points if point.operator == "aten::item"]
    assert {item.line for item in items} == {5}


def test_an_item_in_each_step_is_named_with_its_line(shell: Any) -> None:
    run(
        shell,
        "w = torch.randn(4096, 4096, device='cuda')",
        "v = torch.randn(4096, 4096, device='cuda')",
        "(w @ v).sum().item()",
    )
    run(
        shell,
        "%%gpuprof --lines -o p",
        "for _ in range(300):",
        "    loss = (x * 2).sum()",
        "    loss.item()",
    )
    p = shell.user_ns["p"]
    assert p.verdict is not None
    print(p.verdict.sentence)
    stalls = max(p.metrics.sync_points, key=lambda point: point.stall_ns)
    assert (stalls.operator, stalls.line) == ("aten::item", 4)


def test_gpu_work_is_told_by_operator_path(shell: Any) -> None:
    run(
        shell,
        "model = torch.nn.Linear(256, 256, device='cuda')",
        "model(torch.ones(64, 256, device='cuda')).sum().backward()",
    )
    run(
        shell,
        "%%gpuprof -q -o p",
        "model(torch.ones(64, 256, device='cuda')).sum().backward()",
    )
    p = shell.user_ns["p"]
    paths = [row.path for row in p.paths]
    print(*p.paths, sep="\n")
    assert any(path.startswith("aten::linear > aten::addmm") for path in paths)
    assert any("AddmmBackward0" in path for path in paths)
    total_ns = sum(row.time_ns for row in p.paths)
    assert total_ns == p.kernel_time_ns + p.copy_time_ns


def test_a_graph_against_its_eager_cell(shell: Any) -> None:
    run(
        shell,
        "graph = torch.cuda.CUDAGraph()",
        "with torch.cuda.graph(graph):",
        "    for _ in range(800): x.add_(1)",
        "graph.replay()",
        "torch.cuda.synchronize()",
    )
    run(shell, "%%gpuprof -q -r 5 -w 1 -o eager", "for _ in range(800): x.add_(1)")
    run(shell, "%%gpuprof -r 5 -w 1 --vs eager", "graph.replay()")
    assert "less time" in shown(shell)
    assert "the difference is more than chance" in shown(shell)


def print_contents(path: Path) -> None:
    """What tells why a file and memory differ: counts and times of each category."""
    trace = json.loads(path.read_text())
    print({name: value for name, value in trace.items() if name != "traceEvents"})
    by_category = defaultdict(list)
    for event in trace["traceEvents"]:
        by_category[event.get("cat"), event["ph"]].append(event)
    for (category, phase), events in by_category.items():
        first, last = (pick(e.get("ts", 0) for e in events) for pick in (min, max))
        duration = sum(e.get("dur", 0) for e in events)
        print(
            f"{category} {phase}: {len(events)}, ts {first} to {last}, dur {duration}"
        )
    columns, read = read_chrome_trace(str(path))
    print(f"window {read.start_ns} to {read.code_end_ns} to {read.end_ns}")
    print(f"first {columns.start_ns[:3]}, last {columns.end_ns.max()}")


@pytest.mark.parametrize("fastest", [0, 1, 2])
def test_the_saved_trace_says_the_same(
    shell: Any, tmp_path: Path, fastest: int
) -> None:
    """Kineto keeps GPU times in ticks, which the next recording turns into zeros."""
    path = tmp_path / "run.json"
    run(shell, "import time", "n = 0")
    run(
        shell,
        f"%%gpuprof -q -r 3 -o p --save {path}",
        # of six runs, every other one is profiled
        f"if n // 2 != {fastest}: time.sleep(0.2)",
        "n += 1",
        "for _ in range(100): x.add_(1)",
    )
    print_contents(path)
    trace_report = report(*read_chrome_trace(str(path)))
    p = shell.user_ns["p"]
    print(f"saved: {trace_report.metrics}\nin memory: {p.metrics}")
    assert trace_report.metrics.kernels == p.kernel_calls == 100
    assert trace_report.metrics.gpu_busy_ns == pytest.approx(
        p.metrics.gpu_busy_ns, rel=0.01
    )
    assert trace_report.metrics.launches == p.metrics.launches
    assert trace_report.metrics.synchronizations == p.metrics.synchronizations


def test_an_error_on_the_gpu_in_a_bare_run_is_the_cells(shell: Any) -> None:
    """An allocation that fails; the next profile works."""
    result = run(
        shell,
        "%%gpuprof -r 3 -o p",
        "torch.empty(1 << 50, dtype=torch.uint8, device='cuda')",
    )
    assert isinstance(result.error_in_exec, torch.cuda.OutOfMemoryError)
    assert shell.user_ns["p"] is None
    # a tensor that is shown takes dozens of kernels more
    run(shell, "%%gpuprof -q -o p", "_ = x.add_(1)")
    assert shell.user_ns["p"].kernel_calls == 1  # type: ignore[attr-defined]
