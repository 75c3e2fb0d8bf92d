"""Who may ask for what: the level of each route, and whose the ids in a path must be.

Two things must agree: what a token may be used for (the hub's custom scopes), and who
the person is in the course (the database). A path names a course first; any other id in
it must belong to that course, and to somebody whom the person may see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, structs
from sqlalchemy import Connection, select

from warpbook_hub.course.courses import course, viewer
from warpbook_hub.course.operators import operator
from warpbook_hub.course.publications import Publication, publication
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import APPEALS, JOBS, MEMBERSHIPS
from warpbook_hub.errors import Forbidden, NotFound
from warpbook_hub.rules.visibility import Viewer, may_decide, may_see_lab, may_see_work
from warpbook_hub.scopes import ASSIST, OPERATE, SCOPES, TEACH
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.work.submissions import Submission, sections_of, submission

#: "person": anybody who is logged in; "operator": of the hub; the rest: of the course
Level = Literal["person", "operator", "member", "staff", "instructor"]


class Identity(Struct, frozen=True):
    """Who the hub says that somebody is."""

    username: str
    scopes: frozenset[str]

    @property
    def may_teach(self) -> bool:
        """Whether the token may be used to run a course."""
        return TEACH in self.scopes

    @property
    def may_operate(self) -> bool:
        """Whether the token may be used to operate the hub."""
        return OPERATE in self.scopes

    @property
    def may_assist(self) -> bool:
        """Whether the token may be used to look after a section."""
        return self.may_teach or ASSIST in self.scopes


def identity_of(model: Mapping[str, Any]) -> Identity | None:
    """Read the hub's answer about a token; None where it opens nothing here."""
    scopes = frozenset(model.get("scopes") or ())
    is_person = model.get("kind", "user") == "user"
    if not is_person or not scopes & set(SCOPES):
        return None
    return Identity(str(model["name"]).lower(), scopes)


def admit(
    connection: Connection,
    now_ms: int,
    identity: Identity,
    level: Level,
    ids: Mapping[str, str],
) -> Admitted:
    """Let a request in, with all that its path names.

    Args:
        connection: of the transaction in which the request is done.
        identity: who asks.
        level: of the route.
        ids: of the path: `course`, and what belongs to it.

    Raises:
        NotFound: there is no such thing, or the person may not know of it.
        Forbidden: they may know of it, and not do this.
    """
    operator_id = ""
    if identity.may_operate:
        operator_id = operator(connection, identity.username)
    if level == "operator" and not operator_id:
        raise Forbidden(
            "This is for who operates the hub: whom its start names as --operator; of "
            "a learning platform's people with their id there, as NAME=ID."
        )
    if level in ("person", "operator"):
        return Admitted(
            connection,
            now_ms,
            identity.username,
            operator=operator_id,
            job=ids.get("job", ""),
            grader=ids.get("grader", ""),
        )
    who = _as_allowed(viewer(connection, ids["course"], identity.username), identity)
    _check_level(who, level)
    lab, work = None, None
    if "lab" in ids:
        lab = _lab(connection, now_ms, ids["course"], ids["lab"], who)
    if "job" in ids:
        work = _work(connection, ids["course"], _of_job(connection, ids["job"]), who)
    if "appeal" in ids:
        job = _job_of_appeal(connection, ids["appeal"])
        work = _work(connection, ids["course"], _of_job(connection, job), who)
    if "submission" in ids:
        work = _work(connection, ids["course"], ids["submission"], who)
    if "person" in ids:
        _check_person(connection, ids["course"], ids["person"], who)
    if work is not None and lab is None:
        lab = publication(connection, work.publication)
    return Admitted(
        connection,
        now_ms,
        identity.username,
        course(connection, ids["course"]),
        who,
        lab,
        work,
        ids.get("person", ""),
        ids.get("job", ""),
        ids.get("appeal", ""),
        operator=operator_id,
        section=ids.get("section", ""),
    )


def _as_allowed(who: Viewer, identity: Identity) -> Viewer:
    """Give somebody no more than their token is for."""
    if who.role == "instructor" and not identity.may_teach:
        who = structs.replace(who, role="assistant")
    if who.role == "assistant" and not identity.may_assist:
        who = structs.replace(who, role="learner")
    return who


def _check_level(who: Viewer, level: Level) -> None:
    if level == "member":
        return
    if who.is_hidden or who.role == "learner":
        raise Forbidden("This is for the staff of the course.")
    if level == "instructor" and who.role != "instructor":
        raise Forbidden("This is for instructors of the course.")


def _lab(
    connection: Connection, now_ms: int, course_id: str, lab_id: str, who: Viewer
) -> Publication:
    lab = publication(connection, lab_id)
    window = window_of(connection, lab_id, who.person)
    if lab.course != course_id or not may_see_lab(who, window, now_ms):
        raise NotFound("There is no such lab in this course.")
    return lab


def _work(
    connection: Connection, course_id: str, submission_id: str, who: Viewer
) -> Submission:
    work = submission(connection, submission_id)
    of_course = publication(connection, work.publication).course == course_id
    sections = sections_of(connection, [submission_id])[submission_id]
    if not of_course or not may_see_work(who, work.members, sections):
        raise NotFound("There is no such submission.")
    return work


def _of_job(connection: Connection, job: str) -> str:
    query = select(JOBS.c.submission).where(JOBS.c.id == job)
    named = connection.execute(query).scalar()
    if named is None:
        raise NotFound("There is no such job.")
    return str(named)


def _job_of_appeal(connection: Connection, appeal: str) -> str:
    query = select(APPEALS.c.job).where(APPEALS.c.id == appeal)
    job = connection.execute(query).scalar()
    if job is None:
        raise NotFound("There is no such appeal.")
    return str(job)


def _check_person(
    connection: Connection, course_id: str, person: str, who: Viewer
) -> None:
    query = select(MEMBERSHIPS.c.section).where(
        MEMBERSHIPS.c.course == course_id, MEMBERSHIPS.c.person == person
    )
    section = connection.execute(query).scalar()
    if section is None or not (who.person == person or may_decide(who, section)):
        raise NotFound("There is no such person in this course.")
