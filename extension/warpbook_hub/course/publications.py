"""Labs as a course publishes them: when, to whom, and what they are worth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Row, delete, insert, select, update

from warpbook.hub_protocol import AiPolicy
from warpbook_hub import audit
from warpbook_hub.course.courses import Course, course, section_id
from warpbook_hub.course.windows import ANY_SECTION, all_windows, windows_by_section
from warpbook_hub.database.tables import PUBLICATIONS, SECTIONS, WINDOWS
from warpbook_hub.errors import BadRequest, NotFound
from warpbook_hub.ids import new_id
from warpbook_hub.rules.lateness import Window
from warpbook_hub.rules.points import PointScheme, check_scheme
from warpbook_hub.rules.rubric import Rubric, check_rubric
from warpbook_hub.rules.totals import LabWeight
from warpbook_hub.rules.visibility import reference_from_ms
from warpbook_hub.texts import is_fit_name, reason_of
from warpbook_monitors.plain_text import bounded

#: the year 2200
_LAST_MS = 7_258_118_400_000
_LAB = re.compile(r"[a-z][a-z0-9-]{2,40}")
_LANGUAGE = re.compile(r"[a-z]{1,20}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
#: languages of which the labs' engines can ask about a source
ASKED_LANGUAGES = ("cuda", "triton")
#: as a language: there is nothing to hand in here, and staff give the points
NBGRADER = "nbgrader"


class Publication(Struct, frozen=True):
    """A lab of a course."""

    course: str
    #: its id in the catalogue, or of the course's own
    lab: str
    title: str
    language: str
    #: whether right sources go on to a GPU
    is_timed: bool
    #: by the name of the section; "" stands for all that are not named
    windows: Mapping[str, Window]
    scheme: PointScheme = PointScheme()
    is_team_work: bool = False
    late_percent_per_day: float = 100.0
    #: None: as many as one likes
    most_attempts: int | None = None
    #: SHA-256 of what decides a grade; "": that of the first result is taken
    lab_digest: str = ""
    #: given by the hub
    id: str = ""
    is_withdrawn: bool = False
    #: set apart from the rest
    rubric: Rubric = Rubric()
    counts: LabWeight = LabWeight()
    #: learners are not shown marks and feedback
    is_hidden: bool = False
    #: None: as its course has it
    ai_policy: AiPolicy | None = None
    #: after a pass learners are asked about their own source
    asks_questions: bool = False

    @property
    def takes_submissions(self) -> bool:
        return self.language != NBGRADER


def publish(
    connection: Connection, now_ms: int, actor: str, publication: Publication
) -> str:
    """Publish a lab, or change how it is published; what was submitted stays.

    Returns:
        Its id.

    Raises:
        BadRequest: a window ends before it begins, or points can't be meant.
        NotFound: there is no such course or section.
    """
    named, row = put_publication(connection, now_ms, publication)
    detail = {**row, "windows": dict(publication.windows), "lab": publication.lab}
    audit.note(connection, now_ms, actor, "lab published", named, detail)
    return named


def put_publication(
    connection: Connection, now_ms: int, publication: Publication
) -> tuple[str, dict[str, Any]]:
    """Publish a lab without a line in the log; see `publish`.

    Returns:
        Its id, and what was set.
    """
    _check(publication)
    course(connection, publication.course)
    windows = {
        section_id(connection, publication.course, name, may_begin=False)
        if name
        else ANY_SECTION: window
        for name, window in publication.windows.items()
    }
    row: dict[str, Any] = {
        "title": publication.title,
        "language": publication.language,
        "is_timed": int(publication.is_timed),
        "is_team_work": int(publication.is_team_work),
        "scheme": msgspec.json.encode(publication.scheme).decode(),
        "late_percent_per_day": publication.late_percent_per_day,
        "most_attempts": publication.most_attempts,
        "lab_digest": publication.lab_digest,
        "ai_policy": publication.ai_policy,
        "asks_questions": int(publication.asks_questions),
        "withdrawn_ms": None,
    }
    key = (PUBLICATIONS.c.course == publication.course) & (
        PUBLICATIONS.c.lab == publication.lab
    )
    before = connection.execute(select(PUBLICATIONS).where(key)).first()
    if before is None:
        named = new_id()
        keys = {"id": named, "course": publication.course, "lab": publication.lab}
        connection.execute(
            insert(PUBLICATIONS).values(
                **keys, **row, reference="", published_ms=now_ms
            )
        )
    else:
        named = before.id
        keep_shown(connection, named, reference_shown(connection, now_ms, named))
        if row["lab_digest"] != before.lab_digest:
            # it is that of another lab
            row |= {"reference": "", "reference_ms": None}
        connection.execute(update(PUBLICATIONS).where(key).values(**row))
    connection.execute(delete(WINDOWS).where(WINDOWS.c.publication == named))
    for section, window in windows.items():
        keys = {"publication": named, "section": section}
        times = ("opens_ms", "due_ms", "closes_ms")
        values = {name: getattr(window, name) for name in times}
        connection.execute(insert(WINDOWS).values(**keys, **values))
    return str(named), row


def set_rubric(
    connection: Connection, now_ms: int, actor: str, publication_id: str, rubric: Rubric
) -> None:
    """Give a lab other rows; points of rows that are gone are kept, and don't count.

    Raises:
        BadRequest: a row can't be meant.
    """
    check_rubric(rubric)
    if any(not row.title.strip() or not is_fit_name(row.title) for row in rubric.rows):
        raise BadRequest("A row's title is one line of up to 100 characters.")
    text = msgspec.json.encode(rubric).decode()
    of = PUBLICATIONS.c.id == publication_id
    connection.execute(update(PUBLICATIONS).where(of).values(rubric=text))
    detail = {"rubric": rubric}
    audit.note(connection, now_ms, actor, "rubric set", publication_id, detail)


def withdraw(
    connection: Connection, now_ms: int, actor: str, publication_id: str, reason: str
) -> None:
    """Take a lab off the list; what was submitted stays, and no more is taken.

    Raises:
        NotFound: there is none.
    """
    why = reason_of(reason)
    changed = connection.execute(
        update(PUBLICATIONS)
        .where(PUBLICATIONS.c.id == publication_id)
        .values(withdrawn_ms=now_ms)
    )
    if not changed.rowcount:
        raise _no_lab()
    detail = {"reason": why}
    audit.note(connection, now_ms, actor, "lab withdrawn", publication_id, detail)


def publications(connection: Connection, course_id: str) -> list[Publication]:
    """Give all labs of a course, in the order of their due dates."""
    query = select(PUBLICATIONS).where(PUBLICATIONS.c.course == course_id)
    labs = [_publication(connection, row) for row in connection.execute(query)]
    return sorted(labs, key=lambda lab: (_due_ms(lab), lab.lab))


def publication(connection: Connection, publication_id: str) -> Publication:
    """Give a published lab.

    Raises:
        NotFound: there is none.
    """
    return _publication(connection, _row(connection, publication_id))


def reference(connection: Connection, publication_id: str) -> str:
    """Give the reference of a lab; empty until its first result.

    Who may see it is asked of `rules.visibility`, with `reference_from`.

    Raises:
        NotFound: there is no such lab.
    """
    return str(_row(connection, publication_id).reference)


def reference_from(connection: Connection, publication_id: str) -> int:
    """Tell from when learners see the reference of a lab.

    Raises:
        NotFound: there is no such lab.
    """
    row = _row(connection, publication_id)
    windows = all_windows(connection, publication_id)
    budget_h = course(connection, row.course).late_budget_h
    takes_all = row.late_percent_per_day >= 100 and budget_h == 0
    return reference_from_ms(windows, takes_all)


def reference_shown(
    connection: Connection, now_ms: int, publication_id: str
) -> int | None:
    """Tell since when learners could see the reference; None: they never could.

    Raises:
        NotFound: there is no such lab.
    """
    row = _row(connection, publication_id)
    if row.reference_ms is not None:
        return int(row.reference_ms)
    from_ms = reference_from(connection, publication_id)
    return from_ms if row.reference and from_ms <= now_ms else None


def keep_shown(
    connection: Connection, publication_id: str, shown_ms: int | None
) -> None:
    """Keep since when learners could see the reference: other dates do not unsee it."""
    of = update(PUBLICATIONS).where(PUBLICATIONS.c.id == publication_id)
    connection.execute(of.values(reference_ms=shown_ms))


def _row(connection: Connection, publication_id: str) -> Row[Any]:
    query = select(PUBLICATIONS).where(PUBLICATIONS.c.id == publication_id)
    row = connection.execute(query).first()
    if row is None:
        raise _no_lab()
    return row


def _no_lab() -> NotFound:
    return NotFound("There is no such lab in this course.")


def _publication(connection: Connection, row: Row[Any]) -> Publication:
    query = select(SECTIONS.c.id, SECTIONS.c.name)
    query = query.where(SECTIONS.c.course == row.course)
    names = {section.id: section.name for section in connection.execute(query)}
    windows = windows_by_section(connection, row.id)
    return Publication(
        row.course,
        row.lab,
        row.title,
        row.language,
        bool(row.is_timed),
        {names.get(section, ""): window for section, window in windows.items()},
        msgspec.json.decode(row.scheme, type=PointScheme),
        bool(row.is_team_work),
        row.late_percent_per_day,
        row.most_attempts,
        row.lab_digest,
        row.id,
        row.withdrawn_ms is not None,
        msgspec.json.decode(row.rubric, type=Rubric),
        LabWeight(row.weight, bool(row.is_bonus)),
        row.hidden_ms is not None,
        row.ai_policy,
        bool(row.asks_questions),
    )


def _due_ms(publication: Publication) -> int:
    return min((window.due_ms for window in publication.windows.values()), default=0)


def _check(publication: Publication) -> None:
    if _LAB.fullmatch(publication.lab) is None:
        raise BadRequest("The id of a lab has 3 to 41 small letters, digits and -.")
    if not publication.title.strip() or not is_fit_name(publication.title):
        raise BadRequest("The title of a lab is one line of up to 100 characters.")
    if _LANGUAGE.fullmatch(publication.language) is None:
        raise BadRequest("The language of a lab is one word in small letters.")
    check_scheme(publication.scheme)
    if not publication.windows:
        raise BadRequest("Say when the lab opens, is due and closes.")
    for name, window in publication.windows.items():
        if not 0 <= window.opens_ms < window.due_ms <= window.closes_ms < _LAST_MS:
            of = f"section `{bounded(name)}`" if name else "all sections"
            raise BadRequest(
                f"For {of}: a lab opens before it is due, and closes then or later."
            )
    if not 0 <= publication.late_percent_per_day <= 100:
        raise BadRequest("A late day takes 0 to 100 percent.")
    if publication.most_attempts is not None and publication.most_attempts < 1:
        raise BadRequest("At least one attempt must be allowed.")
    if publication.asks_questions and publication.language not in ASKED_LANGUAGES:
        raise BadRequest("Only sources in CUDA C++ and Triton can be asked about.")
    if publication.lab_digest and _DIGEST.fullmatch(publication.lab_digest) is None:
        raise BadRequest("The digest of a lab is SHA-256 in hexadecimal digits.")


def policy_now(
    connection: Connection, now_ms: int, course: Course, lab: Publication
) -> AiPolicy:
    """Give what holds now: anything goes once learners see the reference."""
    policy = lab.ai_policy or course.ai_policy
    if policy != "on" and now_ms >= reference_from(connection, lab.id):
        return "on"
    return policy
