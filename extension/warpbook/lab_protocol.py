"""What the server answers about labs and a hub's courses, as it goes over HTTP."""

from __future__ import annotations

from msgspec import Struct

from warpbook_labs.cards.model import Card
from warpbook_labs.lab.entries import LabEntry, TextEntry


class LabList(Struct, frozen=True):
    """Answer of `GET .../api/v1/labs`: all labs, and what is here to check them."""

    labs: tuple[LabEntry, ...]
    #: NVRTC's version; None where it can't be loaded
    compiler: str | None
    gpus: int
    #: what holds for all labs here, said once; empty if nothing is left out
    notice: str = ""
    #: the id of the lab that comes next; None once all are passed, or if not known
    next_lab: str | None = None
    #: in words: what can't be read, and what to install
    problems: tuple[str, ...] = ()
    #: what labs can't run, to read
    texts: tuple[TextEntry, ...] = ()


class CourseLab(Struct, frozen=True):
    """A lab that a course has published, as the person of this server sees it."""

    #: its name in the catalogue
    lab: str
    title: str
    #: of its page: a path on the hub's host, or an address of its own host
    url: str
    is_open: bool
    #: None for staff who are in no section
    due_ms: float | None
    #: the state of its mark; None of points unless it is "graded"
    mark: str
    points: float | None
    most_points: float
    attempts: int
    #: None: as many as one likes
    attempts_left: int | None


class OwnCourse(Struct, frozen=True):
    """A course of the person of this server."""

    title: str
    #: "learner", "assistant" or "instructor"
    role: str
    #: of its page: a path on the hub's host, or an address of its own host
    url: str
    labs: tuple[CourseLab, ...]


class CourseList(Struct, frozen=True):
    """Answer of `GET .../api/v1/courses`: what the hub's courses publish."""

    #: none where no course service started this server
    courses: tuple[OwnCourse, ...]
    #: the name of the lab that comes next in them; None where none is left to hand in
    next_lab: str | None = None
    #: why the hub does not tell, in words
    problem: str = ""


class LabOpened(Struct, frozen=True):
    """Answer of `POST .../api/v1/labs/LAB/open`, of a lab or a text."""

    lab: str
    #: of its notebook, below the folder that the server shows
    path: str


class LabHints(Struct, frozen=True):
    """Answer of `GET` and `POST .../api/v1/labs/LAB/hints`."""

    lab: str
    #: how many there are
    of: int
    #: those that are open
    hints: tuple[str, ...]


class LabMistake(Struct, frozen=True):
    """What often goes wrong in a lab."""

    name: str
    reason: str


class LabSolution(Struct, frozen=True):
    """Answer of `GET .../api/v1/labs/LAB/solution`: the reference, discussed."""

    lab: str
    #: of the lab's language, such as "kernel.cu"
    file: str
    reference: str
    #: paragraphs with a blank line between them; formulas are plain text
    discussion: str
    mistakes: tuple[LabMistake, ...]


class LabMark(Struct, frozen=True):
    """How one submission went, in short."""

    submission: int
    #: among the lab's own, from 1
    number: int
    graded_ms: float
    passed: bool
    right: int
    of: int
    #: in words
    status: str
    message: str
    #: of those that fail, what the first was; empty if none does
    first_failure: str


class LabCards(Struct, frozen=True):
    """Answer of `GET .../api/v1/labs/LAB/cards`: the newest first."""

    lab: str
    cards: tuple[LabMark, ...]
    #: of the newest, all that is shown of it; None where nothing was handed in
    newest: Card | None


class AskedQuestion(Struct, frozen=True):
    """A question of a quiz, as a person sees it."""

    #: the id of the lab that teaches it
    lab: str
    ask: str
    #: with a gap for the choice; empty if there is none
    code: str
    #: their letters are "a", "b", and so on
    choices: tuple[str, ...]


class QuizSheet(Struct, frozen=True):
    """Answer of `GET .../api/v1/quizzes/NAME`: what can be asked here."""

    title: str
    questions: tuple[AskedQuestion, ...]
    #: which questions are left out, and why; empty if none is
    notice: str


class QuizMark(Struct, frozen=True):
    """Answer of `GET .../api/v1/quizzes/NAME/mark`: how one question was answered."""

    is_right: bool
    words: str


class QuizBegin(Struct, frozen=True):
    """Answer of `GET .../api/v1/quizzes/placement/begin`: the lab to begin with."""

    lab: str
    words: str
