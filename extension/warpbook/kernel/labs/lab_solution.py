"""The reference and the discussion of a lab in a notebook, and what is next."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from warpbook.lab_solutions import solution_of
from warpbook_labs.cards.model import CardSection
from warpbook_labs.cards.next_step import next_section, next_words, reference_sections
from warpbook_labs.course.overview import look_here, next_lab, overview, so_far
from warpbook_labs.course.progress import Progress
from warpbook_labs.course.solution import Solution
from warpbook_labs.course.store import Store
from warpbook_labs.errors import LabError
from warpbook_labs.lab.entries import LabEntry
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.texts import plain_math
from warpbook_monitors.plain_text import printable


class ShownSolution:
    """The author's solution: Markdown, with formulas that the notebook draws."""

    def __init__(self, solution: Solution) -> None:
        self.solution = solution
        self.reference = solution.reference

    def _parts(self) -> Iterator[str]:
        of = self.solution
        # no text within can end this fence
        fence = "`" * (1 + max(3, _longest_run(of.reference)))
        language = "cpp" if of.file.endswith(".cu") else "python"
        yield f"**Reference solution** (`{of.file}`)"
        yield f"{fence}{language}\n{of.reference.rstrip()}\n{fence}"
        if of.discussion:
            yield "**Discussion**"
            yield of.discussion.strip()
        if of.mistakes:
            yield "**What often goes wrong**"
            yield "\n".join(
                f"- *{mistake.name}*: {mistake.reason}" for mistake in of.mistakes
            )

    def __repr__(self) -> str:
        lines = plain_math("\n\n".join(self._parts())).splitlines()
        return "\n".join(printable(line.expandtabs(4)) for line in lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/markdown": "\n\n".join(self._parts())}


def solution_here(loaded: LoadedLab) -> ShownSolution:
    """Give the solution, if it may be shown now.

    Raises:
        LabError: it may not, or can't.
    """
    progress = Store().progress().get(loaded.lab.id, Progress())
    return ShownSolution(solution_of(loaded.lab, loaded.folder, progress))


def next_here(lab: str) -> LabEntry | None:
    labs, _ = overview(look_here(), so_far(Store().progress()))
    return next_lab(labs, lab)


def sections_after_pass(loaded: LoadedLab) -> tuple[CardSection, ...]:
    """Give what a card ends with after a pass: the solution, and what is next."""
    sections: list[CardSection] = []
    words = []
    try:
        of = solution_here(loaded).solution
        mistakes = [(mistake.name, mistake.reason) for mistake in of.mistakes]
        sections += reference_sections(of.file, of.reference, of.discussion, mistakes)
    except LabError as problem:
        words.append(str(problem))
    with contextlib.suppress(LabError):
        words.append(next_words(next_here(loaded.lab.id), "lab.next()"))
    return (*sections, next_section(words)) if words else tuple(sections)


def _longest_run(text: str) -> int:
    """Count the backticks of the longest run."""
    longest = run = 0
    for letter in text:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    return longest
