"""All events of a profile go to the server, and nobody waits for them."""

from typing import Any

import pytest

from tests.programs import wait_for
from warpbook.kernel.link.timeline_handover import timelines
from warpbook_profiler.timeline.timeline import Timeline
from warpbook_profiler.timeline.timeline_body import unpack


@pytest.fixture(autouse=True)
def handed_over() -> None:
    """What tests before left waits no more: there is one thread for this process."""
    wait_for("the others' events", lambda: timelines._waiting.empty() or None)


CELL = "%%gpuprof -q\nimport torch\nfor _ in range(30): torch.ones(9).cumsum(0)"


def test_the_events_follow_the_report(shell: Any, ingest: Any) -> None:
    shell.run_cell(CELL)
    (report,) = ingest.reports
    body = wait_for("the events", lambda: ingest.timelines.get(report.id))
    timeline = Timeline(unpack(body))
    assert report.timeline_events == sum(len(row) for row in timeline.columns)
    assert timeline.started_ns / 1e6 == report.started_ms
    (use,) = timeline.search("aten::cumsum", 0, -1).found
    assert use.events == 30
    assert {row.label for row in timeline.rows} == {"Operators"}


def test_a_server_that_takes_long_delays_no_cell(shell: Any, ingest: Any) -> None:
    ingest.may_answer.clear()
    shell.run_cell(CELL)
    # the report, and its events
    wait_for("the first", lambda: len(ingest.authorization) == 2 or None)
    for _ in range(7):
        shell.run_cell(CELL)
    handed_over = [report.timeline_events is not None for report in ingest.reports]
    # one is on its way and three wait; later reports say that they have none
    assert handed_over == [True] * 4 + [False] * 4
    ingest.may_answer.set()
    expected = {
        report.id for report in ingest.reports if report.timeline_events is not None
    }
    wait_for("the events", lambda: ingest.timelines.keys() == expected or None)


def test_a_server_that_refuses_the_events_is_not_told_to_the_person(
    shell: Any, ingest: Any, capfd: Any
) -> None:
    shell.run_cell(CELL)
    ingest.status, ingest.message = 500, "broken"
    shell.run_cell(CELL.replace("-q", ""))
    ingest.status = 204
    shell.run_cell(CELL)
    wait_for("the events", lambda: ingest.timelines.get(ingest.reports[-1].id))
    assert capfd.readouterr().err == ""
