"""`warpbook.profile()` as a block and as a decorator, with the real torch."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import warpbook
from tests.extension.kernel.in_shell import shown
from warpbook.kernel.runs.profile import Profile
from warpbook.kernel.runs.runs import NotProfiled
from warpbook_profiler.model.errors import CaptureFailed, ProfilerBusy


def test_a_block_has_its_profile_when_it_has_ended(shell: Any, ingest: Any) -> None:
    with warpbook.profile("my step") as p:
        torch.ones(7).cumsum(0)
        with pytest.raises(NotProfiled, match="not ended yet"):
            _ = p.wall_ns
    assert {row.name for row in p.operators} >= {"aten::cumsum"}
    assert isinstance(p.profile, Profile) and p.to_dict()["title"] == "my step"
    assert "aten::cumsum" in shown(shell) and "aten::cumsum" in repr(p)
    assert ingest.reports[0].title == "my step"


def test_an_exception_goes_on_and_what_ran_is_profiled(shell: Any, ingest: Any) -> None:
    with pytest.raises(OSError, match="mine"), warpbook.profile(quiet=True) as p:
        torch.ones(7)
        raise OSError("mine")
    assert "aten::ones" in {row.name for row in p.operators}
    with pytest.raises(KeyboardInterrupt), warpbook.profile(quiet=True):
        raise KeyboardInterrupt
    assert [report.status for report in ingest.reports] == ["error", "interrupted"]


def test_a_block_within_a_block_runs_without_a_profile(shell: Any) -> None:
    with warpbook.profile(quiet=True) as outer:
        with warpbook.profile() as inner:
            x = torch.ones(7).cumsum(0)
        with pytest.raises(ProfilerBusy, match="already running"):
            _ = inner.profile
    assert x[-1] == 7
    assert "already running" in shown(shell) and "already running" in repr(inner)
    assert "aten::cumsum" in {row.name for row in outer.operators}


def test_a_profiler_within_a_block_keeps_its_events(shell: Any) -> None:
    with warpbook.profile() as p, torch.profiler.profile() as users:
        torch.ones(7)
    assert users.profiler is not None
    with pytest.raises(CaptureFailed, match="its own profiler"):
        _ = p.profile
    assert "its own profiler" in shown(shell)


def test_within_a_profiled_cell_it_says_so(shell: Any) -> None:
    result = shell.run_cell(
        "%%gpuprof -q -o p\nimport torch, warpbook\n"
        "with warpbook.profile():\n    y = torch.ones(3).cumsum(0)"
    )
    assert result.success and "already running" in shown(shell)
    assert "aten::cumsum" in {row.name for row in shell.user_ns["p"].operators}


def test_a_decorated_function_is_profiled_at_each_call(shell: Any, ingest: Any) -> None:
    @warpbook.profile(quiet=True)
    def down(n: int) -> int:
        """Count."""
        torch.ones(n)
        return down(n - 1) if n else 0

    assert down(3) == 0 and down.__doc__ == "Count."
    calls = {row.name: row.calls for row in down.profiled.operators}
    assert calls["aten::ones"] == 4
    down(1)
    assert [report.title.rpartition(".")[2] for report in ingest.reports] == [
        "down()"
    ] * 2


def test_a_coroutine_function_can_be_decorated(shell: Any) -> None:
    @warpbook.profile(quiet=True)
    async def wait() -> str:
        torch.ones(3).cumsum(0)
        await asyncio.sleep(0.001)
        return "done"

    assert asyncio.run(wait()) == "done"
    profiled = wait.profiled
    assert "aten::cumsum" in {row.name for row in profiled.operators}


def test_wrong_uses_are_told(shell: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="parentheses"):
        warpbook.profile(print)
    with pytest.raises(ValueError, match="no such folder"):
        warpbook.profile(save=str(tmp_path / "no" / "t.json"))
    with pytest.raises(ValueError, match="live profiles"):
        warpbook.profile(share=0.1)
    with pytest.raises(TypeError, match="generator"):

        @warpbook.profile()
        def numbers() -> Any:
            yield 1

    with pytest.raises(AttributeError, match="no figure"):
        _ = warpbook.profile().fps


def test_a_block_saves_its_trace(shell: Any, tmp_path: Path) -> None:
    path = tmp_path / "block.json"
    with warpbook.profile(quiet=True, save=str(path)):
        torch.ones(7).cumsum(0)
    events = json.loads(path.read_text())["traceEvents"]
    assert "aten::cumsum" in {event["name"] for event in events}


def test_without_ipython_the_report_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with warpbook.profile():
        torch.ones(7).cumsum(0)
    assert "aten::cumsum" in capsys.readouterr().out
