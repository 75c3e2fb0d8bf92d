"""The options of `%%gpuprof`, its line magic, in a real shell with the real torch."""

import json
import traceback
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError

from tests.extension.kernel.in_shell import run, shown
from warpbook.kernel.runs.profile import Profile


def test_repeats_run_the_cell_bare_and_profiled_and_say_so(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run(shell, "ran = 0")
    result = run(
        shell,
        "%%gpuprof -r 3 -w 2 -o p",
        "from __future__ import annotations",
        "import torch",
        "ran += 1",
        "torch.ones(7) + ran",
        "ran",
    )
    assert result.result == shell.user_ns["ran"] == 8
    assert capsys.readouterr().out.count("]: 8\n") == 1
    repeats = shell.user_ns["p"].repeats
    assert (len(repeats.bare_ns), len(repeats.profiled_ns)) == (3, 3)
    assert shell.user_ns["p"].wall_ns == min(repeats.profiled_ns)
    calls = {row.name: row.calls for row in shell.user_ns["p"].operators}
    assert calls["aten::add"] == 1
    assert "fastest of 3" in shown(shell) and "without the profiler" in shown(shell)
    assert "8, 2 of them to warm up, each with the code's side effects" in shown(shell)


def test_a_repeated_cell_runs_as_itself(shell: Any) -> None:
    result = run(
        shell,
        "%%gpuprof -q -r 2",
        "import asyncio",
        "text = '''a",
        "  b'''",
        "await asyncio.sleep(0.001, text)",
    )
    assert result.result == "a\n  b"
    assert not [name for name in shell.user_ns if "warpbook" in name]
    result = run(shell, "%%gpuprof -q -r 2", "x = 1", "", "1 / 0")
    frames = traceback.extract_tb(result.error_in_exec.__traceback__)
    assert frames[-1].lineno == 4
    run(shell, "y = 2")
    assert "__warpbook_runs__" not in dir(__import__("builtins"))


def test_an_exception_in_a_later_run_is_the_cells_and_earlier_runs_are_told(
    shell: Any, ingest: Any
) -> None:
    run(shell, "import torch; n = 0")
    result = run(
        shell,
        "%%gpuprof -r 3 -o p",
        "n += 1",
        "torch.ones(7).cumsum(0)",
        "if n == 4: raise OSError",
    )
    assert isinstance(result.error_in_exec, OSError)
    assert len(shell.user_ns["p"].repeats.profiled_ns) == 1
    assert ingest.reports[0].status == "error"
    # and nothing is left running
    assert run(shell, "%%gpuprof -o q", "torch.ones(3)").success
    assert isinstance(shell.user_ns["q"], Profile)


def test_an_exception_before_any_profiled_run_says_so(shell: Any) -> None:
    run(shell, "%%gpuprof -r 3 -o p", "raise OSError")
    assert "ended before the first run with the profiler" in shown(shell)
    assert shell.user_ns["p"] is None


def test_a_profiler_inside_a_repeated_cell_gives_a_notice(shell: Any) -> None:
    run(shell, "import torch; n = 0")
    result = run(
        shell, "%%gpuprof -r 3", "with torch.profiler.profile():", "    n += 1", "n"
    )
    # the bare one, the one with both profilers, and the one that is shown
    assert result.result == 3
    assert "its own profiler" in shown(shell)


def test_a_repeated_cell_inside_another_magic(shell: Any) -> None:
    run(shell, "ran = 0")
    run(shell, "%%time", "%%gpuprof -q -r 2 -o p", "ran += 1")
    assert shell.user_ns["ran"] == 4
    assert len(shell.user_ns["p"].repeats.profiled_ns) == 2
    run(shell, "%%gpuprof -q -r 2 -o p", "%%time", "ran += 1")
    assert shell.user_ns["ran"] == 8


@pytest.mark.parametrize(
    "options",
    [
        *("-r 0", "-r many", "-r 2000", "-w -1", "--vs nothing", "--vs ran"),
        *("--save", "--save trace.txt", "--save no/such/folder/trace.json"),
        *("--fast", "-o", "-o 3x", "-o class", "-q extra", "-o 'a b'"),
        *("--share 0.05", "--live --stalls", "--stalls often"),
        *("--live -r 2", "--live -w 1", "--live --memory", "--live --lines"),
        *("--live --share 0", "--live --share 0.6"),
        *("--try nothing", "--try-seconds 5", "--try --try-seconds 0"),
        *("--apply nothing", "--apply --try", "--apply --live"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_runs(
    shell: Any, options: str
) -> None:
    result = run(shell, f"%%gpuprof {options}", "ran = True")
    error = result.error_before_exec or result.error_in_exec
    assert isinstance(error, UsageError) and str(error)
    assert "ran" not in shell.user_ns


def test_save_writes_the_run_as_a_chrome_trace_and_nothing_else(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    for options in ("-q", "-q -r 2"):
        run(
            shell,
            f"%%gpuprof {options} --save traces/run.json",
            "import torch",
            "x = torch.ones(7).cumsum(0)",
        )
        trace = json.loads((tmp_path / "traces" / "run.json").read_text())
        names = [event["name"] for event in trace["traceEvents"]]
        assert names.count("aten::cumsum") == 1
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["run.json"]
    assert {path.name for path in tmp_path.iterdir()} <= {"traces", "ipython"}


@pytest.mark.parametrize(
    "save",
    [
        "--save 'a b.json'",
        '--save "a b.json"',
        "--save='a b.json'",
        '--save="a b.json"',
    ],
)
@pytest.mark.parametrize("line", ["%%gpuprof -q {}\nx = 1", "%gpuprof -q {} x = 1"])
def test_a_path_with_a_space_stands_in_quotes(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run(shell, "import torch")
    assert run(shell, line.format(save)).success
    assert json.loads((tmp_path / "a b.json").read_text())["traceEvents"]
    assert shell.user_ns["x"] == 1


@pytest.mark.parametrize("option", ["", "--no-shapes"])
def test_what_operators_are_called_with_is_noted_unless_told_not_to(
    shell: Any, tmp_path: Path, option: str
) -> None:
    path = tmp_path / "run.json"
    code = ("import torch", "x = torch.ones(3, 5) @ torch.ones(5, 2)")
    run(shell, f"%%gpuprof -q {option} --save {path}", *code)
    events = json.loads(path.read_text())["traceEvents"]
    (product,) = (event for event in events if event["name"] == "aten::mm")
    noted = product["args"].get("Input Dims")
    assert noted == (None if option else [[3, 5], [5, 2]])


def test_stalls_of_a_cell_without_a_gpu_say_that_there_are_none(shell: Any) -> None:
    run(shell, "ran = 0")
    result = run(shell, "%%gpuprof -q -o p --stalls rerun", "ran += 1", "ran")
    assert result.result == shell.user_ns["ran"] == 1
    stalls = shell.user_ns["p"].stalls
    assert stalls.state == "nothing"
    assert "ran no kernel on a GPU" in stalls.note


def test_memory_is_of_gpus_only(shell: Any) -> None:
    run(shell, "%%gpuprof --memory -o p", "import torch", "x = torch.ones(1000)")
    assert shell.user_ns["p"].memory == ()
    assert "Memory of torch" not in shown(shell)
    assert "aten::ones" in {row.name for row in shell.user_ns["p"].operators}


def test_the_line_magic_profiles_what_follows_its_options(
    shell: Any, ingest: Any
) -> None:
    run(shell, "import torch", "def f(text, x): return torch.ones(x).cumsum(0)")
    result = run(shell, '%gpuprof -o p -r 2 f("a -q  b", 7)')
    assert result.result.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert len(shell.user_ns["p"].repeats.bare_ns) == 2
    assert "aten::cumsum" in shown(shell)
    assert ingest.reports[0].title == "p"
    run(shell, "y = %gpuprof -q f('', 3)")
    assert shell.user_ns["y"].tolist() == [1, 2, 3]
    assert ingest.reports[1].title == "f('', 3)"
    run(shell, "%gpuprof -q z = 5")
    assert shell.user_ns["z"] == 5


def test_the_line_magic_raises_what_the_code_raises(shell: Any, ingest: Any) -> None:
    result = run(shell, "%gpuprof -q 1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert ingest.reports[0].status == "error"
    assert isinstance(run(shell, "%gpuprof -q").error_in_exec, UsageError)
    result = run(shell, "%gpuprof --lines 1 + 1")
    assert "use %%gpuprof" in str(result.error_in_exec)
    result = run(shell, "%%gpuprof -q", "%gpuprof 1 + 1")
    assert "being profiled" in str(result.error_in_exec)


def test_a_vs_profile_has_to_be_one(shell: Any) -> None:
    run(shell, "%%gpuprof -q -o p", "1")
    assert run(shell, "%%gpuprof -q --vs p", "1").success


def test_lines_tell_what_each_took_and_the_cell_stays_itself(shell: Any) -> None:
    result = run(
        shell,
        "%%gpuprof --lines -o p -r 2",
        "import torch",
        "def f(n):",
        "    return torch.ones(n)",
        "",
        "total = 0",
        "for n in range(3):",
        "    if n == 1:",
        "        continue",
        "    total += f(n).sum()",
        "with torch.no_grad():",
        "    try:",
        "        1 / 0",
        "    except ZeroDivisionError:",
        "        total = total + 1",
        "float(total)",
    )
    assert result.result == 3.0
    lines = {row.line: row.times for row in shell.user_ns["p"].lines}
    # the header is reached before each turn and once more at the end
    assert lines == {
        **{2: 1, 3: 1, 6: 1, 7: 4, 8: 3, 10: 2},
        **{11: 1, 12: 1, 13: 1, 15: 1, 16: 1},
    }
    text = shown(shell)
    assert "10      total += f(n).sum()" in text
    assert "recording them took" in text
    assert "total += f(n).sum()" in shown(shell, "text/html")
    run(shell, "x = 1")
    assert "__warpbook_runs__" not in dir(__import__("builtins"))


def test_lines_of_an_exception_and_of_await_are_right(shell: Any) -> None:
    result = run(shell, "%%gpuprof -q --lines", "for n in range(2):", "    1 / n")
    frames = traceback.extract_tb(result.error_in_exec.__traceback__)
    assert (frames[-1].lineno, frames[-1].line) == (3, "1 / n")
    result = run(
        shell,
        "%%gpuprof -q --lines -o p",
        "import asyncio",
        "for n in range(2):",
        "    await asyncio.sleep(0.001)",
        "n",
    )
    assert result.result == 1
    assert {row.line: row.times for row in shell.user_ns["p"].lines}[4] == 2


def test_lines_leave_what_is_shown_as_it_is(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = ("%%gpuprof -q --lines -o p", "from __future__ import annotations", "1", "2")
    run(shell, *cell)
    assert capsys.readouterr().out.endswith("]: 2\n")
    assert {row.line for row in shell.user_ns["p"].lines} == {3, 4}
    shell.ast_node_interactivity = "all"
    run(shell, *cell)
    assert [line[-3:] for line in capsys.readouterr().out.split("\n") if line] == [
        ": 1",
        ": 2",
    ]
    shell.ast_node_interactivity = "last_expr_or_assign"
    run(shell, "%%gpuprof -q --lines", "a = 1", "b = 7")
    assert capsys.readouterr().out.endswith("]: 7\n")
    run(shell, "%%gpuprof -q --lines", "# nothing")
