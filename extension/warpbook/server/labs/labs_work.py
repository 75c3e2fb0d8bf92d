"""Labs, for the server: the list, hints and cards; a child opens, and marks answers.

It needs SQLAlchemy and NumPy for what a person did, so it is called on threads. The
Python of a lab never runs in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct

from warpbook.lab_protocol import (
    AskedQuestion,
    LabCards,
    LabHints,
    LabList,
    LabMark,
    LabMistake,
    LabOpened,
    LabSolution,
    QuizBegin,
    QuizMark,
    QuizSheet,
)
from warpbook.lab_solutions import solution_of
from warpbook_labs.course.overview import (
    hints_of,
    look_here,
    next_lab,
    overview,
    skipped_words,
    so_far,
    speed_words,
)
from warpbook_labs.course.progress import Progress, read_progress, submissions_file
from warpbook_labs.course.quiz import (
    PLACEMENT,
    Marked,
    begin_words,
    left_out_words,
    mark_words,
    placement,
    questions_here,
    read_quiz,
)
from warpbook_labs.course.reading import Reading, find_text, read_texts, text_folder
from warpbook_labs.errors import BadText, LabError, NotInstalled
from warpbook_labs.lab.catalogues import folder_of, read_lab
from warpbook_labs.lab.entries import LabEntry, SoFar
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.texts import plain_math
from warpbook_monitors.plain_text import bounded

if TYPE_CHECKING:
    from warpbook_labs.course.store import Grading, Store

#: what opened labs are put into, below the folder that the server shows
FOLDER = "labs"
_MOST_CARDS = 50
_LONGEST_S = 60.0
_MOST_WORDS = 500
_MOST_MARK_WORDS = 2000


def labs(gpus: int) -> LabList:
    """List all labs; what a person did is left out if it can't be read."""
    progress: dict[str, SoFar] | None = None
    problems: list[str] = []
    try:
        progress = so_far(_store().progress())
    except (LabError, msgspec.MsgspecError) as problem:
        problems.append(_words(f"How far you are is not known. {problem}"))
    here = look_here(gpus)
    lab_infos, bad = overview(here, progress)
    texts: tuple[Reading, ...] = ()
    try:
        texts = read_texts()
    except BadText as problem:
        problems.append(_words(str(problem)))
    following = next_lab(lab_infos)
    return LabList(
        lab_infos,
        here.compiler,
        gpus,
        " ".join(filter(None, [speed_words(here), skipped_words(lab_infos)])),
        None if following is None else following.id,
        (*problems, *bad),
        tuple(text.entry for text in texts),
    )


def hints(lab: str, open_one: bool) -> LabHints:
    """Give the hints that are open, after opening one more if asked for."""
    every = hints_of(_folder(lab))
    store = _store()
    if open_one:
        opened = store.open_hint(lab, len(every))
    else:
        done = store.progress().get(lab)
        opened = 0 if done is None else done.hints
    return LabHints(lab, len(every), tuple(map(plain_math, every[:opened])))


def solution(lab: str) -> LabSolution:
    """Give the reference and its discussion, if they may be shown now.

    Raises:
        LabError: they may not, or can't.
        UnfitFile: the lab can't be read.
        MsgspecError: its description is damaged.
    """
    folder = _folder(lab)
    spec = read_lab(folder / "lab.toml")
    path = submissions_file()
    kept = read_progress(path) if path.exists() else {}
    opened = solution_of(spec, folder, kept.get(lab, Progress()))
    return LabSolution(
        lab,
        opened.file,
        opened.reference,
        plain_math(opened.discussion),
        tuple(LabMistake(mistake.name, mistake.reason) for mistake in opened.mistakes),
    )


def cards(lab: str) -> LabCards:
    """Give how the last submissions went."""
    # it takes NumPy, like the store
    from warpbook_labs.cards.card import card_of

    _folder(lab)
    store = _store()
    submissions = store.newest(lab, _MOST_CARDS)
    newest = None
    if submissions:
        kept = store.submission(submissions[0].submission)
        source = "" if kept is None else kept.source
        newest = card_of(
            submissions[0].result,
            source,
            submissions[0].submission,
            number=store.number_of(submissions[0].submission),
        )
    numbers = {
        submission_id: at for at, submission_id in enumerate(store.submissions(lab), 1)
    }
    marks = tuple(
        _mark(submission, numbers[submission.submission]) for submission in submissions
    )
    return LabCards(lab, marks, newest)


