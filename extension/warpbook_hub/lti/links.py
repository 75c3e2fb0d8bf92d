"""Which course of the platform is which here, and who is who."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from sqlalchemy import Connection, delete, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.courses import (
    STAFF_ROLES,
    add_staff,
    fit_username,
    staff_names,
    viewer,
)
from warpbook_hub.course.operators import operator_subject
from warpbook_hub.course.publications import publications
from warpbook_hub.course.roster import add_learner, import_roster
from warpbook_hub.course.roster_csv import RosterRow
from warpbook_hub.database.tables import (
    LTI_CONTEXTS,
    LTI_LINE_ITEMS,
    LTI_PEOPLE,
    LTI_SCORES,
    MEMBERSHIPS,
    PEOPLE,
)
from warpbook_hub.errors import BadRequest, Conflict, Forbidden, NotFound
from warpbook_hub.lti.platform import Launch, PlatformMember

#: of what is noted of a launch or a roster
ACTOR = "platform"


class Untied(Conflict):
    """A course belongs to another course of a platform than before, or to none."""


class Context(Struct, frozen=True):
    """The course of the platform that a course here belongs to."""

    course: str
    issuer: str
    context: str
    title: str
    memberships_url: str
    line_items_url: str
    bound_ms: int
    #: when its members were asked for last
    asked_ms: int | None
    #: what came of it
    note: str


def contexts(connection: Connection, issuer: str) -> list[Context]:
    """Give all courses that belong to one of a platform."""
    of_platform = select(LTI_CONTEXTS).where(LTI_CONTEXTS.c.issuer == issuer)
    query = of_platform.order_by(LTI_CONTEXTS.c.course)
    return [Context(**row) for row in connection.execute(query).mappings()]


def context_of(connection: Connection, course_id: str) -> Context | None:
    """Give the platform's course that a course belongs to."""
    query = select(LTI_CONTEXTS).where(LTI_CONTEXTS.c.course == course_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else Context(**row)


def bound_context(connection: Connection, course_id: str) -> Context:
    """Give it, where there must be one.

    Raises:
        Conflict: the course belongs to none.
    """
    context = context_of(connection, course_id)
    if context is None:
        raise Conflict("This course belongs to no course of a platform.")
    return context


def check_bound(connection: Connection, context: Context) -> None:
    """See that a course still belongs to a platform's, since the same launch.

    Raises:
        Untied: it was untied.
    """
    bound = context_of(connection, context.course)
    if bound is None or _binding(bound) != _binding(context):
        raise Untied("The course was untied from that of the platform meanwhile.")


def record_launch(connection: Connection, now_ms: int, launch: Launch) -> str:
    """Note who launched and from where; give the user name that they log in with.

    The first launch by an instructor of the course binds it to the platform's course.
    From then on the platform's learners and staff who launch from there are of the
    course. A person of the platform keeps the user name of their first launch, and
    nobody else gets it.

    Raises:
        BadRequest: the user name can't be one.
        Conflict: it is that of another person of the platform, or of staff.
        Forbidden: the person is not of the course.
    """
    name = _username_of(connection, launch)
    is_staff = launch.role in STAFF_ROLES
    if is_staff and launch.context and _is_instructor(connection, launch.course, name):
        _bind(connection, now_ms, launch)
    bound = context_of(connection, launch.course)
    is_from_there = bound is not None and (bound.issuer, bound.context) == (
        launch.issuer,
        launch.context,
    )
    if is_from_there:
        _join(connection, now_ms, launch, name)
        _follow_urls(connection, launch)
    try:
        viewer(connection, launch.course, name)
    except NotFound:
        raise Forbidden(
            f"`{name}` is not of the course. Open it from its own course at the "
            "platform, once an instructor has opened it from there."
        ) from None
    _know(connection, launch.issuer, [(launch.subject, name)])
    return name


def unbind(connection: Connection, now_ms: int, actor: str, course_id: str) -> None:
    """Let the next launch by an instructor bind the course anew.

    All scores are sent there once more.

    Raises:
        Conflict: it belongs to no course of a platform.
    """
    bound = bound_context(connection, course_id)
    labs = [lab.id for lab in publications(connection, course_id)]
    connection.execute(
        delete(LTI_LINE_ITEMS).where(LTI_LINE_ITEMS.c.publication.in_(labs))
    )
    of_labs = LTI_SCORES.c.publication.in_(labs)
    connection.execute(update(LTI_SCORES).where(of_labs).values(state="replaced"))
    connection.execute(delete(LTI_CONTEXTS).where(LTI_CONTEXTS.c.course == course_id))
    detail = {"context": bound.context}
    audit.note(connection, now_ms, actor, "platform unbound", course_id, detail)


def import_members(
    connection: Connection,
    now_ms: int,
    context: Context,
    learners: Sequence[PlatformMember],
) -> None:
    """Bring a course's learners to those of the platform; who left is hidden.

    Nobody is hidden while the platform lists somebody without a user name that can be
    used: that may be anyone here.

    Raises:
        Conflict: the platform names no learner, which would hide everybody.
    """
    people = (
        select(LTI_PEOPLE.c.subject, PEOPLE.c.username)
        .join(PEOPLE, PEOPLE.c.id == LTI_PEOPLE.c.person)
        .where(LTI_PEOPLE.c.issuer == context.issuer)
    )
    known = {row.subject: row.username for row in connection.execute(people)}
    owners = {name: subject for subject, name in known.items()}
    staff = staff_names(connection)
    rows: dict[str, RosterRow] = {}
    named: list[tuple[str, str]] = []
    unnamed = 0
    # a member who moves between two pages is listed on both
    for learner in {learner.subject: learner for learner in learners}.values():
        try:
            name = known.get(learner.subject) or fit_username(learner.username)
        except BadRequest:
            unnamed += 1
            continue
        is_taken = owners.setdefault(name, learner.subject) != learner.subject
        # whoever is a learner there does not become who runs the course here
        runs_it = name in staff and learner.subject not in known
        if runs_it and operator_subject(connection, name) == learner.subject:
            runs_it = False
        if is_taken or runs_it:
            unnamed += 1
            continue
        rows[name] = RosterRow(
            0, name, learner.first_name, learner.last_name, learner.email
        )
        named.append((learner.subject, name))
    given = tuple(rows.values())
    if not given:
        raise Conflict(
            "The platform names no learner of this course with a user name; nothing "
            "was changed."
        )
    changes = import_roster(
        connection, now_ms, ACTOR, context.course, given, hides=not unnamed
    )
    _know(connection, context.issuer, named)
    note = (
        f"{len(rows)} learners: {len(changes.added)} added, "
        f"{len(changes.changed)} changed, {len(changes.returned)} returned, "
        f"{len(changes.hidden)} hidden"
    )
    if unnamed:
        note += f"; {unnamed} have no user name that can be used, so nobody was hidden"
    note_asked(connection, now_ms, context.course, note)


def ask_again(connection: Connection, course_id: str) -> None:
    """Have the platform asked for the members of a course soon."""
    of_course = update(LTI_CONTEXTS).where(LTI_CONTEXTS.c.course == course_id)
    connection.execute(of_course.values(asked_ms=None))


def note_asked(connection: Connection, now_ms: int, course_id: str, note: str) -> None:
    """Note when the platform was asked for its members, and what came of it."""
    of_course = update(LTI_CONTEXTS).where(LTI_CONTEXTS.c.course == course_id)
    connection.execute(of_course.values(asked_ms=now_ms, note=note))


def line_item_url(connection: Connection, publication: str) -> str:
    """Give the line item of a lab; empty where none is known."""
    query = select(LTI_LINE_ITEMS.c.url).where(
        LTI_LINE_ITEMS.c.publication == publication
    )
    return connection.execute(query).scalar() or ""


def put_line_item(connection: Connection, publication: str, url: str) -> None:
    """Keep the line item of a lab; a new one is to have all scores of the lab."""
    if url == line_item_url(connection, publication):
        return
    of_lab = LTI_LINE_ITEMS.c.publication == publication
    connection.execute(delete(LTI_LINE_ITEMS).where(of_lab))
    row = {"publication": publication, "url": url}
    connection.execute(insert(LTI_LINE_ITEMS).values(**row))
    sent = (LTI_SCORES.c.publication == publication) & (LTI_SCORES.c.state == "sent")
    connection.execute(update(LTI_SCORES).where(sent).values(state="replaced"))


def _binding(context: Context) -> tuple[str, str, int]:
    return context.issuer, context.context, context.bound_ms


def _username_of(connection: Connection, launch: Launch) -> str:
    of_issuer = LTI_PEOPLE.c.issuer == launch.issuer
    people = select(LTI_PEOPLE.c.subject, PEOPLE.c.username).join(
        PEOPLE, PEOPLE.c.id == LTI_PEOPLE.c.person
    )
    known = connection.execute(
        people.where(of_issuer, LTI_PEOPLE.c.subject == launch.subject)
    ).first()
    if known is not None:
        return str(known.username)
    name = fit_username(launch.username)
    tied = operator_subject(connection, name)
    if tied not in (None, launch.subject):
        raise Conflict(
            f"The user name `{name}` is that of an operator of the hub. If it is "
            f"yours, have it started with --operator {name}={launch.subject}"
        )
    is_staff = tied is None and name in staff_names(connection)
    if is_staff and launch.role not in STAFF_ROLES:
        raise Conflict(
            f"The user name `{name}` is that of somebody who runs a course, and the "
            "platform does not send you as one of them."
        )
    taken = people.where(of_issuer, PEOPLE.c.username == name)
    if connection.execute(taken).first() is not None:
        raise Conflict(
            f"The user name `{name}` is that of another person of the platform. Who "
            "runs the course can tell which."
        )
    return name


def _is_instructor(connection: Connection, course_id: str, name: str) -> bool:
    try:
        return viewer(connection, course_id, name).role == "instructor"
    except NotFound:
        return False


def _join(connection: Connection, now_ms: int, launch: Launch, name: str) -> None:
    """Make somebody who launches from the bound course what they are there.

    Nobody loses a role so, and who was removed as staff gets none. Of a learner who was
    taken off the course, the platform's roster says whether they are back.
    """
    try:
        before = viewer(connection, launch.course, name)
    except NotFound:
        before = None
    if before is not None and before.is_hidden:
        ask_again(connection, launch.course)
        return
    if before is not None and before.role != "learner":
        return
    if launch.role in STAFF_ROLES and not _was_removed(connection, launch.course, name):
        add_staff(connection, now_ms, ACTOR, launch.course, name, launch.role)
    elif launch.role == "learner" and before is None:
        row = RosterRow(0, name, launch.first_name, launch.last_name, launch.email)
        add_learner(connection, now_ms, ACTOR, launch.course, row)


def _was_removed(connection: Connection, course_id: str, name: str) -> bool:
    query = (
        select(MEMBERSHIPS.c.removed_ms)
        .join(PEOPLE, PEOPLE.c.id == MEMBERSHIPS.c.person)
        .where(MEMBERSHIPS.c.course == course_id, PEOPLE.c.username == name)
    )
    return connection.execute(query).scalar() is not None


def _bind(connection: Connection, now_ms: int, launch: Launch) -> None:
    if context_of(connection, launch.course) is not None:
        return
    row = {
        "course": launch.course,
        "issuer": launch.issuer,
        "context": launch.context,
        "title": launch.title,
        "memberships_url": launch.memberships_url,
        "line_items_url": launch.line_items_url,
        "bound_ms": now_ms,
        "note": "",
    }
    connection.execute(insert(LTI_CONTEXTS).values(**row))
    detail = {"context": launch.context}
    audit.note(connection, now_ms, ACTOR, "platform bound", launch.course, detail)


def _follow_urls(connection: Connection, launch: Launch) -> None:
    """Take over where the services of the platform's course are now."""
    urls = {
        name: url
        for name, url in (
            ("memberships_url", launch.memberships_url),
            ("line_items_url", launch.line_items_url),
        )
        if url
    }
    if urls:
        of_course = update(LTI_CONTEXTS).where(LTI_CONTEXTS.c.course == launch.course)
        connection.execute(of_course.values(**urls))
    if launch.lab and launch.line_item_url:
        for lab in publications(connection, launch.course):
            if lab.lab == launch.lab:
                put_line_item(connection, lab.id, launch.line_item_url)


def _know(
    connection: Connection, issuer: str, named: Iterable[tuple[str, str]]
) -> None:
    """Keep which person of the platform has which user name here."""
    known = set(
        connection.execute(
            select(LTI_PEOPLE.c.subject).where(LTI_PEOPLE.c.issuer == issuer)
        ).scalars()
    )
    for subject, username in named:
        query = select(PEOPLE.c.id).where(PEOPLE.c.username == username)
        person = connection.execute(query).scalar()
        # who is of no course here needs no entry
        if subject not in known and person is not None:
            row = {"issuer": issuer, "subject": subject, "person": person}
            connection.execute(insert(LTI_PEOPLE).values(**row))
