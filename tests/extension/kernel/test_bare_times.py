"""Cells that nobody profiles are timed, and a profile of the same source finds that."""

import ast
import sys
import time
import types
from typing import Any

import pytest

from warpbook.kernel.runs import bare_times
from warpbook.kernel.runs.bare_times import CellTimes, without_magic
from warpbook.kernel.runs.runs import Runs


class Stream:
    def __init__(self) -> None:
        self.is_done = True
        self.questions = 0

    def query(self) -> bool:
        self.questions += 1
        return self.is_done


class Gpu(types.ModuleType):
    """Stands for torch.cuda: one GPU with one stream, and nobody may wait for it."""

    def __init__(self) -> None:
        super().__init__("torch.cuda")
        self.stream = Stream()
        self.is_broken = False

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 2

    def current_device(self) -> int:
        return 0

    def memory_reserved(self, device: int) -> int:
        return 0

    def current_stream(self, device: int) -> Stream:
        assert device == 0, "the other GPU holds nothing of this process"
        if self.is_broken:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return self.stream

    default_stream = current_stream

    def synchronize(self, *_: Any) -> None:
        raise AssertionError("nobody asked for a synchronisation")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    stub = Gpu()
    monkeypatch.setitem(sys.modules, "torch.cuda", stub)
    for name in bare_times._UNKNOWN:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return stub


def hooks(shell: Any) -> list[Any]:
    """Give whose methods are called at the end of a cell."""
    calls = shell.events.callbacks["post_run_cell"]
    return [getattr(call, "__self__", None) for call in calls]


@pytest.fixture
def times(shell: Any, gpu: Gpu) -> CellTimes:
    cell_times = next(hook for hook in hooks(shell) if isinstance(hook, CellTimes))
    shell.user_ns.update(gpu=gpu, time=time)
    return cell_times


def test_the_same_cell_has_one_key_however_it_is_profiled() -> None:
    plain = without_magic("x = f(x)\nx.sum()\n")
    assert without_magic("%%gpuprof\nx = f(x)\nx.sum()") == plain
    assert without_magic("%%gpuprof -r 3 --lines\n\nx = f(x)  \nx.sum()\n\n") == plain
    assert without_magic("# %%gpuprof\nx = f(x)\nx.sum()") == plain
    assert without_magic("x = g(x)\nx.sum()") != plain
    assert without_magic("if x:\n    y = 1\n    z = 2") != without_magic(
        "if x:\n    y = 1\nz = 2"
    )


def test_each_run_of_a_cell_is_timed(shell: Any, times: CellTimes) -> None:
    for _ in range(4):
        shell.run_cell("time.sleep(0.02)")
    bare = times.of("%%gpuprof\ntime.sleep(0.02)").bare
    assert bare is not None
    # the first one, which may load and compile, is left out once there are others
    assert (bare.runs, bare.source) == (3, "executions")
    assert 20_000_000 <= bare.least_ns <= bare.median_ns <= bare.most_ns


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = np.ones(8)", "x = np.ones(9)"),
        ("x = np.ones(8)", "x = np.ones(8, np.int8)"),
        ("m = Model()", "m = Model()"),
    ],
)
def test_times_are_of_the_same_inputs(
    shell: Any, times: CellTimes, before: str, after: str
) -> None:
    shell.run_cell(
        "import numpy as np\n"
        "class Model:\n"
        "    def state_dict(self): ...\n"
        "x, m, n = np.ones(8), Model(), 0"
    )
    cell = "y = m, x * 2\nn += 1"
    shell.run_cell(before)
    for _ in range(3):
        # what the cell sets itself is no input
        shell.run_cell(cell)
    assert times.of(cell).bare.runs == 2
    # the same batch anew is
    shell.run_cell("x = x + 1")
    assert times.of(cell).bare.runs == 2
    shell.run_cell(after)
    assert times.of(cell).bare is None


def test_values_that_answer_with_errors_are_no_inputs(
    shell: Any, times: CellTimes
) -> None:
    shell.run_cell(
        "class Odd:\n"
        "    def __getattr__(self, name):\n"
        "        raise SystemExit(name)\n"
        "odd = Odd()"
    )
    for _ in range(3):
        shell.run_cell("z = odd is None")
    assert times.of("z = odd is None").bare.runs == 2


def test_a_first_run_counts_until_there_is_another(
    shell: Any, times: CellTimes
) -> None:
    shell.run_cell("time.sleep(0.02)")
    bare = times.of("time.sleep(0.02)").bare
    assert bare is not None
    assert (bare.runs, bare.source) == (1, "first execution")


