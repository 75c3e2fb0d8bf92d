"""`%%gpuprof` in a real IPython shell with the real torch: the cell runs as itself."""

import ast
import re
import sys
import time
import traceback
from typing import Any

import pytest
from IPython.core.error import UsageError

from tests.extension.kernel.in_shell import run, shown
from warpbook.kernel.runs import recording
from warpbook.kernel.runs.profile import Profile


def test_the_report_and_the_last_expression_are_shown(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(shell, "%%gpuprof", "import torch", "(torch.ones(3) * 2).sum().item()")
    assert result.result == 6.0
    assert capsys.readouterr().out.endswith("]: 6.0\n")
    assert "aten::mul" in shown(shell)
    assert "aten::mul" in shown(shell, "text/html")


def test_why_the_notebook_is_busy_after_a_long_cell_is_said(
    shell: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = "%%gpuprof -q", "import torch", "for _ in range(30): torch.ones(3) + 1"
    run(shell, *cell)
    assert "Reading" not in capsys.readouterr().out
    monkeypatch.setattr(recording, "_MANY_EVENTS", 30)
    run(shell, *cell)
    assert re.search(r"Reading \d+ events of the profile\.", capsys.readouterr().out)


@pytest.mark.parametrize("cell", ["x = 1", "pass", "def f(a):\n    return a + 1"])
def test_a_cell_that_does_nothing_is_not_judged(shell: Any, cell: str) -> None:
    run(shell, "%%gpuprof -q -o p", cell)
    profile: Profile = shell.user_ns["p"]
    if profile.wall_ns < 5_000_000:
        assert profile.verdict.kind == "unknown" and profile.changes == ()
        assert profile.verdict.sentence.startswith("Nothing to judge: ")


def test_a_line_within_a_function_sees_what_it_sees(shell: Any) -> None:
    shell.run_cell(
        "def f():\n    w = 5\n"
        "    x = %gpuprof -q [w * i for i in range(3)]\n    return x"
    )
    assert shell.run_cell("f()").result == [0, 5, 10]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("%gpuprof -q await f()", "begin a cell with %%gpuprof"),
        ("%gpuprof -q 1 +", "invalid syntax"),
        ("def f():\n    w = 5\n    %gpuprof -q w = 6\nf()", "can't set the function's"),
    ],
)
def test_a_line_that_cannot_be_profiled_says_so_without_a_traceback(
    shell: Any, code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = shell.run_cell(code)
    assert isinstance(result.error_in_exec, UsageError)
    written = capsys.readouterr()
    assert said in written.err and "Traceback" not in written.out + written.err


def test_nothing_is_written_to_stderr(
    shell: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    run(shell, "%%gpuprof", "import torch", "x = torch.ones(3)")
    assert capfd.readouterr().err == ""


def test_what_runs_before_a_cell_is_not_in_its_window(shell: Any) -> None:
    """Other extensions' hooks, and IPython's reading of the cell."""
    ended: list[float] = []

    def hook(_: object) -> None:
        ended.append(time.time() * 1e3)

    shell.events.register("pre_run_cell", hook)
    try:
        run(shell, "%%gpuprof -q -o p", "x = 1")
    finally:
        shell.events.unregister("pre_run_cell", hook)
    began_ms, ended_ms = shell.user_ns["p"].window_ms
    assert ended[-1] <= began_ms <= ended_ms


def test_an_exception_is_the_cells_own_with_its_line_number(shell: Any) -> None:
    result = run(shell, "", "%%gpuprof -q", "x = 1", "", "1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    frames = traceback.extract_tb(result.error_in_exec.__traceback__)
    # IPython drops the leading empty line, with or without a magic
    assert frames[-1].lineno == 4


def test_the_report_appears_for_what_ran_before_an_exception(shell: Any) -> None:
    run(shell, "%%gpuprof -o p", "import torch", "torch.ones(7)", "raise OSError")
    assert "aten::ones" in shown(shell)
    assert isinstance(shell.user_ns["p"], Profile)
    assert "The code raised an exception: this is of the time before it." in shown(
        shell
    )


def test_what_is_written_of_an_exception_is_no_part_of_the_cell(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote: list[float] = []

    def slow(*_: object, **__: object) -> None:
        wrote.append(time.time() * 1e3)
        until_s = time.thread_time() + 0.05
        while time.thread_time() < until_s:
            pass

    monkeypatch.setattr(shell, "showtraceback", slow)
    run(shell, "%%gpuprof -q -o p", "1 / 0")
    began_ms, ended_ms = shell.user_ns["p"].window_ms
    assert began_ms <= ended_ms <= wrote[0]
    # but for what one clock tells otherwise than the other
    assert shell.user_ns["p"].wall_ns / 1e6 < wrote[0] - began_ms + 1
    assert shell.user_ns["p"].figures.cpu.use.thread_ns < 50_000_000
    assert shell.showtraceback is slow
    # a cell that shows one and goes on ends when it ends
    shown = "get_ipython().showtraceback()"
    run(shell, "%%gpuprof -q -o p", shown, "import time", "time.sleep(0.02)")
    assert shell.user_ns["p"].wall_ns > 70_000_000


def test_an_interrupt_propagates_and_what_ran_is_reported(
    shell: Any, ingest: Any
) -> None:
    result = run(
        shell, "%%gpuprof", "import torch", "torch.ones(7)", "raise KeyboardInterrupt"
    )
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert ingest.reports[0].status == "interrupted"
    assert "aten::ones" in shown(shell)


class Interrupted:
    """A compiler during whose work an interrupt comes, at one statement."""

    def __init__(self, compiler: Any, at: str) -> None:
        self._compiler, self._at = compiler, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiler, name)

    def __call__(self, tree: Any, *given: Any) -> Any:
        if self._at in ast.unparse(tree):
            raise KeyboardInterrupt
        return self._compiler(tree, *given)


def test_an_interrupt_between_two_statements_is_none_before_the_cell(
    shell: Any, ingest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IPython compiles each when its turn comes."""
    run(shell, "import torch")
    monkeypatch.setattr(shell, "compile", Interrupted(shell.compile, "y = 2"))
    result = run(shell, "%%gpuprof", "x = torch.ones(7)", "y = 2")
    assert isinstance(result.error_before_exec, KeyboardInterrupt)
    assert "x" in shell.user_ns and "y" not in shell.user_ns
    assert "aten::ones" in shown(shell)
    assert ingest.reports[0].status == "interrupted"


def test_await_works_at_the_top_level(shell: Any) -> None:
    result = run(
        shell, "%%gpuprof -q", "import asyncio", "await asyncio.sleep(0.001, 'done')"
    )
    assert result.result == "done"


def test_a_triple_quoted_string_stays_as_it_is(shell: Any) -> None:
    run(shell, "%%gpuprof -q", "text = '''a", "%%gpuprof", "  b'''")
    assert shell.user_ns["text"] == "a\n%%gpuprof\n  b"


def test_the_history_holds_the_cell_once_as_it_was_typed(shell: Any) -> None:
    cell = "%%gpuprof -q\nx = 3"
    shell.run_cell(cell, store_history=True)
    assert shell.history_manager.input_hist_raw[1:] == [cell]
    assert shell.execution_count == 2
    assert shell.user_ns["In"][1] == "# %%gpuprof -q\nx = 3"


def test_another_cell_magic_on_the_second_line_works(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(
        shell, "%%gpuprof -o p", "", "%%time", "import torch", "torch.ones(3).sum()"
    )
    assert result.success
    assert "Wall time" in capsys.readouterr().out
    assert "aten::sum" in {row.name for row in shell.user_ns["p"].operators}


def test_inside_another_cell_magic_it_works_too(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "%%time", "%%gpuprof -q -o p", "import torch", "y = torch.ones(3).sum()")
    assert "Wall time" in capsys.readouterr().out
    assert "aten::sum" in {row.name for row in shell.user_ns["p"].operators}
    assert shell.user_ns["y"] == 3


def test_run_cell_magic_profiles_and_raises_the_cells_exception(shell: Any) -> None:
    shell.run_cell_magic("gpuprof", "-q -o p", "import torch\nz = torch.ones(3).sum()")
    assert "aten::sum" in {row.name for row in shell.user_ns["p"].operators}
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("gpuprof", "-q", "1 / 0")


def test_without_history_the_cell_is_profiled(shell: Any) -> None:
    run(shell, "%%gpuprof -q -o p", "import torch", "y = torch.ones(3)")
    assert shell.execution_count == 1
    assert isinstance(shell.user_ns["p"], Profile)


def test_a_silent_run_just_runs(shell: Any) -> None:
    """A front end's own requests fire no hooks, and want no output."""
    result = run(shell, "%%gpuprof", "x = 5", silent=True)
    assert result.success and shell.user_ns["x"] == 5
    assert shell.display_pub.outputs == []


def test_quiet_shows_nothing(shell: Any) -> None:
    run(shell, "%%gpuprof --quiet", "import torch", "y = torch.ones(3)")
    assert shell.display_pub.outputs == []


def test_a_cell_that_does_not_compile_shows_its_error_only(shell: Any) -> None:
    assert isinstance(run(shell, "%%gpuprof", "x = = 1").error_before_exec, SyntaxError)
    assert shell.display_pub.outputs == []
    assert run(shell, "%%gpuprof -o p", "x = 1").success
    assert isinstance(shell.user_ns["p"], Profile)


def test_without_torch_the_cell_runs_and_the_report_says_what_to_install(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "warpbook_profiler.capture.kineto", raising=False)
    result = run(shell, "%%gpuprof -q -o p", "x = 7", "x")
    assert result.result == 7
    assert "%pip install torch" in shown(shell)
    assert shell.user_ns["p"] is None


def test_a_profiler_inside_the_cell_keeps_its_events(shell: Any) -> None:
    result = run(
        shell,
        "%%gpuprof",
        "import torch",
        "with torch.profiler.profile() as users:",
        "    torch.ones(3)",
        "len(users.profiler.kineto_results.events())",
    )
    assert result.result > 0
    assert "its own profiler" in shown(shell)


def test_a_profiler_that_runs_already_is_left_alone(shell: Any) -> None:
    run(shell, "import torch", "users = torch.profiler.profile()", "users.start()")
    result = run(shell, "%%gpuprof", "torch.ones(3) + 1")
    assert result.success
    assert "already running" in shown(shell)
    run(shell, "users.stop()")
    counted = run(shell, "len(users.profiler.kineto_results.events())")
    assert counted.result > 0


def test_a_cell_run_from_within_the_cell_does_not_end_the_profile(shell: Any) -> None:
    run(
        shell,
        "%%gpuprof -q -o p",
        "import torch",
        "get_ipython().run_cell('1 + 1')",
        "get_ipython().run_cell('%%gpuprof\\n1 + 1')",
        "y = torch.ones(3).cumsum(0)",
    )
    assert "aten::cumsum" in {row.name for row in shell.user_ns["p"].operators}


def test_the_magic_is_complete_and_has_help(shell: Any) -> None:
    assert shell.check_complete("%%gpuprof\nx = 1\n")[0] == "complete"
    assert "gpuprof" in shell.magics_manager.magics["cell"]
    assert "--output" in shell.find_cell_magic("gpuprof").__doc__


def test_unloading_leaves_nothing_behind(shell: Any) -> None:
    before = (
        list(shell.input_transformers_cleanup),
        {
            name: list(callbacks_of)
            for name, callbacks_of in shell.events.callbacks.items()
        },
    )
    shell.extension_manager.unload_extension("warpbook")
    assert len(shell.input_transformers_cleanup) == len(before[0]) - 1
    for callbacks in shell.events.callbacks.values():
        assert not [
            callback for callback in callbacks if "warpbook" in callback.__module__
        ]
    assert isinstance(run(shell, "%%gpuprof", "1").error_in_exec, UsageError)
    assert isinstance(run(shell, "%gpu").error_in_exec, UsageError)
    shell.extension_manager.load_extension("warpbook")
    after = (
        list(shell.input_transformers_cleanup),
        {
            name: list(callbacks_of)
            for name, callbacks_of in shell.events.callbacks.items()
        },
    )
    assert len(after[0]) == len(before[0])
    assert {n: len(f) for n, f in after[1].items()} == {
        n: len(f) for n, f in before[1].items()
    }


def test_loading_prints_nothing(shell: Any, capfd: pytest.CaptureFixture[str]) -> None:
    shell.extension_manager.reload_extension("warpbook")
    assert capfd.readouterr() == ("", "")
    assert shell.display_pub.outputs == []


def test_the_server_gets_the_report(
    shell: Any, ingest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "lessons/week 1.ipynb")
    shell.run_cell(
        "%%gpuprof -q -o p\n\nimport torch\ntorch.ones(3);",
        store_history=True,
        cell_id="cell-7",
    )
    (report,) = ingest.reports
    assert ingest.authorization == ["Bearer secret"]
    assert report.notebook == "lessons/week 1.ipynb"
    assert (report.cell_id, report.execution_count) == ("cell-7", 1)
    assert (report.title, report.status) == ("p", "ok")
    assert report.profile == shell.user_ns["p"].figures
    assert report.ended_ms - report.started_ms == pytest.approx(
        report.profile.wall_ns / 1e6, abs=0.01
    )
    run(shell, "%%gpuprof -q", "1 / 0")
    assert ingest.reports[1].status == "error"
    assert ingest.reports[1].id != report.id


def test_a_server_that_refuses_is_told_below_the_report(
    shell: Any, ingest: Any
) -> None:
    ingest.status, ingest.message = 400, "not a report"
    assert run(shell, "%%gpuprof -q", "1").success
    assert "did not get this report" in shown(shell)
    assert "not a report" in shown(shell)
