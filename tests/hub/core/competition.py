"""What the tests of competitions do in a course."""

from __future__ import annotations

from tests.hub.core.course import DUE_MS, Classroom, timed
from warpbook.hub_protocol import JobOrder
from warpbook_hub.competition import contests, entries, finals
from warpbook_hub.competition.board import Board, board
from warpbook_hub.course.courses import viewer
from warpbook_hub.course.publications import publication
from warpbook_hub.rules.lateness import HOUR_MS

FREEZE_MS = DUE_MS - 24 * HOUR_MS
GPUS = ("GPU-one-0", "GPU-one-1")
NAMES = {"ada": "Warp Nine", "bob": "bank conflict", "cyd": "Ñandú 3"}


def open_board(room: Classroom, *names: str) -> None:
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        contests.open_competition(connection, room.now_ms, room.instructor, lab)
    for name in names:
        join(room, name, NAMES[name])


def join(room: Classroom, name: str, pseudonym: str) -> str:
    with room.database.write() as connection:
        lab, person = publication(connection, room.lab), room.people[name]
        return entries.join(connection, room.now_ms, lab, person, pseudonym)


def leave(room: Classroom, name: str) -> None:
    with room.database.write() as connection:
        entries.leave(connection, room.lab, room.people[name])


def shown(room: Classroom, name: str) -> Board:
    with room.database.read() as connection:
        competition = contests.require(connection, room.lab)
        who = viewer(connection, "gpu101", name)
        return board(connection, room.now_ms, "gpu101", competition, who)


def ranks(room: Classroom, name: str) -> list[tuple[int, str]]:
    return [(entry.rank, entry.pseudonym) for entry in shown(room, name).entries]


def race(room: Classroom, grader: str, name: str, middle: float) -> str:
    """Hand in, and have a GPU time it."""
    submission = room.submit(name, f"// {middle}").submission
    room.grade(grader)
    room.grade(grader, timed(middle), GPUS[0])
    return submission


def start_final(room: Classroom, grader: str, rounds: int = 3) -> finals.Final:
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        where = (lab, grader, GPUS[0], rounds)
        return finals.start_final(connection, room.now_ms, room.instructor, *where)


def end(room: Classroom) -> None:
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        contests.end_competition(connection, room.now_ms, room.instructor, lab)


def speed_of(order: JobOrder) -> float:
    """What the source itself says that it reaches."""
    return float(order.source.removeprefix("// "))
