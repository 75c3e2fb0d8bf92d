"""Takes over a course of nbgrader: its roster, and the marks of its assignments.

An assignment becomes a lab to which nothing is handed in. Its marks are decisions of
who imports it: nothing here runs the tests of a notebook.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from typing import NamedTuple

from msgspec import structs
from sqlalchemy import Connection

from warpbook_hub import audit
from warpbook_hub.course.courses import fit_username, members
from warpbook_hub.course.mark_settings import put_hidden
from warpbook_hub.course.nbgrader_course import (
    NbgraderAssignment,
    NbgraderChanges,
    NbgraderCourse,
    NbgraderLab,
    NbgraderMark,
    NbgraderStudent,
)
from warpbook_hub.course.publications import (
    NBGRADER,
    Publication,
    publications,
    put_publication,
)
from warpbook_hub.course.roster import put_roster
from warpbook_hub.course.roster_csv import RosterRow
from warpbook_hub.errors import BadRequest
from warpbook_hub.rules.lateness import Window
from warpbook_hub.rules.points import MOST_POINTS, PointScheme, Threshold
from warpbook_hub.texts import is_fit_name, reason_of
from warpbook_hub.work.decisions import Override, decide_all, last_decisions
from warpbook_monitors.plain_text import bounded

#: what the reason of an imported mark begins with
FROM_NBGRADER = "From nbgrader: "
_MOST_EXAMPLES = 10
_MOST_LEFT_OUT = 50
_SLUG = 25


def import_nbgrader(
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    given: NbgraderCourse,
) -> NbgraderChanges:
    """Bring a course to what a gradebook says; twice changes nothing the second time.

    Nobody is taken off the roster. A new lab's marks are hidden from learners. A mark
    that was given here is kept, unless `given.replaces` says otherwise.

    Raises:
        NotFound: there is no such course.
    """
    rows, left_out = _rows(given.students)
    roster = put_roster(connection, now_ms, course_id, [*rows.values()], hides=False)
    learners = {
        member.username: member.person
        for member in members(connection, course_id)
        if member.role == "learner"
    }
    people = {
        student: learners[row.username]
        for student, row in rows.items()
        if row.username in learners
    }
    left_out += [
        f"{row.username}: staff here, so no marks"
        for row in rows.values()
        if row.username not in learners
    ]
    there = {lab.lab: lab for lab in publications(connection, course_id)}
    into = _Import(connection, now_ms, actor, course_id, people, given.replaces)
    labs = tuple(_imported(into, there, one) for one in given.assignments)
    counts = {**roster.counts, "marks": sum(lab.written for lab in labs)}
    changed = [lab.name for lab in labs if lab.how in ("new", "changed")]
    if changed or any(counts.values()):
        detail = {**counts, "labs": changed}
        audit.note(connection, now_ms, actor, "nbgrader imported", course_id, detail)
    return NbgraderChanges(roster, labs, _first(left_out, _MOST_LEFT_OUT))


class _Import(NamedTuple):
    connection: Connection
    now_ms: int
    actor: str
    course: str
    #: by the id of nbgrader
    people: Mapping[str, str]
    replaces: bool


def _rows(
    students: Sequence[NbgraderStudent],
) -> tuple[dict[str, RosterRow], list[str]]:
    """Return those who can be on a roster, by id, and why others can't."""
    rows: dict[str, RosterRow] = {}
    left_out = []
    for line, student in enumerate(students, 1):
        names = student.first_name, student.last_name, student.email
        try:
            username = fit_username(student.id)
        except BadRequest as problem:
            left_out.append(str(problem))
            continue
        if not all(name is None or is_fit_name(name) for name in names):
            left_out.append(f"{username}: a name is too long, or can't be shown")
        else:
            rows[student.id] = RosterRow(line, username, *names)
    counts = Counter(row.username for row in rows.values())
    doubles = [name for name, count in counts.items() if count > 1]
    left_out += [f"{name}: user name of several students" for name in doubles]
    fit = {id: row for id, row in rows.items() if row.username not in doubles}
    return fit, left_out


