"""`lab_check` and `lab_submit`: what the judge says, once the person allowed it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from warpbook.mcp.answer import Answer
from warpbook.mcp.lab_policy import note_call
from warpbook.mcp.marked import Own
from warpbook.mcp.notebook_tools import NO_ACTOR
from warpbook.mcp.source import Source, ToolError
from warpbook.mcp.tool import Arguments, Tool
from warpbook.protocol import Act, ActRequest

#: characters of a source, which the dialog shows whole
_MOST_SOURCE = 100_000


class LabSourceAsked(Arguments, frozen=True, kw_only=True):
    """A source of a lab."""

    lab: Annotated[
        str,
        Meta(
            pattern="^[a-z][a-z0-9-]{2,40}$",
            description="Id of the lab, as labs gives it.",
        ),
    ]
    source: Annotated[
        str,
        Meta(
            max_length=_MOST_SOURCE,
            description="The whole source; the person's own file, which the lab's cell "
            "wrote, if left out.",
        ),
    ] = ""


async def _check(source: Source, asked: LabSourceAsked) -> Answer:
    return await _judged(source, asked, "lab_check")


async def _submit(source: Source, asked: LabSourceAsked) -> Answer:
    return await _judged(source, asked, "lab_submit")


async def _judged(source: Source, asked: LabSourceAsked, act: Act) -> Answer:
    actor = source.actor
    if actor is None:
        raise ToolError(NO_ACTOR)
    is_check = act == "lab_check"
    given = await actor.lab_source(
        asked.lab, asked.source, "check" if is_check else "submit"
    )
    request = ActRequest("", act, "", lab=given.title, source=given.text)
    outcome = await actor.act(request, 0)
    if outcome.state != "allowed":
        return Answer({"state": Own(outcome.state), "what_happened": outcome.words})
    if not is_check:
        # the list goes with the hand-in
        await note_call(act, given.lab, len(given.text.encode()), None)
    judged = await (actor.check if is_check else actor.submit)(given)
    head: dict[str, object] = {"state": Own("done"), "lab": Own(given.lab)}
    unknown = []
    if judged.passed is None:
        unknown.append(Own("Whether it passes is not known yet: it waits for grading."))
    else:
        head["passed"] = judged.passed
    return Answer(head, judged.lines, unknown)


LAB_TOOLS = (
    Tool(
        "lab_check",
        "Check a source of a lab against the cases that the lab shows; nothing is "
        "kept. The person is asked in an open page first. The rows are the judge's "
        "words.",
        LabSourceAsked,
        _check,
        is_reading=False,
    ),
    Tool(
        "lab_submit",
        "Hand a source of a lab in as the person's own, which counts as an attempt. "
        "The person is asked in an open page each time. The rows are the receipt, or "
        "the judge's words without hidden cases.",
        LabSourceAsked,
        _submit,
        is_reading=False,
    ),
)
