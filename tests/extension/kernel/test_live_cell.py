"""`%%gpuprof --live`: a long cell is profiled in windows, and tells while it runs."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.extension.kernel.in_shell import run, shown
from tests.programs import wait_for
from warpbook.kernel.runs.profile import Profile
from warpbook_profiler.model.errors import TraceError

#: a step that takes some milliseconds, told by the optimizer
TRAINING = """
import pathlib, threading, time, torch, warpbook
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train():
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
    time.sleep(0.002)
def until(done, step=train):
    end = time.monotonic() + 200
    while not done():
        assert time.monotonic() < end, "nothing came"
        step()
"""


@pytest.fixture
def live(shell: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A shell whose live profiles open windows soon."""
    monkeypatch.setattr("warpbook.kernel.live.live_plan._PAUSE_NS", 20_000_000)
    monkeypatch.setattr("warpbook.kernel.live.live_plan._LONG_PAUSE_NS", 50_000_000)
    monkeypatch.setattr("warpbook.kernel.live.live._STALE_NS", 200_000_000)
    shell.run_cell(TRAINING)
    # what a cell can ask for: how many windows there are so far
    shell.user_ns["windows"] = lambda: len(running(shell).view().windows)
    shell.user_ns["noted"] = lambda words: any(
        words in note for note in running(shell).view().notes
    )
    return shell


def running(shell: Any) -> Any:
    (profiler,) = [
        callback.__self__
        for callback in shell.events.callbacks["pre_run_cell"]
        if type(getattr(callback, "__self__", None)).__name__ == "CellProfiler"
    ]
    return profiler._session.runs._runs


LIVE = "%%gpuprof --live --share 0.5 -o p"


def test_the_report_grows_while_the_cell_runs(
    kernel: Any, ingest: Any, tmp_path: Path
) -> None:
    kernel.run(TRAINING)
    enough = tmp_path / "enough"

    def grown() -> bool | None:
        reports = ingest.reports
        return (len(reports) > 2 and len(reports[-1].live.windows) > 1) or None

    def end() -> None:
        try:
            wait_for("two windows in three reports", grown)
        finally:
            enough.touch()

    ends = threading.Thread(target=end)
    ends.start()
    reply, outputs = kernel.run(
        "%%gpuprof --live --share 0.5 -o p\n"
        "steps = 0\n"
        f"while not pathlib.Path({str(enough)!r}).exists():\n    train(); steps += 1\n"
        "steps"
    )
    ends.join()
    assert reply["status"] == "ok"
    steps = int(outputs[1]["data"]["text/plain"])
    *while_it_ran, last = ingest.reports
    assert {report.status for report in while_it_ran} == {"running"}
    assert len({report.id for report in ingest.reports}) == 1
    assert (last.status, last.cell_id) == ("ok", "cell-1")
    assert last.title == "p"
    numbers = {report.execution_count for report in ingest.reports}
    assert numbers == {reply["execution_count"]}
    assert len(while_it_ran[-1].live.windows) >= 1
    assert len(last.live.windows) >= 2
    assert (last.live.steps, last.live.steps_by) == (steps, "optimizer")
    for earlier, later in zip(ingest.reports, ingest.reports[1:], strict=False):
        assert earlier.live.steps <= later.live.steps
        windows_before = earlier.live.windows
        assert later.live.windows[: len(windows_before)] == windows_before
        assert earlier.started_ms == later.started_ms
    # the line was changed in place, and stays as it was at the end
    lines = [text for cell, text in kernel.changes if cell == kernel.newest]
    assert len(lines) >= 3 and f"Live: {steps:,} steps" in lines[-1]
    assert "profiling took" in lines[-1]
    text = outputs[-1]["data"]["text/plain"]
    assert "reported by an optimizer" in text and "aim: below 50 %" in text


def test_what_profiling_takes_is_told_and_steps_are_counted_apart(live: Any) -> None:
    run(live, LIVE, "until(lambda: windows() >= 3)")
    p = live.user_ns["p"]
    live_report = p.live
    # beside that of the windows, to tell of them
    of_windows_ns = sum(window.overhead_ns for window in live_report.windows)
    assert 0 < of_windows_ns <= live_report.overhead_ns < live_report.elapsed_ns
    recorded = sum(window.steps for window in live_report.windows)
    assert live_report.profiled.steps == recorded
    # the first three are in neither, nor those of a window that was given up
    elsewhere = live_report.steps - recorded - 3 - live_report.bare.steps
    assert elsewhere == 0 or any("given up" in note for note in live_report.notes)
    assert elsewhere >= 0
    assert (
        live_report.bare.median_ns
        <= live_report.bare.p95_ns
        <= live_report.bare.slowest_ns
    )
    assert live_report.windows[0].start_ns < live_report.windows[1].start_ns
    assert "aten::addmm" in {row.name for row in p.operators}
    optimizer = "Optimizer.step#SGD.step"
    (row,) = [row for row in p.operators if row.name == optimizer]
    # each window holds whole steps
    assert row.calls in {window.steps for window in live_report.windows}