async def open_lab(lab: str, root: Path) -> LabOpened:
    """Have a child put a lab's or a text's files below the root.

    What is there stays as it is.
    """
    text = text_folder(lab)
    folder = _folder(lab) if text is None else text
    name = str(folder) if text is None else lab
    # not in the root, whose files a child would take for modules
    reply = await _child_reply(
        folder.parent, _OpenReply, "open", name, "--folder", str(root / FOLDER)
    )
    return LabOpened(lab, Path(reply.notebook).relative_to(root).as_posix())


def quiz_sheet(name: str) -> QuizSheet:
    """Give the questions of the placement quiz or of a text that can be asked here."""
    quiz = read_quiz(name) if name == PLACEMENT else find_text(name)
    questions, left_out = questions_here(quiz.questions, _listed_labs())
    asked = tuple(
        AskedQuestion(
            question.lab,
            question.ask,
            question.code,
            tuple(choice.text for choice in question.choices),
        )
        for question in questions
    )
    return QuizSheet(quiz.title, asked, left_out_words(left_out))


async def quiz_mark(name: str, question: int, answer: str) -> QuizMark:
    """Have a child ask the engine of a question's lab about an answer."""
    text = () if name == PLACEMENT else ("--text", name)
    reply = await _child_reply(
        CATALOGUE, _MarkReply, "quiz", "--only", str(question), *text, "--", answer
    )
    (mark,) = reply.marks
    return QuizMark(mark.is_right, bounded(mark_words(mark), _MOST_MARK_WORDS))


def quiz_begin(wrong: Collection[int]) -> QuizBegin:
    """Name the lab to begin with.

    Args:
        wrong: the numbers of the placement quiz's questions with no right answer.
    """
    labs_here = _listed_labs()
    questions, _ = questions_here(read_quiz(PLACEMENT).questions, labs_here)
    wrong_labs = {
        question.lab for number, question in enumerate(questions, 1) if number in wrong
    }
    result = placement({question.lab for question in questions}, wrong_labs, labs_here)
    return QuizBegin(result.begin, begin_words(result, labs_here))


def _listed_labs() -> tuple[LabEntry, ...]:
    return overview(look_here(), {})[0]


async def _child_reply(cwd: Path, kind: type[_R], action: str, *arguments: str) -> _R:
    """Give what `warpbook labs ACTION --json` prints.

    Raises:
        LabError: it failed, or took too long.
    """
    ended = await run_command(cwd, _LONGEST_S, action, "--json", *arguments)
    said = ended.stdout
    try:
        reply = msgspec.json.decode(said[said.rfind(b"\n{") + 1 :], type=kind)
    except msgspec.MsgspecError:
        raise LabError(f"The command failed: {ended.last_words}") from None
    if reply.error:
        raise LabError(reply.error)
    return reply


class _Reply(msgspec.Struct):
    """What every command prints that fails."""

    error: str = ""


class _OpenReply(_Reply):
    notebook: str = ""


class _MarkReply(_Reply):
    marks: tuple[Marked, ...] = ()


_R = TypeVar("_R", bound=_Reply)


def _folder(lab: str) -> Path:
    folder = folder_of(lab)
    if folder is None:
        raise LookupError(f"There is no lab {lab!r}.")
    return folder


def _store() -> Store:
    try:
        # it may not be installed, and takes half a second to load
        from warpbook_labs.course.store import Store
    except ImportError as problem:
        raise NotInstalled(
            f"The server's Python lacks what labs need ({problem}): "
            "pip install 'warpbook[labs]'"
        ) from None
    return Store()


def _mark(grading: Grading, number: int) -> LabMark:
    from warpbook_labs.cards.words import failure_text

    result = grading.result
    failed = next((case for case in result.cases if not case.passed), None)
    first = "" if failed is None else f"{failed.about}: {failure_text(failed)}"
    return LabMark(
        grading.submission,
        number,
        float(grading.graded_ms),
        result.status == "passed",
        result.right,
        result.of,
        result.status,
        _words(result.message),
        _words(first),
    )


def _words(text: str) -> str:
    return bounded(text, _MOST_WORDS)


class Ended(Struct, frozen=True):
    """What the command printed, and its exit code."""

    code: int | None
    stdout: bytes
    stderr: bytes

    @property
    def last_words(self) -> str:
        return self.stderr.decode(errors="replace").strip().rpartition("\n")[2]


async def run_command(cwd: Path, longest_s: float, *arguments: str) -> Ended:
    """Run `warpbook labs` with these arguments.

    Raises:
        LabError: it took longer than `longest_s` seconds.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "warpbook.cli.main", "labs"),
        *arguments,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        stdout, stderr = await asyncio.wait_for(child.communicate(), longest_s)
    except asyncio.TimeoutError:
        raise LabError(f"It took more than {longest_s:.0f} s.") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    return Ended(child.returncode, stdout, stderr)
