"""A lab in a notebook: its source beside the notebook, checked and handed in."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from IPython.display import display

from warpbook.class_hub import ClassHub, NotPublished, PublishedLab, hub_here
from warpbook.class_hub_words import receipt_rows
from warpbook.hub_client import HubProblem
from warpbook.hub_protocol import SubmissionReceipt, SubmissionState
from warpbook.kernel.labs.lab_outputs import (
    Hint,
    ShownCard,
    no_such_hint,
    practice_passed,
)
from warpbook.kernel.labs.lab_solution import (
    ShownSolution,
    next_here,
    sections_after_pass,
    solution_here,
)
from warpbook.kernel.labs.lab_sources import place_of, source_log
from warpbook.kernel.labs.lab_trace import traced
from warpbook.kernel.runs.profile import Notice, Profile
from warpbook_labs.cards.html import STYLE, figures, shown, words_html
from warpbook_labs.cards.model import CardSection
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.course.check_progress import told_progress
from warpbook_labs.course.notebook import open_lab
from warpbook_labs.course.progress import Progress
from warpbook_labs.course.session import Graded, check_public, find, get_ready, submit
from warpbook_labs.course.store import Store
from warpbook_labs.errors import (
    BadLab,
    BadSource,
    NotInstalled,
    NotPassed,
    StoreError,
    TooBusy,
)
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.sources import read_source, without_cell_line
from warpbook_labs.results.check import cases_word
from warpbook_monitors.plain_text import bounded, printable

__all__ = ["PROBLEMS", "OpenLab", "check_kept", "find", "get_ready", "opened"]

#: what is shown in words below a cell
PROBLEMS = (
    BadLab,
    BadSource,
    NotInstalled,
    NotPassed,
    StoreError,
    TooBusy,
    OSError,
    LookupError,
)
#: what is there afterwards
_AFTERWARDS = (
    "`lab.next()` opens the next lab; `lab.solution()` shows the reference once the "
    "course's rules permit."
)


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
        # one case says too little to hand it in
        return self._told(lambda source: check_public(alone, source), tuple)

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
        hub = hub_here(say=_say)
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

        return self._told(handed_in, self._after_pass)

    def solution(self) -> ShownSolution | Notice:
        """Show the reference and its discussion, after a pass or as the course says."""
        try:
            return solution_here(self._loaded)
        except PROBLEMS as problem:
            return Notice(str(problem))

    def next(self) -> OpenLab | Notice:
        """Open the next lab that is not passed, beside this one."""
        try:
            entry = next_here(self.id)
            if entry is None:
                return Notice("All other labs that can be checked here are passed.")
            return opened(entry.id, str(self.source.parent.parent))
        except PROBLEMS as problem:
            return Notice(str(problem))

    def _after_pass(self) -> tuple[CardSection, ...]:
        return sections_after_pass(self._loaded)

    def trace(self) -> Profile | Notice:
        """Run the source once more on the GPU, untimed, and show what held it back."""
        try:
            source = read_source(self.source)
            return traced(self._loaded, source, self.source.parent)
        except PROBLEMS as problem:
            return Notice(str(problem))

    def hint(self, number: int | None = None) -> Hint | Notice:
        """Show the hints that are open, or open the next one by its number.

        Without a number none is spent, so that running all cells spends none.

        Args:
            number: of the next hint, or of one that is open.
        """
        hints = self._loaded.hints
        try:
            store = Store()
            opened = store.progress().get(self.id, Progress()).hints
            if number is None or number in range(1, opened + 1):
                return Hint(hints[:opened], len(hints))
            if number != opened + 1 or number > len(hints):
                return Notice(no_such_hint(number, opened, len(hints)))
            opened = store.open_hint(self.id, len(hints))
        except PROBLEMS as problem:
            return Notice(str(problem))
        return Hint(hints[:opened], len(hints))

    def _handed_in(self, hub: ClassHub, replace: bool) -> HandedIn:
        published = hub.find(self.id)
        source = read_source(self.source)
        self._refuse_starter(source)
        words = source_log.words(self.source, source)
        receipt = hub.hand_in(published, source, replace)
        return HandedIn(hub, published, receipt, words)

    def _refuse_starter(self, source: str) -> None:
        if without_cell_line(source).strip() == self._loaded.starter.strip():
            raise BadSource(
                "This is the starter, as it came: nothing was handed in. Write "
                f"your own in {self.source.name} first."
            )

    def _told(
        self,
        ask: Callable[[str], Graded],
        after_pass: Callable[[], tuple[CardSection, ...]] = practice_passed,
    ) -> ShownCard | Notice:
        return checked(self.source, ask, after_pass)

    def __repr__(self) -> str:
        lab = self._loaded.lab
        return f"Lab {lab.number}, {lab.title}: write {self.source}, then .check()"

    def _repr_html_(self) -> str:
        lab = self._loaded.lab
        if lab.plan is None:
            row = ("cases shown", str(len(public_cases(lab))))
        else:
            row = (
                "functions",
                ", ".join(function.name for function in lab.plan.functions),
            )
        rows = [
            ("your source", f"`{bounded(str(self.source), 400)}`"),
            ("notebook", f"`{bounded(str(self.notebook), 400)}`"),
            row,
            ("time", f"about {lab.minutes} minutes"),
            ("you so far", bounded(self._so_far(), 400)),
        ]
        return (
            f'<div class="warpbook-lab"><style>{STYLE}</style>'
            f'<p class="warpbook-verdict">Lab {lab.number}: {shown(lab.title)}</p>'
            f"{figures(rows)}{self._link()}</div>"
        )

    def _link(self) -> str:
        """Link its notebook where that is another one than this: in a folder beside."""
        here = Path.cwd()
        if self.notebook.parent.resolve() == here.resolve():
            return ""
        path = quote(os.path.relpath(self.notebook, here))
        return f'<p><a href="{escape(path)}">Open its notebook</a></p>'

    def _so_far(self) -> str:
        try:
            done = Store().progress().get(self.id, Progress())
        except StoreError as problem:
            return str(problem)
        plural = "" if done.attempts == 1 else "s"
        words = f"{done.attempts:,} submission{plural}, hints open: {done.hints:,}"
        if done.best is None:
            return words
        of = done.best.of
        return f"{words}; best: {done.best.right:,} of {of:,} {cases_word(of)} passed"


def _say(words: str) -> None:
    sys.stdout.write(f"{printable(words)}\n")


def opened(name: str, folder: str | None = None) -> OpenLab:
    """Open a lab in the folder, or here; in a folder of its name it is right there.

    Raises:
        BadLab: there is none, or it can't be used.
    """
    loaded = find(name)
    return OpenLab(loaded, place_of(loaded.lab.id, folder))


def check_kept(loaded: LoadedLab, file: Path) -> ShownCard | Notice:
    """Check what a cell has just written; the card says no more of where it is."""
    return checked(file, lambda source: check_public(loaded, source), is_named=False)


def checked(
    file: Path,
    ask: Callable[[str], Graded],
    after_pass: Callable[[], tuple[CardSection, ...]] = practice_passed,
    *,
    is_named: bool = True,
) -> ShownCard | Notice:
    """Grade what a file holds, and show it.

    Args:
        file: of the source.
        ask: grades a source.
        after_pass: gives what the card ends with if it passed.
        is_named: whether the card says which version of the file it is about.
    """
    try:
        source = read_source(file)
        words = source_log.words(file, source) if is_named else ""
        with shown_progress():
            graded = ask(source)
        source_log.note_checked(file, source)
        more = after_pass() if graded.passed else ()
        return ShownCard(graded, source, words, more)
    except PROBLEMS as problem:
        return Notice(str(problem))


class HandedIn:
    """A receipt, and how it stands with the submission whenever it is shown."""

    def __init__(
        self,
        hub: ClassHub,
        lab: PublishedLab,
        receipt: SubmissionReceipt,
        source_words: str,
    ) -> None:
        """Keep what was handed in, and which version of the file that was."""
        self._hub, self._lab = hub, lab
        self.receipt = receipt
        self._source_words = source_words

    def state(self) -> SubmissionState | None:
        """Ask how it stands; None where the hub does not say."""
        try:
            return self._hub.state(self._lab, self.receipt.submission)
        except HubProblem:
            return None

    def __repr__(self) -> str:
        rows = receipt_rows(self.receipt, self.state())
        lines = [f"{name}: {value}" for name, value in rows]
        return "\n".join(map(printable, [*lines, self._source_words, _AFTERWARDS]))

    def _repr_html_(self) -> str:
        page = self._hub.page(self._lab, self.receipt.submission)
        rows = receipt_rows(self.receipt, self.state())
        return (
            f'<div class="warpbook-lab"><style>{STYLE}</style>'
            '<p class="warpbook-verdict">Handed in: '
            f"{escape(printable(self._lab.title))}</p>{figures(rows)}"
            f'<p class="warpbook-quiet">{words_html(self._source_words)}</p>'
            f"<p>{words_html(_AFTERWARDS)}</p>"
            f'<p><a href="{escape(page)}" target="_blank" rel="noopener">'
            "Its page, with the result as soon as it is there</a></p></div>"
        )


@contextlib.contextmanager
def shown_progress() -> Iterator[None]:
    """Show how many cases are done, and the time taken, while a check runs."""
    line: Any = None

    def show(words: str) -> None:
        nonlocal line
        data = {"text/plain": words}
        if line is None:
            line = display(data, raw=True, display_id=True)
        else:
            line.update(data, raw=True)

    try:
        with told_progress(show):
            yield
    finally:
        if line is not None:
            line.update({"text/plain": ""}, raw=True)
