"""The tables, as the steps `schema_N.sql` make them: columns are declared there only.

Identifiers are texts that the hub draws, times are milliseconds since 1970, and JSON is
text, so that standard SQL does.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import groupby

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Double,
    Integer,
    MetaData,
    Table,
    Text,
    select,
)

from warpbook_monitors.database.format_steps import (
    SqliteTarget,
    Steps,
    bring_up_to_date,
)

#: of the newest step
FORMAT = 1
_TYPES = {
    "TEXT": Text,
    "INTEGER": Integer,
    "BIGINT": BigInteger,
    "DOUBLE PRECISION": Double,
}
_COLUMNS = """
    SELECT made.name, own.name, own.type
    FROM sqlite_master AS made, pragma_table_info(made.name) AS own
    WHERE made.type = 'table' ORDER BY made.rowid, own.cid
"""


def steps(newest: int = FORMAT) -> Steps:
    return Steps("warpbook_hub.database", "schema", newest)


def _made() -> dict[str, Table]:
    """Return what the steps make, in an order in which each follows what it names."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        bring_up_to_date(SqliteTarget(connection), steps())
        rows = connection.execute(_COLUMNS).fetchall()
    metadata = MetaData()
    for table, columns in groupby(rows, lambda row: row[0]):
        Table(
            table, metadata, *(Column(name, _TYPES[kind]) for _, name, kind in columns)
        )
    return dict(metadata.tables)


_BY_NAME = _made()
TABLES = tuple(_BY_NAME.values())
SETTINGS = _BY_NAME["settings"]
PEOPLE = _BY_NAME["people"]
OPERATORS = _BY_NAME["operators"]
COURSES = _BY_NAME["courses"]
SECTIONS = _BY_NAME["sections"]
MEMBERSHIPS = _BY_NAME["memberships"]
TEAMS = _BY_NAME["teams"]
TEAM_MEMBERS = _BY_NAME["team_members"]
PUBLICATIONS = _BY_NAME["publications"]
PUBLICATION_FILES = _BY_NAME["publication_files"]
WINDOWS = _BY_NAME["windows"]
EXTENSIONS = _BY_NAME["extensions"]
SUBMISSIONS = _BY_NAME["submissions"]
SUBMISSION_MEMBERS = _BY_NAME["submission_members"]
GRADERS = _BY_NAME["graders"]
JOBS = _BY_NAME["jobs"]
TURNS = _BY_NAME["turns"]
RESULTS = _BY_NAME["results"]
CODE_QUESTIONS = _BY_NAME["code_questions"]
REFUSED_RESULTS = _BY_NAME["refused_results"]
OVERRIDES = _BY_NAME["overrides"]
APPEALS = _BY_NAME["appeals"]
COMMENTS = _BY_NAME["comments"]
RUBRIC_POINTS = _BY_NAME["rubric_points"]
BULK_ACTIONS = _BY_NAME["bulk_actions"]
AUDIT = _BY_NAME["audit"]
AUDIT_DETAILS = _BY_NAME["audit_details"]
NOTICE_CHOICES = _BY_NAME["notice_choices"]
MAILS = _BY_NAME["mails"]
NOTICES = _BY_NAME["notices"]
LEASE_GPUS = _BY_NAME["lease_gpus"]
GPU_LEASES = _BY_NAME["gpu_leases"]
GPU_SESSIONS = _BY_NAME["gpu_sessions"]
LTI_CONTEXTS = _BY_NAME["lti_contexts"]
LTI_PEOPLE = _BY_NAME["lti_people"]
LTI_LINE_ITEMS = _BY_NAME["lti_line_items"]
LTI_SCORES = _BY_NAME["lti_scores"]
COMPETITIONS = _BY_NAME["competitions"]
COMPETITORS = _BY_NAME["competitors"]
FINALS = _BY_NAME["finals"]
FINAL_JOBS = _BY_NAME["final_jobs"]


def outside_finals() -> ColumnElement[bool]:
    """Leave out of `JOBS` those of finals: marks and the queue's order know none."""
    return JOBS.c.id.not_in(select(FINAL_JOBS.c.job))