def _imported(
    into: _Import, there: Mapping[str, Publication], given: NbgraderAssignment
) -> NbgraderLab:
    lab_id = _lab_id(given.name)
    before = there.get(lab_id)
    problem = _problem(into.now_ms, before, given)
    name = bounded(given.name, 100)
    if problem:
        return NbgraderLab(name, "refused", problem, given.most_points)
    due_ms = given.due_ms or (before and _due_ms(before)) or given.last_ms
    due_ms = min(due_ms or into.now_ms, into.now_ms)
    lab = Publication(
        into.course,
        lab_id,
        given.name.strip(),
        NBGRADER,
        False,
        # nobody hands in here: it opens as it is due
        {"": Window(due_ms - 1, due_ms, due_ms)},
        PointScheme((Threshold("right", 1.0, given.most_points),)),
    )
    if before is not None and (before.title, before.scheme, _due_ms(before)) == (
        lab.title,
        lab.scheme,
        due_ms,
    ):
        how, named = "unchanged", before.id
    else:
        how = "new" if before is None else "changed"
        named, _ = put_publication(into.connection, into.now_ms, lab)
        if before is None:
            put_hidden(into.connection, into.now_ms, named, True)
    told = NbgraderLab(name, how, given.about, given.most_points)
    return _with_marks(into, named, given.marks, told)


def _problem(now_ms: int, before: Publication | None, given: NbgraderAssignment) -> str:
    """Say why an assignment can't be imported; empty if it can."""
    if given.problem:
        return given.problem
    if not given.name.strip() or not is_fit_name(given.name):
        return "its name has more than 100 characters, or some that can't be shown"
    if not 0 < given.most_points <= MOST_POINTS:
        return f"its points are not above 0 and at most {MOST_POINTS:,}"
    if given.due_ms is not None and given.due_ms >= now_ms:
        due = datetime.fromtimestamp(given.due_ms / 1000, timezone.utc)
        return f"it is due {due:%Y-%m-%d %H:%M} UTC: import it again after that"
    if before is not None and before.is_withdrawn:
        return "it was withdrawn here"
    if before is not None and before.takes_submissions:
        return "another lab is published here by its id"
    return ""


def _due_ms(lab: Publication) -> int:
    """Return when it is due as it was given: an outage may have moved it since."""
    window = lab.windows[""]
    return window.due_ms - window.extended_ms


def _lab_id(name: str) -> str:
    """Write a name as the id of a lab; other names have other ids."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_SLUG].strip("-")
    if slug == name:
        return f"{NBGRADER}-{slug}"
    digest = sha256(name.encode(errors="replace")).hexdigest()[:5]
    return "-".join(part for part in (NBGRADER, slug, digest) if part)


def _with_marks(
    into: _Import,
    publication_id: str,
    marks: Mapping[str, NbgraderMark],
    told: NbgraderLab,
) -> NbgraderLab:
    last = last_decisions(into.connection, publication_id)
    decided: dict[str, Override] = {}
    written, kept = [], []
    unchanged = 0
    for student, mark in marks.items():
        person = into.people.get(student)
        if person is None:
            continue
        before = last.get(person)
        reason = reason_of(FROM_NBGRADER + (mark.note or "no more is known"))
        points = f"{bounded(student, 64)} {mark.points:g}"
        if before is not None:
            if (before.points, before.reason) == (mark.points, reason):
                unchanged += 1
                continue
            is_ours = before.reason.startswith(FROM_NBGRADER)
            has = "excused" if before.is_excused else _points(before.points)
            if not is_ours and not into.replaces:
                kept.append(f"{points}, kept as it was given here: {has}")
                continue
            points += f" (before: {has})"
        written.append(points)
        decided[person] = Override(mark.points, False, reason, into.actor, into.now_ms)
    decide_all(into.connection, publication_id, decided)
    return structs.replace(
        told,
        written=len(written),
        unchanged=unchanged,
        kept=len(kept),
        examples=tuple([*kept[:_MOST_EXAMPLES], *written[:_MOST_EXAMPLES]]),
    )


def _points(points: float | None) -> str:
    return "no points" if points is None else f"{points:g}"


def _first(words: Sequence[str], most: int) -> tuple[str, ...]:
    more = len(words) - most
    return (*words[:most], *([f"and {more:,} more"] if more > 0 else []))
