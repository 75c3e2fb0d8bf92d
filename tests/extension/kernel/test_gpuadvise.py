"""`%gpuadvise` in a real shell: the checklist of cells that were profiled."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

import warpbook

TRACES = Path(__file__).parents[2] / "data" / "traces"
CELL = """%%gpuprof -q -o p
import torch
with torch.inference_mode():
    y = torch.nn.Conv2d(3, 8, 3)(torch.randn(4, 3, 32, 32))
"""


def test_the_newest_profile_is_judged_with_its_cell(shell: Any) -> None:
    shell.run_cell(CELL).raise_error()
    newest = shell.run_cell("%gpuadvise").result
    named = shell.run_cell("%gpuadvise p").result
    assert newest.to_dict() == named.to_dict()
    answers = {line["name"]: line for line in newest.to_dict()["lines"]}
    assert answers["no-autograd"]["evidence"] == (
        "Autograd recorded nothing here. The code uses torch.inference_mode (line 3)."
    )
    assert answers["cudnn-benchmark"]["evidence"].startswith(
        "torch.backends.cudnn.benchmark is False in the process"
    )


@pytest.mark.parametrize(
    ("around", "answer"), [("no_grad()", "yes"), ("enable_grad()", "no")]
)
def test_autograd_is_seen_where_it_records(
    shell: Any, tmp_path: Path, around: str, answer: str
) -> None:
    # it is mentioned both times
    cell = f"""%%gpuprof -q -o p --save {tmp_path / "t.json"}
import torch
with torch.no_grad():
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
with torch.{around}:
    y = net(torch.randn(4, 8))
"""
    shell.run_cell(cell).raise_error()
    live = shell.run_cell("%gpuadvise p").result
    # a file tells the same
    saved = warpbook.analyze(tmp_path / "t.json").advise()  # type: ignore[union-attr]
    for advice in (live, saved):
        answers = {line["name"]: line["answer"] for line in advice.to_dict()["lines"]}
        assert answers["no-autograd"] == answer


def test_a_report_brings_what_its_code_answered(shell: Any, ingest: Any) -> None:
    shell.run_cell(CELL).raise_error()
    (report,) = ingest.reports
    newest = shell.run_cell("%gpuadvise").result
    assert report.checklist == newest.figures


def test_without_a_profile_it_says_what_to_do(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("%gpuadvise")
    assert "No cell was profiled yet" in capsys.readouterr().err
    shell.run_cell("q = 3\n%gpuadvise q")
    assert "'q' does not: keep one with %%gpuprof -o NAME." in capsys.readouterr().err


def test_a_trace_file_has_a_list_that_needs_no_script() -> None:
    advice = warpbook.analyze(TRACES / "train_fp32.json.gz").advise()  # type: ignore[union-attr]
    shown = advice._repr_mimebundle_()
    html, text = shown["text/html"], shown["text/plain"]
    assert html.startswith('<div class="warpbook-report"') and "<script" not in html
    assert re.search(r"About 3\.\d+ ms \(1\.\d+ to 5\.\d+ ms\)", html)
    # both are drawn from the same answers
    for line in advice.figures.lines:
        assert line.question.replace("?", "") in text
        assert f"{line.answer}</span>" in html


def test_names_of_a_trace_are_escaped(tmp_path: Path) -> None:
    content = gzip.decompress((TRACES / "train_fp32.json.gz").read_bytes())
    path = tmp_path / "t.json"
    path.write_bytes(content.replace(b"aten::addmm", b"aten::addmm<script>"))
    advice = warpbook.analyze(path).advise()  # type: ignore[union-attr]
    assert "<script" not in advice._repr_mimebundle_()["text/html"]
