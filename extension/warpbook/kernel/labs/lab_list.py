"""`warpbook.labs.list()`: all labs by track, and whether each can be done here."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from warpbook_labs.cards.html import STYLE, shown
from warpbook_labs.cards.words import how_far
from warpbook_labs.course.overview import (
    look_here,
    next_lab,
    overview,
    skipped_words,
    so_far,
    speed_words,
)
from warpbook_labs.lab.entries import LabEntry, SoFar
from warpbook_monitors.html_table import table_html
from warpbook_monitors.plain_text import joined


class LabList:
    """All labs, as a table."""

    def __init__(self) -> None:
        """See which there are, what is here to check them, and how far one is."""
        progress: dict[str, SoFar] | None = None
        self.problems: tuple[str, ...] = ()
        try:
            progress, why = _progress(), ""
        except Exception as problem:  # noqa: BLE001 - the list is worth having alone
            why = f"How far you are is not known: {problem}"
        here = look_here()
        self.labs, bad = overview(here, progress)
        self.next_lab = next_lab(self.labs)
        #: said once of all labs
        said = (speed_words(here), skipped_words(self.labs))
        self.notice = " ".join(filter(None, said))
        self.problems = (*bad, *filter(None, [why]))

    def __iter__(self) -> Iterator[LabEntry]:
        return iter(self.labs)

    def __repr__(self) -> str:
        lines = []
        for track, labs in _by_track(self.labs):
            lines += [track, *(f"  {_text(lab)}" for lab in labs)]
        following = self.next_lab
        more = [] if following is None else [f"Next: {following.id}"]
        return joined([*lines, *filter(None, [self.notice]), *self.problems, *more])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._html()}

    def _html(self) -> str:
        head = "".join(
            f"<th>{title}</th>"
            for title in (
                *("lab", "title", "minutes", "level", "needs", "here", "you", "after"),
            )
        )
        rows = ""
        for track, labs in _by_track(self.labs):
            rows += f'<tr><th colspan="8">{shown(track)}</th></tr>'
            rows += "".join(map(_row, labs))
        below = "".join(
            f'<p class="warpbook-warning">{shown(problem, 400)}</p>'
            for problem in self.problems
        )
        following = self.next_lab
        if following is not None:
            words = f"Next: {following.number} {following.title}: "
            command = f'warpbook.labs.open("{following.id}")'
            below = f"<p>{shown(words)}<code>{shown(command)}</code></p>{below}"
        if self.notice:
            below = f"<p>{shown(self.notice, 400)}</p>{below}"
        table = table_html(
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )
        return (
            f'<div class="warpbook-lab" style="max-width:none"><style>{STYLE}</style>'
            f"{table}{below}</div>"
        )


def _progress() -> dict[str, SoFar]:
    # it needs SQLAlchemy, which may not be there
    from warpbook_labs.course.store import Store

    return so_far(Store().progress())


def _by_track(labs: tuple[LabEntry, ...]) -> Iterator[tuple[str, list[LabEntry]]]:
    for track, group in itertools.groupby(labs, key=lambda lab: lab.track):
        yield track, list(group)


def _row(lab: LabEntry) -> str:
    here = "yes" if lab.can_check else "no"
    if lab.why:
        here += f": {lab.why}"
    return (
        f"<tr><td>{lab.number} <code>{shown(lab.id)}</code></td>"
        f"<td>{shown(lab.title)}</td><td>{lab.minutes}</td>"
        f"<td>{shown(lab.difficulty or '')}</td><td>{shown(', '.join(lab.needs))}</td>"
        f"<td>{shown(here, 300)}</td><td>{shown(how_far(lab.progress))}</td>"
        f"<td>{shown(', '.join(lab.after))}</td></tr>"
    )


def _text(lab: LabEntry) -> str:
    here = "" if lab.can_check else f"; can't be checked here: {lab.why}"
    far = how_far(lab.progress)
    return f"{lab.number} {lab.id}: {lab.title} ({lab.minutes} min){here}, {far}"
