"""A course begun anew for another term: its labs, rules and staff, with other dates."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct, structs
from sqlalchemy import Connection, select, update

from warpbook_hub import audit
from warpbook_hub.course.courses import (
    STAFF_ROLES,
    add_staff,
    course,
    create_course,
    members,
    section_id,
)
from warpbook_hub.course.publications import publications, publish
from warpbook_hub.database.tables import PUBLICATIONS, SECTIONS, WINDOWS
from warpbook_hub.errors import BadRequest
from warpbook_hub.rules.lateness import Window
from warpbook_monitors.plain_text import bounded

MOST_DAYS = 3660
#: rules of a lab that `publish` does not set
_RULES = ("rubric", "weight", "is_bonus")


class Term(Struct, frozen=True):
    """The course that is begun."""

    id: str
    title: str
    #: by which all dates move; a whole number of weeks keeps the days of the week
    days: int
    #: in which a date keeps its time of day, such as Europe/Zurich
    zone: str


class TermCopy(Struct, frozen=True):
    """What was begun, or would be."""

    course: str
    #: each with its new dates
    labs: tuple[str, ...]
    sections: tuple[str, ...]
    staff: tuple[str, ...]


def copy_course(
    connection: Connection, now_ms: int, actor: str, course_id: str, term: Term
) -> TermCopy:
    """Begin a course like another: no learners, no teams, nothing that they did.

    A lab is taken in its version of today, and shows marks. A lab that was withdrawn is
    left out, and so are marks that came from nbgrader.

    Raises:
        BadRequest: the id, the title, the zone or a date can't be used.
        Conflict: there is a course of this id.
    """
    zone = _zone(term.zone)
    if not -MOST_DAYS <= term.days <= MOST_DAYS:
        raise BadRequest(f"Dates move by {MOST_DAYS} days at most.")
    settings = structs.replace(
        course(connection, course_id), id=term.id, title=term.title
    )
    create_course(connection, now_ms, actor, settings)
    query = select(SECTIONS.c.id, SECTIONS.c.name).order_by(SECTIONS.c.name)
    rows = connection.execute(query.where(SECTIONS.c.course == course_id)).all()
    sections = {row.id: row.name for row in rows}
    for name in sections.values():
        section_id(connection, term.id, name)
    labs = []
    for lab in publications(connection, course_id):
        if lab.is_withdrawn or not lab.takes_submissions:
            continue
        # as they were given: what an outage moved is not moved again
        windows = {
            sections.get(row.section, ""): Window(
                _moved_ms(row.opens_ms, term.days, zone),
                _moved_ms(row.due_ms, term.days, zone),
                _moved_ms(row.closes_ms, term.days, zone),
            )
            for row in connection.execute(
                select(WINDOWS).where(WINDOWS.c.publication == lab.id)
            )
        }
        copied = structs.replace(
            lab, course=term.id, windows=windows, lab_digest="", id="", is_hidden=False
        )
        named = publish(connection, now_ms, actor, copied)
        rules = connection.execute(
            select(*(PUBLICATIONS.c[name] for name in _RULES)).where(
                PUBLICATIONS.c.id == lab.id
            )
        ).one()
        of = update(PUBLICATIONS).where(PUBLICATIONS.c.id == named)
        connection.execute(of.values(**rules._asdict()))
        labs.append(f"{lab.title}: {_dates(windows, zone)}")
    staff = []
    for member in members(connection, course_id):
        if member.role in STAFF_ROLES and not member.is_hidden:
            who = (member.username, member.role, member.section)
            add_staff(connection, now_ms, actor, term.id, *who)
            staff.append(f"{member.username}, {member.role}")
    detail = {"from": course_id, "days": term.days, "zone": term.zone}
    audit.note(connection, now_ms, actor, "course copied", term.id, detail)
    return TermCopy(term.id, tuple(labs), tuple(sections.values()), tuple(staff))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadRequest(f"The hub knows no time zone `{bounded(name, 64)}`.") from None


def _moved_ms(time_ms: int, days: int, zone: ZoneInfo) -> int:
    """Return the same time of day some days later, whatever summer time does."""
    try:
        local = datetime.fromtimestamp(time_ms // 1000, zone)
        moved = local.replace(tzinfo=None) + timedelta(days=days)
        return int(moved.replace(tzinfo=zone).timestamp()) * 1000 + time_ms % 1000
    except (OverflowError, ValueError, OSError):
        raise BadRequest("A date would be before 1970 or after 2199.") from None


def _dates(windows: dict[str, Window], zone: ZoneInfo) -> str:
    return "; ".join(
        (f"{name} " if name else "")
        + "–".join(
            f"{datetime.fromtimestamp(at // 1000, zone):%Y-%m-%d %H:%M}"
            for at in (window.opens_ms, window.due_ms)
        )
        for name, window in sorted(windows.items())
    )
