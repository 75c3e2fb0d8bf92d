"""Courses, and who somebody is in one."""

from __future__ import annotations

import re

from msgspec import Struct, structs
from sqlalchemy import Connection, func, insert, select, update

from warpbook.hub_protocol import AiPolicy
from warpbook_hub import audit
from warpbook_hub.database.tables import (
    COURSES,
    MEMBERSHIPS,
    OPERATORS,
    PEOPLE,
    SECTIONS,
    TEAM_MEMBERS,
    TEAMS,
)
from warpbook_hub.errors import BadRequest, Conflict, NotFound
from warpbook_hub.ids import is_id, new_id
from warpbook_hub.rules.visibility import Viewer
from warpbook_hub.texts import is_fit_name
from warpbook_monitors.plain_text import bounded

MAIN_SECTION = "main"
STAFF_ROLES = ("assistant", "instructor")
MOST_BUDGET_H = 24 * 60
MOST_GRACE_MIN = 24 * 60
_USERNAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")


class Course(Struct, frozen=True):
    """A course and its settings."""

    id: str
    title: str
    #: of each learner, for all labs together
    late_budget_h: int = 0
    #: of each learner or team
    timed_runs_per_hour: int = 6
    #: after a result, for an appeal
    appeal_window_h: int = 24 * 7
    #: after a due or closing date: nobody is late for so long
    grace_min: int = 0
    #: of a learner's total: so many labs with the smallest shares are left out
    drop_lowest: int = 0
    #: of its labs that have none of their own
    ai_policy: AiPolicy = "checking"


class Member(Struct, frozen=True):
    """Somebody of a course."""

    person: str
    username: str
    first_name: str
    last_name: str
    email: str
    role: str
    section: str
    #: empty where they are in none
    team: str
    is_hidden: bool


_COURSE_COLUMNS = tuple(COURSES.c[name] for name in Course.__struct_fields__)


def create_course(
    connection: Connection, now_ms: int, actor: str, course: Course
) -> None:
    """Begin a course, with a section called `main`.

    Raises:
        BadRequest: its id or a setting can't be used.
        Conflict: there is one of this id.
    """
    _check(course)
    exists = select(COURSES.c.id).where(COURSES.c.id == course.id)
    if connection.execute(exists).first() is not None:
        raise Conflict(f"There is a course `{course.id}` already.")
    row = structs.asdict(course)
    connection.execute(insert(COURSES).values(**row, created_ms=now_ms, paused=""))
    section_id(connection, course.id, MAIN_SECTION)
    audit.note(connection, now_ms, actor, "course created", course.id, row)


def change_course(
    connection: Connection, now_ms: int, actor: str, course: Course
) -> None:
    """Give a course other settings.

    Raises:
        NotFound: there is none of this id.
    """
    _check(course)
    row = structs.asdict(course)
    changed = connection.execute(
        update(COURSES).where(COURSES.c.id == course.id).values(**row)
    )
    if not changed.rowcount:
        raise _no_course(course.id)
    audit.note(connection, now_ms, actor, "course changed", course.id, row)


def courses(connection: Connection) -> list[Course]:
    query = select(*_COURSE_COLUMNS).order_by(COURSES.c.created_ms, COURSES.c.id)
    return [Course(**row) for row in connection.execute(query).mappings()]


def course(connection: Connection, course_id: str) -> Course:
    """Give a course.

    Raises:
        NotFound: there is none of this id.
    """
    query = select(*_COURSE_COLUMNS).where(COURSES.c.id == course_id)
    row = connection.execute(query).mappings().first()
    if row is None:
        raise _no_course(course_id)
    return Course(**row)


def viewer(connection: Connection, course_id: str, username: str) -> Viewer:
    """Tell who somebody is in a course.

    Raises:
        NotFound: they are not of the course.
    """
    query = (
        select(
            MEMBERSHIPS.c.person,
            MEMBERSHIPS.c.role,
            MEMBERSHIPS.c.section,
            MEMBERSHIPS.c.hidden_ms,
        )
        .join(PEOPLE, PEOPLE.c.id == MEMBERSHIPS.c.person)
        .where(MEMBERSHIPS.c.course == course_id, PEOPLE.c.username == username)
    )
    row = connection.execute(query).first()
    if row is None:
        raise NotFound(f"You are not a member of the course `{bounded(course_id)}`.")
    return Viewer(row.person, row.role, row.section, row.hidden_ms is not None)


