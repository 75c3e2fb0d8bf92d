"""What tools that act may ask of a server: to put it to the person in an open page."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from warpbook.protocol import ActRequest

#: how what was asked ended
ActState = Literal[
    "allowed",
    "done",
    "refused",
    "failed",
    "busy",
    "no page",
    "not open",
    "not answered",
    "page closed",
    "still running",
    "too many",
]


class Outcome(Struct, frozen=True):
    """What became of a request."""

    state: ActState
    #: what was done, or why it was not and what to do, for who asked; a page's words
    #: may be the cell's
    words: str
    #: id of the report; None where there is none
    report: str | None = None
    #: whether the cell's text was replaced
    is_applied: bool = False


class LabSource(Struct, frozen=True):
    """What would be checked or handed in."""

    lab: str
    title: str
    text: str


class Judged(Struct, frozen=True):
    """What the judge says of a source, as the learner reads it."""

    #: None where that is not known yet
    passed: bool | None
    lines: tuple[str, ...]


class Actor(Protocol):
    """A server with pages; each method raises `ToolError` where it can't."""

    async def kernel(self, notebook: str) -> str:
        """Give the id of the kernel that a notebook has, by its path."""

    async def act(self, request: ActRequest, run_s: float) -> Outcome:
        """Have the person asked, and wait for what the page does.

        Args:
            request: without the id and the name of who asks.
            run_s: how long what was allowed is waited for.
        """

    async def lab_source(
        self, lab: str, text: str, use: Literal["check", "submit"]
    ) -> LabSource:
        """Give what a lab's judge would be given, where a course allows that.

        Args:
            lab: its id.
            text: the source; empty is the file beside the lab's notebook.
            use: what it is for.
        """

    async def check(self, source: LabSource) -> Judged:
        """Check it against the cases that the lab shows."""

    async def submit(self, source: LabSource) -> Judged:
        """Hand it in: to the course's hub, or to be graded and kept here."""