def test_a_step_that_is_called_goes_before_the_optimizers(live: Any) -> None:
    run(
        live,
        LIVE,
        "n = 0",
        "while windows() < 1: train(); train(); warpbook.step(); n += 1",
    )
    assert live.user_ns["p"].live.steps == live.user_ns["n"]
    assert live.user_ns["p"].live.steps_by == "warpbook.step()"


def test_of_two_optimizers_the_first_counts(live: Any) -> None:
    run(
        live,
        LIVE,
        "other = torch.optim.Adam(model.parameters())",
        "n = 0",
        "while windows() < 1: train(); other.step(); other.step(); n += 1",
    )
    assert live.user_ns["p"].live.steps == live.user_ns["n"]


def test_an_optimizer_that_is_used_no_more_is_forgotten(live: Any) -> None:
    run(
        live,
        LIVE,
        "for _ in range(10): train()",
        "second = torch.optim.SGD(model.parameters(), 0.1)",
        "for _ in range(200): second.step()",
        "until(lambda: windows() >= 1, second.step)",
    )
    assert live.user_ns["p"].live.steps > 110


def test_steps_of_other_threads_do_not_count(live: Any) -> None:
    run(
        live,
        LIVE,
        "thread = threading.Thread(target=lambda: [train() for _ in range(20)])",
        "thread.start(); thread.join()",
        "n = 0",
        "while windows() < 1: train(); n += 1",
    )
    live_report = live.user_ns["p"].live
    assert live_report.steps == live.user_ns["n"]
    assert any("other threads" in note for note in live_report.notes)


def test_without_a_step_the_person_is_told_what_to_do(live: Any, ingest: Any) -> None:
    result = run(live, LIVE, "y = model(torch.ones(1, 64)).shape", "y[1]")
    assert result.result == 64
    assert "call warpbook.step()" in shown(live)
    assert live.user_ns["p"] is None
    (report,) = ingest.reports
    assert (report.status, report.live.steps) == ("ok", 0)
    assert report.profile.operators == ()


def test_a_cell_that_is_too_short_is_told_so(live: Any) -> None:
    run(live, LIVE, "train(); train()")
    assert "profile it without --live" in shown(live)


