"""Versions of a published lab: its files as they were, and what has changed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from itertools import islice

from msgspec import Struct
from sqlalchemy import Connection, delete, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.publications import Publication
from warpbook_hub.database.tables import PUBLICATION_FILES, PUBLICATIONS

#: of one file's difference
_MOST_LINES = 400


class FileChange(Struct, frozen=True):
    """How a file of a lab differs."""

    name: str
    #: new, gone or changed
    how: str
    #: a unified difference
    lines: tuple[str, ...]


def keep_files(
    connection: Connection, publication_id: str, files: Mapping[str, str]
) -> None:
    of = PUBLICATION_FILES.c.publication == publication_id
    connection.execute(delete(PUBLICATION_FILES).where(of))
    rows = [
        {"publication": publication_id, "name": name, "content": content}
        for name, content in files.items()
    ]
    if rows:
        connection.execute(insert(PUBLICATION_FILES), rows)


def kept_files(connection: Connection, publication_id: str) -> dict[str, str]:
    """Return the files of the version that is published; none if none were kept."""
    query = select(PUBLICATION_FILES.c.name, PUBLICATION_FILES.c.content).where(
        PUBLICATION_FILES.c.publication == publication_id
    )
    return {row.name: row.content for row in connection.execute(query)}


def changed_files(
    before: Mapping[str, str], now: Mapping[str, str]
) -> tuple[FileChange, ...]:
    changes = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        how = "new" if old is None else "gone" if new is None else "changed"
        texts = (old or "").splitlines(), (new or "").splitlines()
        lines = difflib.unified_diff(*texts, "before", "now", n=2, lineterm="")
        changes.append(FileChange(name, how, tuple(islice(lines, _MOST_LINES))))
    return tuple(changes)


def publish_version(
    connection: Connection,
    now_ms: int,
    actor: str,
    lab: Publication,
    digest: str,
    is_timed: bool,
    files: Mapping[str, str],
) -> None:
    """Publish another version of a lab; dates, points and rules stay.

    Args:
        lab: as it is published.
        digest: of the version; empty: that of its first result is taken.
        is_timed: whether its right sources go on to a GPU.
        files: of the version.
    """
    connection.execute(
        update(PUBLICATIONS)
        .where(PUBLICATIONS.c.id == lab.id)
        # the reference is that of another version
        .values(
            lab_digest=digest, is_timed=int(is_timed), reference="", reference_ms=None
        )
    )
    keep_files(connection, lab.id, files)
    detail = {"lab": lab.lab, "before": lab.lab_digest, "now": digest}
    audit.note(connection, now_ms, actor, "version published", lab.id, detail)