def person_of(connection: Connection, username: str) -> str:
    """Give the id of a person.

    Raises:
        NotFound: nobody has this name.
    """
    query = select(PEOPLE.c.id).where(PEOPLE.c.username == username)
    person = connection.execute(query).scalar()
    if person is None:
        raise NotFound(f"Nobody is called `{bounded(username)}` here.")
    return str(person)


def members(connection: Connection, course_id: str, section: str = "") -> list[Member]:
    """Give everybody of a course, or of a section; also those who are hidden."""
    query = (
        select(
            PEOPLE.c.id,
            PEOPLE.c.username,
            MEMBERSHIPS.c.first_name,
            MEMBERSHIPS.c.last_name,
            MEMBERSHIPS.c.email,
            MEMBERSHIPS.c.role,
            SECTIONS.c.name.label("section"),
            func.coalesce(TEAMS.c.name, "").label("team"),
            MEMBERSHIPS.c.hidden_ms,
        )
        .join(MEMBERSHIPS, MEMBERSHIPS.c.person == PEOPLE.c.id)
        .join(SECTIONS, SECTIONS.c.id == MEMBERSHIPS.c.section)
        .outerjoin(
            TEAM_MEMBERS,
            (TEAM_MEMBERS.c.person == PEOPLE.c.id)
            & (TEAM_MEMBERS.c.course == MEMBERSHIPS.c.course),
        )
        .outerjoin(TEAMS, TEAMS.c.id == TEAM_MEMBERS.c.team)
        .where(MEMBERSHIPS.c.course == course_id)
        .order_by(MEMBERSHIPS.c.last_name, MEMBERSHIPS.c.first_name, PEOPLE.c.username)
    )
    if section:
        query = query.where(SECTIONS.c.name == section)
    return [
        Member(*row[:-1], is_hidden=row.hidden_ms is not None)
        for row in connection.execute(query)
    ]


def add_staff(
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    username: str,
    role: str,
    section: str = "main",
) -> str:
    """Make somebody an instructor or assistant, who may be on no roster.

    Twice changes nothing.

    Returns:
        The id of the person.

    Raises:
        BadRequest: the role or the name can't be used.
        NotFound: there is no such course or section.
        Conflict: the course would have no instructor.
    """
    if role not in STAFF_ROLES:
        raise BadRequest(f"A role is one of: {', '.join(STAFF_ROLES)}.")
    name = fit_username(username)
    course(connection, course_id)
    at = section_id(connection, course_id, section, may_begin=False)
    person = ensure_person(connection, now_ms, name)
    key = (MEMBERSHIPS.c.course == course_id) & (MEMBERSHIPS.c.person == person)
    before = connection.execute(select(MEMBERSHIPS).where(key)).first()
    if before is None:
        row = {"course": course_id, "person": person, "section": at, "role": role}
        connection.execute(insert(MEMBERSHIPS).values(**row))
    elif (before.role, before.section, before.hidden_ms) != (role, at, None):
        if role != "instructor":
            check_other_instructor(connection, course_id, person)
        change = update(MEMBERSHIPS).where(key)
        values = {"role": role, "section": at, "hidden_ms": None, "removed_ms": None}
        connection.execute(change.values(**values))
    else:
        return person
    detail = {"course": course_id, "role": role, "section": at}
    audit.note(connection, now_ms, actor, "staff added", person, detail, course_id)
    return person


def staff_names(connection: Connection) -> frozenset[str]:
    """Give the user names of the hub's operators and of all courses' staff."""
    staff = select(MEMBERSHIPS.c.person).where(
        MEMBERSHIPS.c.role.in_(STAFF_ROLES), MEMBERSHIPS.c.hidden_ms.is_(None)
    )
    people = PEOPLE.c.id.in_(staff.union(select(OPERATORS.c.person)))
    query = select(PEOPLE.c.username).where(people)
    return frozenset(connection.execute(query).scalars())


