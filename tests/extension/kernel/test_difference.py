"""Comparing profiles in a notebook: `a.diff(b)`, `--vs`, and the cell's run before."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

import warpbook
from tests.extension.kernel.in_shell import run, shown
from warpbook.kernel.runs.profile import Profile
from warpbook.protocol import SpanStatistics
from warpbook_monitors.history.span import DeviceSpan, MetricSpan
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import KernelRow
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
HOSTILE = "</td><script>alert('1')</script>\"&\x1b[31m"


def profile(trace: str, window_ms: tuple[float, float], **changes: Any) -> Profile:
    figures = analyse(*read_chrome_trace(str(TRACES / f"{trace}.json.gz")))
    figures = msgspec.structs.replace(figures, **changes)
    return Profile(figures, "step()", window_ms, gpus=("GPU-1",))


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_a_difference_reads_as_text_html_and_plain_data(shell: Any) -> None:
    difference = profile("tiny_kernels", (1, 2)).diff(profile("graph_replay", (3, 4)))
    text = repr(difference)
    assert text.startswith("82 % less time: 1.66 ms instead of 9.23 ms.")
    assert "GPU work by operators" in text and "400 → 0" in text
    html = difference._repr_mimebundle_()["text/html"]
    assert "82 % less time" in html and "GPU idle: the host launched" in html
    plain = difference.to_dict()
    assert json.loads(json.dumps(plain)) == plain and plain["title"] == "step()"
    assert difference.kernels[0].change_ns > 0 and "kernels" in dir(difference)
    with pytest.raises(AttributeError, match="no 'fps'"):
        _ = difference.fps


def test_hostile_names_are_escaped() -> None:
    rows = (KernelRow(HOSTILE, 1, 1000, 1.0),)
    changed = profile("tiny_kernels", (1, 2), kernels=rows)
    difference = profile("tiny_kernels", (1, 2)).diff(changed)
    assert "script" not in Tags(difference._repr_mimebundle_()["text/html"]).tags
    assert "\x1b" not in repr(difference)


def test_the_server_tells_the_clocks_of_both_runs(shell: Any, ingest: Any) -> None:
    def answer(path: str) -> bytes:
        query = {name: float(values[0]) for name, values in parse_qs(path).items()}
        mhz = 1980.0 if query["from_ms"] == 1000.0 else 1200.0
        metric = MetricSpan(mhz, mhz, mhz, 1.0)
        span = DeviceSpan("gpu:GPU-1", {"sm_clock_mhz": metric}, None, None, ())
        return msgspec.json.encode(SpanStatistics(1.0, 2.0, (span,), ""))

    ingest.answer_span = lambda path: answer(urlsplit(path).query)
    before = profile("graph_replay", (1000.0, 2000.0))
    difference = before.diff(profile("tiny_kernels", (3000.0, 4000.0)))
    assert [clock and clock.sm_clock_mhz for clock in difference.clocks] == [
        1980.0,
        1200.0,
    ]
    assert "SM clock 1,200 instead of 1,980 MHz" in repr(difference)
    assert "the code may not have" in repr(difference)


def test_vs_shows_the_comparison_below_the_report(shell: Any) -> None:
    run(shell, "%%gpuprof -q -o a", "import torch", "x = torch.ones(9).cumsum(0)")
    run(shell, "%%gpuprof -q -o a --vs a", "x = torch.ones(9).cumprod(0)")
    assert "aten::cumsum" in shown(shell) and "1 → 0" in shown(shell)
    assert "aten::cumsum" not in {row.name for row in shell.user_ns["a"].operators}
    with warpbook.profile(quiet=True, vs=shell.user_ns["a"]) as b:
        pass
    assert "aten::cumprod" in shown(shell)
    run(shell, "with __import__('warpbook').profile(quiet=True) as c: pass")
    assert run(shell, "%%gpuprof -q --vs c", "1").success
    assert repr(b.diff(b)).startswith("About the same")


def test_what_holds_no_profile_is_refused_before_anything_runs(shell: Any) -> None:
    run(shell, "with __import__('warpbook').profile(quiet=True) as a: pass")
    block = shell.user_ns["a"]
    for one in (block, block.profile):
        with pytest.raises(TypeError, match="Not a profile to compare with: 3"):
            one.diff(3)
        assert one.diff(block).time.change == 0
    with pytest.raises(TypeError, match="Not a profile"):
        warpbook.profile(vs=3)  # type: ignore[arg-type]


def test_a_cell_is_compared_with_its_run_before(shell: Any) -> None:
    run(shell, "import time")
    for seconds in (1, 0.001):
        shell.display_pub.outputs.clear()
        run(shell, "%%gpuprof", f"time.sleep({seconds})", cell_id="cell-1")
    assert "Against its run before: " in shown(shell)
    assert "less time" in shown(shell, "text/html")
    shell.display_pub.outputs.clear()
    run(shell, "%%gpuprof", "time.sleep(0.001)", cell_id="cell-2")
    assert "Against its run before" not in shown(shell)
    shell.display_pub.outputs.clear()
    run(shell, "%%gpuprof", "1 / 0", cell_id="cell-1")
    assert "Against its run before" not in shown(shell)
    # a frontend that gives no ids
    run(shell, "%%gpuprof -q", "x = 1")
    run(shell, "%%gpuprof", "x = 2")
    assert "Against its run before" not in shown(shell)
    run(shell, "%%gpuprof", "x = 1")
    assert "Against its run before" in shown(shell)


def test_the_dashboard_gets_the_comparison_also_of_a_quiet_cell(
    shell: Any, ingest: Any
) -> None:
    for seconds in (1, 0.001):
        run(
            shell,
            "%%gpuprof -q",
            "import time",
            f"time.sleep({seconds})",
            cell_id="cell-1",
        )
    first, second = ingest.reports
    assert first.difference is None and first.notes == ()
    assert "less time" in second.difference.sentence
    time = second.difference.time
    assert time.before_ns >= 1_000_000_000 > time.after_ns
    (note,) = second.notes
    assert note.startswith(f"Against its run before: {second.difference.sentence}")
