"""Every recorded trace: one base, shares that sum to it, and links with two ends."""

import re
from pathlib import Path

import pytest

from warpbook_monitors import units
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.report_view import ReportView
from warpbook_profiler.report.base import base_of
from warpbook_profiler.report.report import TraceReport, report
from warpbook_profiler.report.trace_view import view_of_trace

DATA = Path(__file__).parents[2] / "data"
TRACES = sorted(
    path
    for folder in ("traces", "exam/h100", "exam_h100", "cpu", "ranks/nccl", "stacks")
    for path in (DATA / folder).glob("*.json.gz")
)
_LAST = re.compile(r"([\d.]+) %$")
_SHARE = re.compile(r"\((?:< )?([\d.]+) %\)$")


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_shares_are_of_one_base_and_links_have_two_ends(path: Path) -> None:
    told = report(*read_chrome_trace(str(path)))
    view = view_of_trace(told, {})
    _shares_sum(view)
    _figures_are_one(told, view)
    _kernels_are_shares(told, view)
    _links_have_two_ends(view)
    headline = view.headline
    assert headline is not None
    if headline.change_id is not None:
        (change,) = (one for one in view.changes if one.id == headline.change_id)
        assert set(change.causes) & set(headline.causes)
        ids = [change.id for change in view.changes]
        model = told.changes[ids.index(headline.change_id)]
        assert told.bare is None or model.gains(told.bare.time_ns)


def _shares_sum(view: ReportView) -> None:
    if view.time is not None:
        assert view.time.title == view.base != ""
        assert sum(part.ratio for part in view.time.parts) == pytest.approx(
            1, abs=0.011
        )
        for part in view.time.parts:
            causes = [one for one in view.causes if one.id in part.causes]
            if causes:
                shares = sum(cause.share_ratio for cause in causes)
                assert part.ratio == pytest.approx(shares)
            if len(causes) == 1:
                assert part.label.endswith(f" {causes[0].share}")
        written = [float(_LAST.search(part.label)[1]) for part in view.time.parts]
        whole = 100 * sum(part.ratio for part in view.time.parts)
        assert sum(written) == pytest.approx(whole, abs=0.6)
    shown = {group.title: group.figures for group in view.groups}
    bare = shown.get("Without the profiler", ())
    shares = [float(at[1]) for one in bare if (at := _SHARE.search(one.value))]
    assert not shares or sum(shares) == pytest.approx(100, abs=2)
    if bare:
        recorded = shown["As recorded, with the profiler"]
        assert not any("%" in figure.value for figure in recorded)


def _figures_are_one(told: TraceReport, view: ReportView) -> None:
    """A cause's sentence, its badge and the JSON have the same figure."""
    for finding, cause in zip(told.findings, view.causes, strict=True):
        assert (
            cause.share == units.share(finding.share) == units.share(cause.share_ratio)
        )
        assert f"{cause.share} of the" in cause.evidence


def _kernels_are_shares(told: TraceReport, view: ReportView) -> None:
    base_ns = base_of(told.bare, told.metrics, told.cpu).time_ns
    for table in (table for part in view.sections for table in part.tables):
        if table.title == "Kernels":
            total, share = (1 + table.header.index(at) for at in ("Total", "Share"))
            for row in table.rows:
                assert row[share].value is not None
                assert row[total].value == pytest.approx(row[share].value * base_ns)


def _links_have_two_ends(view: ReportView) -> None:
    rows = {
        row.id: row
        for part in view.sections
        for table in part.tables
        for row in table.links
    }
    for cause in view.causes:
        assert all(cause.id in rows[row].causes for row in cause.rows)
        linked = [change.id for change in view.changes if cause.id in change.causes]
        assert list(cause.changes) == linked
    for change in view.changes:
        assert all(change.id in rows[row].changes for row in change.rows)
    for row in rows.values():
        causes = [cause.id for cause in view.causes if row.id in cause.rows]
        changes = [change.id for change in view.changes if row.id in change.rows]
        assert (list(row.causes), list(row.changes)) == (causes, changes)