def test_a_cell_that_ends_before_the_gpu_gives_no_time(
    shell: Any, times: CellTimes, gpu: Gpu
) -> None:
    cell = "gpu.stream.is_done = False"
    shell.run_cell(cell)
    timed = times.of(cell)
    assert timed.bare is None and timed.unfinished == 1
    # and what runs beside the work that it left does not either
    shell.run_cell("x = 1")
    assert times.of("x = 1").bare is None and not times.of("x = 1").unfinished
    gpu.stream.is_done = True
    shell.run_cell("x = 1")
    assert times.of("x = 1").bare is not None


def test_a_failed_cell_and_a_broken_gpu_give_no_time(
    shell: Any, times: CellTimes, gpu: Gpu
) -> None:
    shell.run_cell("1 / 0")
    assert times.of("1 / 0").bare is None
    shell.run_cell("x = (")
    assert times.of("x = (").bare is None
    gpu.is_broken = True
    shell.run_cell("x = 1")
    assert times.of("x = 1").bare is None


def test_work_of_a_library_that_cannot_be_asked_gives_no_time(
    shell: Any, times: CellTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    shell.run_cell("x = 1")
    assert times.of("x = 1").bare is None


def test_cells_within_a_cell_are_a_part_of_it(shell: Any, times: CellTimes) -> None:
    shell.run_cell("get_ipython().run_cell('y = 2')\ny")
    assert times.of("y = 2").bare is None
    assert times.of("get_ipython().run_cell('y = 2')\ny").bare is not None


def test_memory_is_bounded(shell: Any, times: CellTimes) -> None:
    for _ in range(40):
        shell.run_cell("x = 1")
    assert times.of("x = 1").bare.runs == 20
    for number in range(bare_times._MOST_SOURCES + 5):
        times._of_key(without_magic(f"x = {number}")).add(1.0)
    assert len(times._by_source) == bare_times._MOST_SOURCES


def test_a_profile_of_the_same_source_is_given_the_times(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles: list[Any] = []
    plan = Runs.__init__

    def noting(self: Runs, *args: Any, **more: Any) -> None:
        profiles.append(args[-2])
        plan(self, *args, **more)

    monkeypatch.setattr(Runs, "__init__", noting)
    for _ in range(3):
        shell.run_cell("x = 1 + 1")
    shell.run_cell("%%gpuprof -q\nx = 1 + 1")
    shell.run_cell("%gpuprof -q x = 1 + 1")
    assert [profile.bare.runs for profile in profiles] == [2, 2]
    # the profiled run itself is none of them
    shell.run_cell("%%gpuprof -q\nx = 1 + 1")
    assert profiles[-1].bare.runs == 2


class Slow(ast.NodeTransformer):
    """Somebody's transformer and hooks, which take their time around each cell."""

    def __init__(self) -> None:
        self._ended_ns = 0
        #: from the end of the transformer to the begin of the hook, of each cell
        self.between_ns: list[int] = []

    def visit(self, tree: ast.AST) -> ast.AST:
        time.sleep(0.05)
        self._ended_ns = time.perf_counter_ns()
        return tree

    def after(self, result: Any) -> None:
        self.between_ns.append(time.perf_counter_ns() - self._ended_ns)
        time.sleep(0.05)


def test_what_stands_around_the_code_is_not_timed(shell: Any, times: CellTimes) -> None:
    slow = Slow()
    shell.ast_transformers.append(slow)
    shell.events.callbacks["post_run_cell"].insert(0, slow.after)
    for _ in range(3):
        shell.run_cell("x = 1\ny = 2")
    bare = times.of("x = 1\ny = 2").bare
    assert bare is not None and bare.most_ns <= max(slow.between_ns[-2:])


def test_a_profiled_window_is_the_codes(shell: Any) -> None:
    slow = Slow()
    shell.ast_transformers.append(slow)
    shell.events.callbacks["post_run_cell"].insert(0, slow.after)
    shell.run_cell("import torch\nx = torch.ones(8)")
    shell.run_cell("%%gpuprof -q -o p\nx = x + 1\nx = x * 2")
    assert shell.user_ns["p"].to_dict()["wall_ns"] <= slow.between_ns[-1]


def test_a_profiled_cell_is_not_asked_before_it_begins(
    shell: Any, gpu: Gpu, times: CellTimes
) -> None:
    # the question would be in the trace, as the cell's own
    shell.run_cell("gpu.stream.questions = 0")
    times.profiled()
    shell.run_cell("x = gpu.stream.questions")
    assert shell.user_ns["x"] == 2
    shell.run_cell("x = gpu.stream.questions")
    assert shell.user_ns["x"] == 4


def test_hooks_are_taken_away(shell: Any, times: CellTimes) -> None:
    shell.extension_manager.unload_extension("warpbook")
    assert times not in hooks(shell)
    shell.run_cell("x = 3")
    assert times.of("x = 3").bare is None
