"""The tables as SQLAlchemy sees them; `schema_N.sql` makes them.

Only what standard SQL knows: identifiers are texts that the hub draws, times are
milliseconds since 1970, and JSON is text.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, MetaData, Table, Text

METADATA = MetaData()


def _text(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _integer(*names: str) -> list[Column[int]]:
    return [Column(name, Integer, nullable=False) for name in names]


def _time(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False) for name in names]


def _maybe_time(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger) for name in names]


SETTINGS = Table("settings", METADATA, *_text("name", "value"))
PEOPLE = Table(
    "people",
    METADATA,
    *_text("id", "username"),
    *_time("created_ms"),
    *_maybe_time("erased_ms"),
)
OPERATORS = Table("operators", METADATA, *_text("person", "subject"))
COURSES = Table(
    "courses",
    METADATA,
    *_text("id", "title"),
    *_integer("late_budget_h", "timed_runs_per_hour", "appeal_window_h"),
    *_time("created_ms"),
    *_text("paused"),
)
SECTIONS = Table("sections", METADATA, *_text("id", "course", "name"))
MEMBERSHIPS = Table(
    "memberships",
    METADATA,
    *_text("course", "person", "section", "role"),
    *(Column(n, Text, server_default="") for n in ("first_name", "last_name", "email")),
    *_maybe_time("hidden_ms", "removed_ms"),
)
TEAMS = Table("teams", METADATA, *_text("id", "course", "name"))
TEAM_MEMBERS = Table("team_members", METADATA, *_text("course", "person", "team"))
PUBLICATIONS = Table(
    "publications",
    METADATA,
    *_text("id", "course", "lab", "title", "language", "lab_digest"),
    *_integer("is_timed", "is_team_work"),
    *_text("scheme"),
    Column("late_percent_per_day", Double, nullable=False),
    Column("most_attempts", Integer),
    *_text("reference"),
    *_time("published_ms"),
    *_maybe_time("withdrawn_ms"),
)
WINDOWS = Table(
    "windows",
    METADATA,
    *_text("publication", "section"),
    *_time("opens_ms", "due_ms", "closes_ms"),
)
EXTENSIONS = Table(
    "extensions",
    METADATA,
    *_text("publication", "person"),
    *_time("due_ms", "closes_ms"),
    *_text("reason", "granted_by"),
    *_time("granted_ms"),
)
SUBMISSIONS = Table(
    "submissions",
    METADATA,
    *_text("id", "publication", "person", "party"),
    *_integer("number"),
    *_text("request"),
    *_time("received_ms"),
    *_text("source_digest"),
    *_integer("source_bytes"),
    *_text("source"),
    *_time("seed"),
    *_maybe_time("replaced_ms"),
)
SUBMISSION_MEMBERS = Table(
    "submission_members", METADATA, *_text("submission", "person")
)
GRADERS = Table(
    "graders",
    METADATA,
    *_text("id", "name", "token_digest", "state"),
    *_integer("cpu_slots"),
    *_text("devices"),
    *_time("registered_ms"),
    *_maybe_time("seen_ms"),
)
JOBS = Table(
    "jobs",
    METADATA,
    *_text("id", "submission", "publication", "party"),
    *_integer("run"),
    *_text("stage", "state"),
    *_integer("lane", "turn"),
    *_time("queued_ms", "not_before_ms"),
    *_integer("fence"),
    Column("grader", Text),
    *_text("device"),
    *_maybe_time("leased_ms", "lease_until_ms"),
    *_integer("crashes", "busy"),
    *_maybe_time("finished_ms"),
    *_text("note"),
)
TURNS = Table("turns", METADATA, *_text("party", "stage"), *_time("served_ms"))
RESULTS = Table(
    "results",
    METADATA,
    *_text("job", "submission"),
    *_integer("run"),
    *_text("stage"),
    *_integer("fence"),
    *_text("grader"),
    *_time("received_ms", "took_ms"),
    *_text("lab_digest", "facts", "evidence"),
    *_time("gpu_ms"),
    *_maybe_time("energy_mj"),
)
REFUSED_RESULTS = Table(
    "refused_results",
    METADATA,
    *_text("id", "job"),
    *_integer("fence"),
    *_text("grader"),
    *_time("refused_ms"),
    *_text("reason"),
)
OVERRIDES = Table(
    "overrides",
    METADATA,
    *_text("id"),
    *_time("number"),
    *_text("publication", "person"),
    Column("points", Double),
    *_text("reason", "made_by"),
    *_time("made_ms"),
)
APPEALS = Table(
    "appeals",
    METADATA,
    *_text("id", "job", "person", "note"),
    *_time("made_ms"),
    *_text("decision", "answer", "answered_by"),
    *_maybe_time("answered_ms"),
)
AUDIT = Table(
    "audit",
    METADATA,
    *_time("number", "at_ms"),
    *_text("actor", "action", "subject", "course"),
)
AUDIT_DETAILS = Table("audit_details", METADATA, *_time("number"), *_text("detail"))
