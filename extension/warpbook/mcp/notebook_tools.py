"""`profile_cell`, `try_change`, `apply_change`: an open page asks, and does it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from warpbook.mcp.acting import Outcome
from warpbook.mcp.answer import Answer
from warpbook.mcp.marked import Own
from warpbook.mcp.report_tools import OneReport, ReportId, found_report, report_answer
from warpbook.mcp.source import Source, ToolError
from warpbook.mcp.tool import Arguments, Tool
from warpbook.protocol import Act, ActRequest

_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
NO_ACTOR = (
    "Nothing here can ask the person: this needs warpbook's route on a Jupyter server, "
    "and a page of it that is open."
)


class Acting(Arguments, frozen=True, kw_only=True):
    """What every tool takes that has a cell run."""

    wait_s: Annotated[
        float,
        Meta(
            ge=1,
            le=600,
            description="Seconds to wait for the cell once the person allowed it; it "
            "goes on after that. Your client may give up earlier.",
        ),
    ] = 50.0


class ProfileCell(Acting, frozen=True, kw_only=True):
    """A cell of an open notebook."""

    notebook: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1000,
            description="Path of the notebook, as cells gives it.",
        ),
    ]
    cell: Annotated[
        str,
        Meta(
            pattern="^[A-Za-z0-9_-]{0,100}$",
            description="Id of the cell; the one that ran last if left out.",
        ),
    ] = ""


class ChangeCell(Acting, frozen=True, kw_only=True):
    """A change that the report of a cell names."""

    report: ReportId = ""
    change: Annotated[
        str,
        Meta(
            pattern=f"^{_NAME.pattern}$",
            description="The change, as a row of report gives it.",
        ),
    ]


async def _profile(source: Source, asked: ProfileCell) -> Answer:
    actor = source.actor
    if actor is None:
        raise ToolError(NO_ACTOR)
    kernel_id = await actor.kernel(asked.notebook)
    request = ActRequest("", "profile_cell", "", kernel_id, asked.cell or None)
    return await _outcome_answer(source, asked, await actor.act(request, asked.wait_s))


async def _try(source: Source, asked: ChangeCell) -> Answer:
    return await _changed(source, asked, "try_change")


async def _apply(source: Source, asked: ChangeCell) -> Answer:
    return await _changed(source, asked, "apply_change")


async def _changed(source: Source, asked: ChangeCell, act: Act) -> Answer:
    actor = source.actor
    if actor is None:
        raise ToolError(NO_ACTOR)
    report = await found_report(source, asked.report)
    if not report.kernel_id or report.cell_id is None:
        raise ToolError("This report is of no cell of a notebook, so none is changed.")
    shown = () if report.view is None else report.view.changes
    names = {change.id: change.name for change in shown}
    name = names.get(asked.change, asked.change)
    named = [change for change in report.profile.changes if change.name == name]
    # it goes into the first line of a cell
    if not named or not _NAME.fullmatch(name):
        raise ToolError(
            "The report names no such change. It names:",
            ", ".join(names.values()) or "none",
        )
    if act == "apply_change" and not named[0].code:
        raise ToolError(
            "This change has no edit that is sure to keep what the cell computes: "
            "only the person can make it."
        )
    request = ActRequest("", act, "", report.kernel_id, report.cell_id, change=name)
    outcome = await actor.act(request, asked.wait_s)
    answer = await _outcome_answer(source, asked, outcome)
    if act == "try_change":
        return answer
    return replace(answer, head={"is_applied": outcome.is_applied, **answer.head})


async def _outcome_answer(source: Source, asked: Acting, outcome: Outcome) -> Answer:
    """Give the report with what was done, or the state in words."""
    state: dict[str, object] = {"state": Own(outcome.state)}
    if outcome.report is None:
        return Answer({**state, "what_happened": outcome.words})
    one = OneReport(report=outcome.report, tokens=asked.tokens)
    answer = await report_answer(source, one)
    if outcome.words:
        state["what_happened"] = outcome.words
    return Answer({**state, **answer.head}, answer.rows, answer.unknown, answer.see)


_CONSENT = (
    " The person is asked in the open page, each time or once for the notebook; "
    "without an open page the answer says so. Ask report for rows that do not fit."
)
NOTEBOOK_TOOLS = (
    Tool(
        "profile_cell",
        "Run a cell once more under the profiler, in a cell below it, and give its "
        "report: what holds it back, and the changes that would help." + _CONSENT,
        ProfileCell,
        _profile,
        is_reading=False,
    ),
    Tool(
        "try_change",
        "Profile a cell again and measure one change of its report on copies of the "
        "cell's values; the cell stays as it is." + _CONSENT,
        ChangeCell,
        _try,
        is_reading=False,
    ),
    Tool(
        "apply_change",
        "Measure the edit that a report names, on copies, and put it into the cell if "
        "it is faster with equal results and the person wants it. Then ask "
        "profile_cell and compare: other changes have other gains now." + _CONSENT,
        ChangeCell,
        _apply,
        is_reading=False,
    ),
)
