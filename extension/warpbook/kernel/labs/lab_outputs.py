"""What a lab shows below a cell: the card of a result, and hints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warpbook_labs.cards.card import card_of, conditions
from warpbook_labs.cards.html import card_html
from warpbook_labs.cards.model import CardSection, heading
from warpbook_labs.cards.next_step import next_section
from warpbook_labs.course.session import Graded
from warpbook_labs.lab.texts import plain_math
from warpbook_monitors.plain_text import printable

#: conditions of a check that a card of this kernel has said already
_said: set[str] = set()


class ShownCard:
    """How a check or a submission went; `graded` holds all that is known."""

    def __init__(
        self,
        graded: Graded,
        source: str,
        source_words: str = "",
        more: tuple[CardSection, ...] = (),
    ) -> None:
        """Keep the result, and its card with the lines of the source that it names.

        Args:
            graded: the result.
            source: what was graded.
            source_words: which version of the file that is.
            more: sections that come last.
        """
        self.graded = graded
        self.passed = graded.passed
        self.card = card_of(
            graded.result,
            source,
            graded.submission,
            number=graded.number,
            source_words=source_words,
            left_out=frozenset(_said),
            more=more,
        )
        _said.update(conditions(graded.result))

    def __repr__(self) -> str:
        return printable(heading(self.card))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": card_html(self.card)}


class Hint:
    """The hints that are open, and how the next one is opened."""

    def __init__(self, hints: tuple[str, ...], of: int) -> None:
        """Take those that are open, the newest last."""
        self._hints, self._of = hints, of

    def __repr__(self) -> str:
        lines = plain_math("\n\n".join(self._parts("{}"))).splitlines()
        return "\n".join(printable(line.expandtabs(4)) for line in lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # the lab's own Markdown, as in its notebook: code and formulas are drawn
        return {
            "text/plain": repr(self),
            "text/markdown": "\n\n".join(self._parts("**{}**")),
        }

    def _parts(self, heading_form: str) -> Iterator[str]:
        for number, text in enumerate(self._hints, 1):
            yield heading_form.format(f"Hint {number} of {self._of}")
            yield text
        yield self._next()

    def _next(self) -> str:
        opened, of = len(self._hints), self._of
        if opened >= of:
            return f"All {of} hints are open."
        before = "" if opened else f"No hint is open; there are {of}. "
        return f"{before}`lab.hint({opened + 1})` opens hint {opened + 1}."


def practice_passed() -> tuple[CardSection, ...]:
    """Say what a check that passed is good for."""
    words = "Hand it in with `lab.submit()`: hidden cases are drawn for it."
    return (next_section([words]),)


def no_such_hint(number: int, opened: int, of: int) -> str:
    """Say which hint can be opened in place of one that can't."""
    if opened >= of:
        return f"There is no hint {number}: all {of} are open."
    return (
        f"Hint {number} can't be opened yet: the next one is `lab.hint({opened + 1})`."
    )
