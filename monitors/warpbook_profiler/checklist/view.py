"""The checklist as it is shown: by answer, what is missing first."""

from __future__ import annotations

from itertools import groupby

from msgspec import Struct

from warpbook_profiler.checklist.answers import ANSWERS, Answer, Checklist, Line

_TITLES: dict[Answer, str] = {
    "no": "No: not used, though it applies",
    "yes": "Yes: in use",
    "unknown": "Unknown: the recording does not show it",
    "not applicable": "Not applicable",
}


class ChecklistItem(Struct, frozen=True):
    """One question."""

    name: str
    question: str
    #: id of the lab that teaches it, where one does
    lab: str | None


class ChecklistEntry(Struct, frozen=True):
    """Questions that follow one another and have the same evidence."""

    items: tuple[ChecklistItem, ...]
    evidence: str
    #: of "no", what to do and what it gives; of "unknown", what to record; else empty
    advice: str


class ChecklistGroup(Struct, frozen=True):
    """All questions with one answer; there is at least one."""

    answer: Answer
    title: str
    entries: tuple[ChecklistEntry, ...]

    @property
    def count(self) -> int:
        """Give the number of its questions."""
        return sum(len(entry.items) for entry in self.entries)


class ChecklistView(Struct, frozen=True):
    """A checklist, grouped."""

    #: how many items have which answer, in words
    summary: str
    warnings: tuple[str, ...]
    groups: tuple[ChecklistGroup, ...]


def view_of_checklist(checklist: Checklist) -> ChecklistView:
    """Put the answers in the order in which they are read."""
    groups = (
        ChecklistGroup(answer, _TITLES[answer], _entries(checklist, answer))
        for answer in ANSWERS
    )
    return ChecklistView(
        checklist.summary,
        checklist.warnings,
        tuple(group for group in groups if group.entries),
    )


def _entries(checklist: Checklist, answer: Answer) -> tuple[ChecklistEntry, ...]:
    lines = (line for line in checklist.lines if line.answer == answer)
    return tuple(
        ChecklistEntry(tuple(map(_item, alike)), evidence, advice)
        for (evidence, advice), alike in groupby(lines, key=_said)
    )


def _said(line: Line) -> tuple[str, str]:
    return line.evidence, line.advice


def _item(line: Line) -> ChecklistItem:
    return ChecklistItem(line.name, line.question, line.lab)
