"""What the jailed process is asked, and what it answers: data, trusted by nobody."""

from typing import ClassVar

from msgspec import Struct

from warpbook_labs.sandbox.work import Job, Work

Row = tuple[str | int | float | None, ...]


class Tables(Struct, frozen=True, tag="tables"):
    """The rows that the query gives of each table, or why it gives none."""

    rows: tuple[tuple[Row, ...] | str, ...]


class Query(Job[Tables], frozen=True, tag="query"):
    """Run a query over some tables."""

    # the module that does it, which only the jailed process imports
    work: ClassVar[Work] = Work("warpbook_sql.running", Tables)
    source: str
    tables: tuple[tuple[tuple[str, int], ...], ...]
