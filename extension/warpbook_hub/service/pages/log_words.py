"""The audit log in words: names in place of ids, times in place of milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Select, select

from warpbook_hub.audit import AuditEntry
from warpbook_hub.database.tables import (
    APPEALS,
    GRADERS,
    JOBS,
    MEMBERSHIPS,
    PEOPLE,
    PUBLICATIONS,
    SECTIONS,
    SUBMISSIONS,
)
from warpbook_hub.service.pages.words import one_line, points, when

_ID = re.compile(r"[0-9a-f]{20}")
#: of a digest, or of a request's own number
_HEX = re.compile(r"[0-9a-f]{20,64}")
_GRADER = "grader "
_UNITS = {"_h": " in hours", "_min": " in minutes"}
#: what is kept as a text of JSON
_JSON = ("scheme", "rubric")
_MOST_PARTS, _MOST_LETTERS, _SHOWN_DIGITS = 40, 300, 8


class LogLine(Struct, frozen=True):
    """An entry of the log, as a page shows it."""

    number: int
    at_ms: int
    actor: str
    action: str
    #: the id, for what else was done to it
    subject: str
    subject_name: str
    #: HTML
    detail: str


def log_lines(
    connection: Connection, entries: Sequence[AuditEntry], course: str
) -> list[LogLine]:
    """Write entries so that people can read them.

    Args:
        course: only names of it are told; empty: of all, for who operates the hub.
    """
    details = [_decoded(entry.detail) for entry in entries]
    ids = {text for entry in entries for text in (entry.actor, entry.subject)}
    ids |= {actor.removeprefix(_GRADER) for actor in ids}
    ids |= {text for detail in details for text in _texts(detail)}
    names = _names(connection, [one for one in ids if _ID.fullmatch(one)], course)
    return [
        LogLine(
            entry.number,
            entry.at_ms,
            _actor(entry.actor, names, course),
            entry.action,
            entry.subject,
            _named(entry.subject, names),
            "; ".join(_parts(detail, names)) if entry.detail else "erased",
        )
        for entry, detail in zip(entries, details, strict=True)
    ]


def _actor(actor: str, names: Mapping[str, str], course: str) -> str:
    if actor.startswith(_GRADER):
        return f"grader {names.get(actor.removeprefix(_GRADER), '')}".strip()
    if actor in names or not _ID.fullmatch(actor):
        return names.get(actor, actor)
    return "staff of the hub" if course else _named(actor, names)


def _named(text: str, names: Mapping[str, str]) -> str:
    if _HEX.fullmatch(text):
        return names.get(text, f"{text[:_SHOWN_DIGITS]}…")
    return one_line(text, _MOST_LETTERS)


def _parts(detail: Any, names: Mapping[str, str]) -> list[str]:
    """Write what a detail holds, a part for each of its values, as HTML."""
    if not isinstance(detail, dict):
        return [_value("", detail, names)]
    said = [
        f"{escape(_key(str(key)))}: {_value(str(key), value, names)}"
        for key, value in detail.items()
        # 0 ms is none, in dates and in what moves them
        if value not in (None, "", [], {}) and not (key.endswith("_ms") and value == 0)
    ]
    return said[:_MOST_PARTS]


def _key(key: str) -> str:
    words = key.removesuffix("_ms").removeprefix("is_")
    for unit, name in _UNITS.items():
        if words.endswith(unit):
            words = words.removesuffix(unit) + name
    return one_line(words.replace("_", " ") or "all", 100)


def _value(key: str, value: Any, names: Mapping[str, str]) -> str:
    if isinstance(value, str):
        inner = _decoded(value) if key in _JSON else None
        if inner is None:
            return escape(_named(value, names))
        value = inner
    if isinstance(value, dict):
        return f"({', '.join(_parts(value, names))})"
    if isinstance(value, list):
        return ", ".join(_value(key, one, names) for one in value[:_MOST_PARTS])
    if isinstance(value, bool) or key.startswith("is_"):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return when(int(value)) if key.endswith("_ms") else points(value)
    return "none"


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _texts(detail: Any) -> Iterator[str]:
    if isinstance(detail, str):
        yield detail
    elif isinstance(detail, (dict, list)):
        for one in detail.values() if isinstance(detail, dict) else detail:
            yield from _texts(one)


def _names(connection: Connection, ids: Sequence[str], course: str) -> dict[str, str]:
    """Give what some ids are called."""
    of_course = (PUBLICATIONS.c.course == course) if course else PUBLICATIONS.c.id != ""
    people = select(PEOPLE.c.id, PEOPLE.c.username).where(PEOPLE.c.id.in_(ids))
    sections = select(SECTIONS.c.id, SECTIONS.c.name).where(SECTIONS.c.id.in_(ids))
    if course:
        of_it = select(MEMBERSHIPS.c.person).where(MEMBERSHIPS.c.course == course)
        people = people.where(PEOPLE.c.id.in_(of_it))
        sections = sections.where(SECTIONS.c.course == course)
    labs = select(PUBLICATIONS.c.id, PUBLICATIONS.c.title).where(
        PUBLICATIONS.c.id.in_(ids), of_course
    )
    plain: list[Select[Any]] = [people, sections, labs]
    if not course:
        graders = select(GRADERS.c.id, GRADERS.c.name).where(GRADERS.c.id.in_(ids))
        plain.append(graders)
    names: dict[str, str] = {}
    for query in plain:
        names |= {one: str(name) for one, name in connection.execute(query)}
    work = (
        select(
            SUBMISSIONS.c.id.label("submission"),
            JOBS.c.id.label("job"),
            APPEALS.c.id.label("appeal"),
            SUBMISSIONS.c.number,
            PUBLICATIONS.c.title,
            PEOPLE.c.username,
        )
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .join(PEOPLE, PEOPLE.c.id == SUBMISSIONS.c.person)
        .join(JOBS, JOBS.c.submission == SUBMISSIONS.c.id)
        .outerjoin(APPEALS, APPEALS.c.job == JOBS.c.id)
        .where(of_course)
    )
    for which in (SUBMISSIONS.c.id, JOBS.c.id, APPEALS.c.id):
        for row in connection.execute(work.where(which.in_(ids))):
            words = f"submission {row.number} of {row.username}, {row.title}"
            names[row.submission] = words
            names[row.job] = f"job of {words}"
            if row.appeal is not None:
                names[row.appeal] = f"appeal about {words}"
    return names