@pytest.mark.parametrize("within", [True, False])
def test_an_exception_is_the_cells_own(
    live: Any, ingest: Any, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote: list[float] = []
    write = lambda *_, **__: wrote.append(time.time() * 1e3)  # noqa: E731
    monkeypatch.setattr(live, "showtraceback", write)
    run(
        live,
        LIVE,
        "until(lambda: windows() >= 1)",
        # a window is open, or is not
        "from warpbook.kernel.live import live as it",
        f"until(lambda: torch.autograd._profiler_enabled() == {within})",
        "1 / 0",
    )
    assert ingest.reports[-1].status == "error"
    assert ingest.reports[-1].ended_ms <= wrote[0]
    assert len(live.user_ns["p"].live.windows) >= 1
    assert not torch.autograd._profiler_enabled()
    assert run(live, "%%gpuprof -o q", "train()").success
    assert "aten::addmm" in {row.name for row in live.user_ns["q"].operators}


def test_an_interrupt_within_a_window_ends_the_cell(kernel: Any, ingest: Any) -> None:
    kernel.run(TRAINING)
    reply, outputs = kernel.run(
        "%%gpuprof --live --share 0.5\n"
        "until(torch.autograd._profiler_enabled)\n"
        "print('go', flush=True)\n"
        "while True: time.sleep(0.01)",
        on_output=kernel.interrupt,
    )
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert ingest.reports, outputs
    assert ingest.reports[-1].status == "interrupted"
    _, outputs = kernel.run("%%gpuprof\ntrain()")
    assert "aten::addmm" in outputs[-1]["data"]["text/plain"]


def test_a_window_that_no_step_ends_is_given_up(live: Any) -> None:
    """A validation, or what comes after the loop, is not recorded without bounds."""
    run(
        live,
        LIVE,
        "until(lambda: windows() >= 1)",
        "until(torch.autograd._profiler_enabled)",
        "until(lambda: not torch.autograd._profiler_enabled(), lambda: None)",
        "before = windows()",
        "until(lambda: windows() > before)",
    )
    live_report = live.user_ns["p"].live
    # more, where a busy machine takes long for a step
    assert any("windows were given up" in note for note in live_report.notes)


def test_an_interrupt_that_comes_while_something_is_called_is_not_lost() -> None:
    """What is called on the main thread is called by C, which takes no exception."""
    code = """
import time, _thread
from warpbook.kernel.link.main_thread import call_on_main_thread
def at_a_bad_time():
    _thread.interrupt_main()
    for _ in range(1000): pass
try:
    call_on_main_thread(at_a_bad_time)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_profiler_of_the_cells_own_keeps_its_events(live: Any) -> None:
    run(
        live,
        LIVE,
        "until(lambda: windows() >= 1)",
        "until(lambda: not torch.autograd._profiler_enabled())",
        "with torch.profiler.profile() as users:",
        "    until(lambda: noted('already running'))",
        "count = len(users.profiler.kineto_results.events())",
        "before = windows()",
        "until(lambda: windows() > before)",
        "windows_after = windows()",
    )
    assert live.user_ns["count"] > 20
    assert live.user_ns["windows_after"] > live.user_ns["before"]


def test_workers_of_a_loader_do_not_disturb(live: Any) -> None:
    run(
        live,
        LIVE,
        "class Data(torch.utils.data.Dataset):",
        "    def __len__(self): return 64",
        "    def __getitem__(self, index):",
        "        warpbook.step()",
        "        return torch.ones(64)",
        "loader = torch.utils.data.DataLoader(Data(), 4, num_workers=2)",
        "seen = 0",
        "for batch in loader: train(); seen += len(batch)",
        "until(lambda: windows() >= 1)",
    )
    assert live.user_ns["seen"] == 64
    assert live.user_ns["p"].live.steps_by == "optimizer"


def test_a_loop_in_a_generator_and_with_await(live: Any) -> None:
    run(
        live,
        LIVE,
        "import asyncio",
        "def losses():",
        "    while windows() < 2:",
        "        train()",
        "        yield 1",
        "for _ in losses(): await asyncio.sleep(0)",
    )
    assert len(live.user_ns["p"].live.windows) >= 2


def test_a_block_and_a_function_can_be_live(live: Any) -> None:
    run(
        live,
        "with warpbook.profile('my loop', live=True, share=0.5, quiet=True) as p:",
        "    until(lambda: len(p._runs._runs.view().windows) >= 2)",
        "fit = warpbook.profile(live=True, share=0.5, quiet=True)(until)",
        "fit(lambda: len(fit.profiled._runs._runs.view().windows) >= 1)",
    )
    assert live.user_ns["p"].profile.title == "my loop"
    assert len(live.user_ns["p"].profile.live.windows) >= 2
    assert isinstance(live.user_ns["fit"].profiled.profile, Profile)


def test_one_within_another_is_told_and_the_outer_goes_on(live: Any) -> None:
    run(
        live,
        LIVE,
        "with warpbook.profile(live=True) as inner: train()",
        "until(lambda: windows() >= 1)",
        "get_ipython().run_cell('%gpuprof --live train()')",
    )
    with pytest.raises(TraceError, match="to one only"):
        _ = live.user_ns["inner"].profile
    assert live.user_ns["p"].live.windows


def test_a_line_magic_can_be_live(live: Any) -> None:
    run(live, "%gpuprof --live --share 0.5 -o p until(lambda: windows() >= 1)")
    assert live.user_ns["p"].live.windows


def test_a_server_that_refuses_is_told_and_the_cell_goes_on(
    live: Any, ingest: Any
) -> None:
    ingest.status, ingest.message = 503, "not now"
    run(live, LIVE, "until(lambda: windows() >= 2)")
    assert live.user_ns["p"].live.windows
    assert "not now" in shown(live)


def test_the_next_ordinary_profile_is_not_compared_with_a_window(live: Any) -> None:
    cell = "until(lambda: True)"
    live.run_cell(f"{LIVE}\n{cell}", cell_id="c")
    run(live, LIVE, "until(lambda: windows() >= 1)")
    live.display_pub.outputs.clear()
    live.run_cell("%%gpuprof\nuntil(lambda: True)", cell_id="c")
    assert "run before" not in shown(live)


def test_threads_and_hooks_are_gone_afterwards(live: Any) -> None:
    run(live, LIVE, "until(lambda: windows() >= 1)")
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    assert not hooks
    assert "warpbook-live" not in {thread.name for thread in threading.enumerate()}


def test_a_step_without_a_live_profile_loads_nothing() -> None:
    code = (
        "import sys, warpbook\n"
        "assert warpbook.step() is None and 'step' in vars(warpbook)\n"
        "assert not {'torch', 'numpy', 'IPython'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
