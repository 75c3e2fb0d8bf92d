"""`%%gpuprof` where things go wrong around it; no old profile passes for a new one."""

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

import warpbook
from tests.extension.kernel.in_shell import run, shown
from warpbook.kernel.runs.profile import Profile
from warpbook_profiler.capture import kineto, torch_gpus
from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.verdict import analysis


def operators(shell: Any, name: str = "p") -> set[str]:
    return {row.name for row in shell.user_ns[name].operators}


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives what sends a real SIGINT when a step of ours is reached."""

    def at(module: Any, step: str, call: int = 1) -> None:
        calls = 0
        really = getattr(module, step)

        def interrupted(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                signal.raise_signal(signal.SIGINT)
            return really(*args, **kwargs)

        monkeypatch.setattr(module, step, interrupted)

    return at


STEPS = [
    # the wait before the profiler's stop, the reading, and the adding up
    (torch_gpus, "wait_for_gpu", 2),
    (kineto, "_disable", 1),
    (kineto, "read_events", 1),
    (analysis, "profile", 1),
]


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_after_the_cell_leaves_no_profile_and_says_so(
    shell: Any,
    step: tuple[Any, str, int],
    interrupt_at: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(shell, "%%gpuprof -q -o p", "import torch", "x = torch.ones(3)")
    interrupt_at(*step)
    result = run(shell, "%%gpuprof -o p", "x = torch.ones(3).cumsum(0)", "7")
    assert result.result == 7
    assert shell.user_ns["p"] is None
    assert "the reading was interrupted" in shown(shell)
    output = capsys.readouterr()
    assert "Traceback" not in output.out + output.err
    assert run(shell, "%%gpuprof -q -o p", "x = torch.ones(3).prod()").success
    assert "aten::prod" in operators(shell)


def test_an_interrupt_before_the_cell_keeps_it_from_running(
    shell: Any, interrupt_at: Callable[..., None]
) -> None:
    run(shell, "import torch")
    interrupt_at(torch_gpus, "wait_for_gpu", 1)
    result = run(shell, "%%gpuprof -o p", "ran = True")
    assert not result.success and "ran" not in shell.user_ns
    assert "before the cell began" in str(result.error_before_exec)
    assert run(shell, "%%gpuprof -q -o p", "ran = True").success
    assert shell.user_ns["ran"] and isinstance(shell.user_ns["p"], Profile)


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_at_the_end_of_a_block_stops_what_follows(
    shell: Any, step: tuple[Any, str, int], interrupt_at: Callable[..., None]
) -> None:
    block = warpbook.profile(quiet=True)
    with block:
        torch.ones(3)
    interrupt_at(*step)
    with pytest.raises(KeyboardInterrupt), block:
        torch.ones(3)
    with pytest.raises(TraceError):
        _ = block.profile
    with block:
        torch.ones(3).cumsum(0)
    assert "aten::cumsum" in {row.name for row in block.operators}


def test_a_cell_without_a_profile_leaves_no_old_one_behind(shell: Any) -> None:
    run(shell, "%%gpuprof -q -o p", "import torch")
    assert isinstance(shell.user_ns["p"], Profile)
    run(shell, "%%gpuprof -q -o p", "with torch.profiler.profile(): torch.ones(3)")
    assert shell.user_ns["p"] is None


@pytest.mark.filterwarnings("ignore:To exit")
def test_a_cell_that_asks_the_kernel_to_end_is_profiled(shell: Any) -> None:
    result = run(
        shell, "%%gpuprof -o p", "import torch", "torch.ones(7)", "raise SystemExit"
    )
    assert isinstance(result.error_in_exec, SystemExit)
    assert "aten::ones" in shown(shell)
    assert run(shell, "%%gpuprof -q -o p", "x = torch.ones(3).prod()").success
    assert "aten::prod" in operators(shell)


def test_a_forked_process_is_no_part_of_the_cell(shell: Any) -> None:
    """As a loader's workers are."""
    result = run(
        shell,
        "%%gpuprof -q -o p",
        "import multiprocessing, torch",
        "def work(): torch.ones(3).cumsum(0)",
        "child = multiprocessing.get_context('fork').Process(target=work)",
        "child.start(); child.join()",
        "x = torch.ones(3).prod()",
        "child.exitcode",
    )
    assert result.result == 0
    assert "aten::prod" in operators(shell)
    assert "aten::cumsum" not in operators(shell)


def test_threads_of_the_cell_do_not_disturb_it(shell: Any) -> None:
    result = run(
        shell,
        "%%gpuprof -q -o p",
        "import threading, torch",
        "def work(): torch.ones(3).cumsum(0)",
        "thread = threading.Thread(target=work)",
        "thread.start(); thread.join()",
        "torch.ones(3).prod().item()",
    )
    assert result.result == 1.0
    assert "aten::prod" in operators(shell)


def test_a_block_in_a_thread_is_profiled(shell: Any) -> None:
    operator_names: list[Any] = []

    def work() -> None:
        for _ in range(2):
            with warpbook.profile(quiet=True) as p:
                torch.ones(3).cumsum(0)
            operator_names.append({row.name for row in p.operators})

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(operator_names) == 2 and all(
        "aten::cumsum" in names for names in operator_names
    )
    assert run(shell, "%%gpuprof -q -o p", "import torch; torch.ones(3)").success
    assert "aten::ones" in operators(shell)


def test_tasks_of_an_async_cell_are_profiled(shell: Any) -> None:
    result = run(
        shell,
        "%%gpuprof -q -o p",
        "import asyncio, torch",
        "async def work(n):",
        "    await asyncio.sleep(0.001)",
        "    return torch.ones(n).cumsum(0)[-1].item()",
        "await asyncio.gather(*map(work, range(1, 4)))",
    )
    assert result.result == [1.0, 2.0, 3.0]
    calls = {row.name: row.calls for row in shell.user_ns["p"].operators}
    assert calls["aten::cumsum"] == 3


def test_hostile_names_of_the_code_are_only_text(shell: Any) -> None:
    name = "</td><script>alert(1)</script>'\"&\x1b[2J\n" + "x" * 10_000
    shell.user_ns["name"] = name
    run(
        shell,
        "%%gpuprof -o p",
        "import torch",
        "with torch.profiler.record_function(name):",
        "    torch.ones(3)",
    )
    (mine,) = [operator for operator in operators(shell) if "alert" in operator]
    assert len(mine) <= 1000
    assert "\x1b" not in shown(shell)
    assert "<script" not in shown(shell, "text/html")


def test_the_trace_is_of_the_run_that_is_reported(shell: Any, tmp_path: Any) -> None:
    path = tmp_path / "run.json"
    run(shell, "import time, torch", "n = 0")
    run(
        shell,
        f"%%gpuprof -q -r 3 -o p --save {path}",
        "n += 1",
        # of six runs, every other one is profiled; the first of these is the fastest
        "x = torch.ones(7).cumsum(0) if n == 2 else time.sleep((n > 2) / 2)",
    )
    assert "aten::cumsum" in operators(shell)
    assert "aten::cumsum" in path.read_text()


def test_a_trace_that_cannot_be_written_is_told_and_no_old_one_stays(
    shell: Any, tmp_path: Any
) -> None:
    path = tmp_path / "there" / "run.json"
    path.parent.mkdir()
    path.write_text("{}")
    result = run(
        shell,
        f"%%gpuprof -o p --save {path}",
        "import shutil, torch",
        f"shutil.rmtree({str(path.parent)!r})",
    )
    assert result.success and isinstance(shell.user_ns["p"], Profile)
    assert "trace" in shown(shell) and not path.exists()
