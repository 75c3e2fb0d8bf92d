"""Where the warps of a cell wait, as an H200 recorded it: lines, reasons, bounds."""

from __future__ import annotations

import gzip
import json
import re
import resource
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.extension.kernel.test_report import HOSTILE, TRACES, Tags, bundle
from tests.programs import ROOT
from warpbook.cli.main import main
from warpbook.kernel.runs.profile import Profile
from warpbook.reports.labs import LABS
from warpbook_profiler.files.stalls import keep_stalls
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.model.report_view import StallsView
from warpbook_profiler.model.stalls import KernelStalls, LineStalls, SourceFile, Stalls
from warpbook_profiler.report.profile_view import view_of

CELL = ROOT / "tests" / "data" / "stalls" / "cell_h200.json.gz"


def cell(**changes: Any) -> CellProfile:
    kept = msgspec.json.decode(gzip.decompress(CELL.read_bytes()), type=CellProfile)
    return msgspec.structs.replace(kept, **changes)


def shown(figures: CellProfile, form: str = "text/plain") -> str:
    return bundle(Profile(figures, "cell"))[form]


def stalls(figures: CellProfile) -> StallsView:
    view = view_of(figures, LABS).stalls
    assert view is not None
    return view


@pytest.mark.parametrize("form", ["text/plain", "text/html"])
def test_the_line_that_waits_is_shown_with_its_reason_and_a_lab(form: str) -> None:
    report = shown(cell(), form)
    at = report.index("one of each multiprocessor every")
    row = report[report.index("tile[row][column] =", at) :].splitlines()[0]
    assert "21,607" in row and "61 %" in row and "device memory (37 %)" in row
    assert "waits at a barrier" in report and "Lab: reduction-and-scan." in report
    # a library's kernel has none, and the report says how others get them
    assert "softmax_warp_forward" in report[at:] and "-lineinfo" in report


def test_shares_are_of_a_kernels_samples_and_a_reason_is_explained_once() -> None:
    shown_kernels = stalls(cell()).kernels
    for kernel in shown_kernels:
        assert sum(one.share_ratio for one in kernel.reasons) == pytest.approx(1)
    advice = [one.advice for kernel in shown_kernels for one in kernel.reasons]
    told = [words for words in advice if words]
    assert len(told) == len(set(told)) > 3


def test_a_kernel_leads_to_its_stalls_and_back() -> None:
    view = view_of(cell(), LABS)
    rows = view.sections[0].tables[0].links
    of_id = {kernel.id: kernel for kernel in stalls(cell()).kernels}
    assert [of_id[row.stalls].rows for row in rows] == [(row.id,) for row in rows]


def test_a_long_hostile_source_is_a_window_and_escaped() -> None:
    code = HOSTILE.replace("\n", " ") * 100
    file = SourceFile(HOSTILE, "\n".join([code] * 5000), "")
    lines = [LineStalls(0, line, 20, {HOSTILE: 20}) for line in range(1, 5001, 7)]
    lines += [LineStalls(at, 9**9, 9, {}) for at in (-1, 0, 7)]
    kernel = KernelStalls(HOSTILE, 1, 999, {HOSTILE: 999}, tuple(lines), 0, "cuda")
    sampled = Stalls("sampled", HOSTILE, kernels=(kernel,), files=(file,))
    figures = cell(stalls=sampled)
    text, html = shown(figures), shown(figures, "text/html")
    assert "script" not in Tags(html).tags
    assert not set("\x1b\r") & set(text) and "<script" not in html
    (table,) = stalls(figures).kernels[0].sources
    assert len(table.rows) < 100
    assert max(len(row[0].text) for row in table.rows) < 200


@pytest.mark.parametrize("form", ["text/plain", "text/html"])
def test_what_was_not_sampled_is_one_sentence(form: str) -> None:
    why = "The driver gives counters only to administrators: ask yours."
    report = shown(cell(stalls=Stalls("denied", why)), form)
    assert why in report and "of each multiprocessor" not in report
    assert "Stalls" not in shown(cell(stalls=None), form)


def test_a_saved_trace_has_the_stalls_and_refuses_what_does_not_add_up(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    trace = tmp_path / "cell.json"
    trace.write_bytes(gzip.decompress((TRACES / "tiny_kernels.json.gz").read_bytes()))
    kept = cell().stalls
    assert kept is not None
    keep_stalls(str(trace), kept)
    assert main(["analyze", "--json", str(trace)]) == 0
    told = json.loads(capsysbinary.readouterr().out)["stalls"]
    assert msgspec.convert(told, Stalls) == kept
    assert main(["analyze", str(trace)]) == 0
    assert b"tile[row][column] =" in capsysbinary.readouterr().out
    whole = trace.read_bytes()
    trace.write_bytes(whole.replace(b'"samples":35274', b'"samples":9'))
    assert main(["analyze", str(trace)]) == 0
    said = capsysbinary.readouterr().out
    assert b"do not add up" in said and b"tile[row]" not in said
    trace.write_bytes(
        re.sub(rb'"launches":\d+', b'"launches":1%s' % (b"0" * 30), whole)
    )
    assert main(["analyze", "--json", str(trace)]) == 0
    told = json.loads(capsysbinary.readouterr().out)
    assert told["stalls"] is None
    assert "stalls can't be used" in json.dumps(told)


def test_a_full_disk_leaves_the_trace_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "cell.json"
    trace.write_bytes(gzip.decompress((TRACES / "tiny_kernels.json.gz").read_bytes()))
    before = trace.read_bytes()
    kept = cell().stalls
    assert kept is not None
    # half of a module that is compiled now would be kept for all
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        with pytest.raises(TraceError, match="The trace has no stalls"):
            keep_stalls(str(trace), kept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert trace.read_bytes() == before


def test_kernels_of_one_name_and_lines_that_are_left_out_are_told() -> None:
    kernel = KernelStalls(
        *("kernel", 1, 100, {"wait": 100}),
        (LineStalls(0, 1, 60, {"wait": 60}),),
        *(10, "cuda"),
    )
    files = (SourceFile("a.cu", "x = 1;", ""),)
    view = stalls(
        cell(stalls=Stalls("sampled", "", kernels=(kernel,) * 6, files=files))
    )
    assert [one.id for one in view.kernels] == [f"stalls-{at}" for at in range(5)]
    assert view.notes[-1] == "Not shown: 1 sampled kernel with less time."
    other, without = view.kernels[0].notes
    assert other == "Other lines: 30 % of the samples."
    assert without.startswith("Without a line: 10 %")