def staff_members(connection: Connection) -> frozenset[tuple[str, str]]:
    """Give all instructors and assistants, as ids of course and person."""
    query = select(MEMBERSHIPS.c.course, MEMBERSHIPS.c.person).where(
        MEMBERSHIPS.c.role.in_(STAFF_ROLES), MEMBERSHIPS.c.hidden_ms.is_(None)
    )
    return frozenset((row.course, row.person) for row in connection.execute(query))


def remove_staff(
    connection: Connection, now_ms: int, actor: str, course_id: str, person: str
) -> None:
    """Take a role away from somebody: they see what they submitted, and no more.

    Raises:
        Conflict: they are not staff, or the only instructor.
    """
    key = (MEMBERSHIPS.c.course == course_id) & (MEMBERSHIPS.c.person == person)
    role = connection.execute(select(MEMBERSHIPS.c.role).where(key)).scalar()
    if role not in STAFF_ROLES:
        raise Conflict("This person is not staff of the course.")
    check_other_instructor(connection, course_id, person)
    values = {"role": "learner", "hidden_ms": now_ms, "removed_ms": now_ms}
    connection.execute(update(MEMBERSHIPS).where(key).values(**values))
    detail = {"course": course_id, "role": role}
    audit.note(connection, now_ms, actor, "staff removed", person, detail, course_id)


def check_other_instructor(connection: Connection, course_id: str, person: str) -> None:
    """Refuse to take the only instructor from a course.

    Raises:
        Conflict: the person is the only one.
    """
    query = select(MEMBERSHIPS.c.person).where(
        MEMBERSHIPS.c.course == course_id,
        MEMBERSHIPS.c.role == "instructor",
        MEMBERSHIPS.c.hidden_ms.is_(None),
    )
    if connection.execute(query).scalars().all() == [person]:
        raise Conflict("A course keeps an instructor: add another one first.")


def fit_username(text: str) -> str:
    """Give a user name as the hub's log-in has it: in small letters.

    Raises:
        BadRequest: it can't be one.
    """
    name = text.strip().lower()
    if _USERNAME.fullmatch(name) is None:
        raise BadRequest(
            f"`{bounded(text, 64)}` can't be a user name: it has 1 to 64 letters, "
            "digits, and . _ - @ +, and begins with a letter or digit."
        )
    return name


def ensure_person(connection: Connection, now_ms: int, username: str) -> str:
    """Give the id of a person, who is added if nobody has the name."""
    query = select(PEOPLE.c.id).where(PEOPLE.c.username == username)
    person = connection.execute(query).scalar()
    if person is None:
        person = new_id()
        row = {"id": person, "username": username, "created_ms": now_ms}
        connection.execute(insert(PEOPLE).values(**row))
    return str(person)


def section_id(
    connection: Connection, course_id: str, name: str, may_begin: bool = True
) -> str:
    """Give the id of a section, which is begun where there is none.

    Raises:
        NotFound: there is none, and none may be begun.
    """
    query = select(SECTIONS.c.id).where(
        SECTIONS.c.course == course_id, SECTIONS.c.name == name
    )
    section = connection.execute(query).scalar()
    if section is not None:
        return str(section)
    if not may_begin:
        raise NotFound(f"There is no section `{bounded(name)}` in this course.")
    begun = new_id()
    row = {"id": begun, "course": course_id, "name": name}
    connection.execute(insert(SECTIONS).values(**row))
    return begun


def _check(course: Course) -> None:
    if not is_id(course.id):
        raise BadRequest(
            "The id of a course has 1 to 64 small letters, digits and . _ - in it."
        )
    if not course.title.strip() or not is_fit_name(course.title):
        raise BadRequest("The title of a course is one line of up to 100 characters.")
    if not 0 <= course.late_budget_h <= MOST_BUDGET_H:
        raise BadRequest(f"The late budget is 0 to {MOST_BUDGET_H} hours.")
    if not 0 <= course.grace_min <= MOST_GRACE_MIN:
        raise BadRequest(f"The grace period is 0 to {MOST_GRACE_MIN} minutes.")
    if not 1 <= course.timed_runs_per_hour <= 3600:
        raise BadRequest("Timed runs per hour: 1 to 3600.")
    if not 0 <= course.appeal_window_h <= 24 * 366:
        raise BadRequest("The window for appeals is 0 hours to a year.")


def _no_course(course_id: str) -> NotFound:
    return NotFound(f"There is no course `{bounded(course_id)}`.")
