"""A lab in a notebook: its source beside the notebook, checked and handed in."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from warpbook.class_hub import ClassHub, HubProblem, NotPublished, hub_here
from warpbook.kernel.lab_handed_in import HandedIn
from warpbook.kernel.lab_progress import shown_progress
from warpbook.kernel.lab_trace import traced
from warpbook.kernel.profile import Notice, Profile
from warpbook_labs.cards.card import card_of
from warpbook_labs.cards.cell_text import heading
from warpbook_labs.cards.html import STYLE, card_html, shown
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.course.opening import open_lab
from warpbook_labs.course.progress import Progress
from warpbook_labs.course.session import Graded, check_public, find, get_ready, submit
from warpbook_labs.course.store import Store
from warpbook_labs.errors import BadLab, BadSource, NotInstalled, StoreError
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.sources import read_source
from warpbook_monitors.plain_text import printable

#: what is told in words below a cell
PROBLEMS = (BadLab, BadSource, NotInstalled, StoreError, OSError, LookupError)


class ShownCard:
    """How a check or a submission went; `graded` holds all that is known."""

    def __init__(self, graded: Graded, source: str) -> None:
        """Keep the result, and its card with the lines of the source that it names."""
        self.graded = graded
        self.passed = graded.passed
        self.card = card_of(graded.result, source, graded.submission)

    def __repr__(self) -> str:
        """Write the outcome."""
        return printable(heading(self.card))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": card_html(self.card)}


class Hint:
    """The hints that are open."""

    def __init__(self, hints: tuple[str, ...], of: int) -> None:
        """Take those that are open, the newest last."""
        self._hints, self._of = hints, of

    def __repr__(self) -> str:
        """Write them all."""
        return "\n\n".join(
            f"Hint {number} of {self._of}\n{text}"
            for number, text in enumerate(self._hints, 1)
        )

    def _repr_html_(self) -> str:
        inner = "".join(
            f"<h4>Hint {number} of {self._of}</h4>{_paragraphs(text)}"
            for number, text in enumerate(self._hints, 1)
        )
        return f'<div class="warpbook-lab"><style>{STYLE}</style>{inner}</div>'


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(each)}</p>" for each in text.split("\n\n"))


class OpenLab:
    """One lab, with its files in a folder of its name."""

    def __init__(self, loaded: LoadedLab, place: Path) -> None:
        """Put the files there; what is there already stays as it is."""
        self._loaded = loaded
        self.id = loaded.lab.id
        opened = open_lab(loaded, place)
        self.source, self.notebook = opened.source, opened.notebook

    def run(self, case: int = 1) -> ShownCard | Notice:
        """Run one of the cases that the lab shows; the first is 1."""
        cases = self._loaded.lab.public
        if not 1 <= case <= len(cases):
            return Notice(f"There are cases 1 to {len(cases)}.")
        one = msgspec.structs.replace(self._loaded.lab, public=(cases[case - 1],))
        alone = dataclasses.replace(self._loaded, lab=one)
        return self._told(lambda source: check_public(alone, source))

    def check(self) -> ShownCard | Notice:
        """Check against all cases that the lab shows; nothing is kept."""
        return self._told(lambda source: check_public(self._loaded, source))

    def submit(self, replace: bool = False) -> ShownCard | HandedIn | Notice:
        """Hand the source in: to the course's hub, or to be graded here.

        A lab that no course publishes is graded here, with hidden cases drawn for the
        submission alone, and kept.

        Args:
            replace: at a hub, in the place of a submission that still waits.
        """
        hub = hub_here()
        if hub is not None:
            try:
                return self._handed_in(hub, replace)
            except NotPublished:
                # then it is practice
                pass
            except (HubProblem, *PROBLEMS) as problem:
                return Notice(str(problem))

        def handed_in(source: str) -> Graded:
            self._refuse_starter(source)
            return submit(Store(), self._loaded, source)

        return self._told(handed_in)

    def trace(self) -> Profile | Notice:
        """Run the source once more on the GPU, untimed, and show what held it back."""
        try:
            source = read_source(self.source)
            return traced(self._loaded, source, self.source.parent)
        except PROBLEMS as problem:
            return Notice(str(problem))

    def hint(self) -> Hint | Notice:
        """Open one more hint; once all are open, tell them all again."""
        hints = self._loaded.hints
        try:
            opened = Store().open_hint(self.id, len(hints))
        except PROBLEMS as problem:
            return Notice(str(problem))
        return Hint(hints[:opened], len(hints))

    def _handed_in(self, hub: ClassHub, replace: bool) -> HandedIn:
        published = hub.find(self.id)
        source = read_source(self.source)
        self._refuse_starter(source)
        return HandedIn(hub, published, hub.hand_in(published, source, replace))

    def _refuse_starter(self, source: str) -> None:
        if source.strip() == self._loaded.starter.strip():
            raise BadSource(
                "This is the starter, as it came: nothing was handed in. Write "
                f"your own in {self.source.name} first."
            )

    def _told(self, ask: Callable[[str], Graded]) -> ShownCard | Notice:
        try:
            source = read_source(self.source)
            with shown_progress():
                graded = ask(source)
            return ShownCard(graded, source)
        except PROBLEMS as problem:
            return Notice(str(problem))

    def __repr__(self) -> str:
        """Say what it is and where its source is."""
        lab = self._loaded.lab
        return f"Lab {lab.number}, {lab.title}: write {self.source}, then .check()"

    def _repr_html_(self) -> str:
        lab = self._loaded.lab
        cases = len(public_cases(lab))
        try:
            done = Store().progress().get(self.id, Progress())
            best = done.best
            so_far = f"{done.attempts:,} submissions, {done.hints:,} hints"
            if best is not None:
                so_far += f"; the best has {best.right:,} of {best.of:,} cases right"
        except StoreError as problem:
            so_far = str(problem)
        return (
            f'<div class="warpbook-lab"><style>{STYLE}</style>'
            f'<p class="warpbook-verdict">Lab {lab.number}: {shown(lab.title)}</p>'
            f"<dl><dt>your source</dt><dd><code>{shown(self.source)}</code></dd>"
            f"<dt>cases that you see</dt><dd>{cases}</dd>"
            f"<dt>you so far</dt><dd>{shown(so_far, 400)}</dd></dl></div>"
        )


def opened(name: str, folder: str | None = None) -> OpenLab:
    """Open a lab in the folder, or here; in a folder of its name it is right there.

    Raises:
        BadLab: there is none, or it can't be used.
    """
    loaded = find(name)
    return OpenLab(loaded, place_of(loaded.lab.id, folder))


def place_of(lab: str, folder: str | None = None) -> Path:
    """Give the lab's folder below another one, which may be it already."""
    here = Path(os.getcwd() if folder is None else folder)
    return here if here.resolve().name == lab else here / lab


def keep_source(name: str, source: str, last_kept: str | None) -> tuple[Path, str]:
    """Write a lab's source; a version that nobody else holds is put aside.

    Args:
        name: of the lab.
        source: what the cell holds.
        last_kept: what this kernel wrote there before.

    Returns:
        The file, and the name of the one with what was there before, or "".
    """
    loaded = find(name)
    place = place_of(loaded.lab.id)
    place.mkdir(parents=True, exist_ok=True)
    file = place / language_of(loaded.lab).source_name
    before = file.read_text(encoding="utf-8") if file.exists() else None
    aside = ""
    if before not in (None, source, last_kept, loaded.starter):
        aside = _put_aside(file, before or "")
    file.write_text(source, encoding="utf-8")
    # who has written a source checks it soon
    get_ready(loaded)
    return file, aside


def _put_aside(file: Path, text: str) -> str:
    number = 1
    while True:
        other = file.with_name(f"{file.stem}.before-{number}{file.suffix}")
        try:
            with other.open("x", encoding="utf-8") as kept:
                kept.write(text)
            return other.name
        except FileExistsError:
            number += 1
