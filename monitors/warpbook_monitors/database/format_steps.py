"""Formats of a database: each is a numbered step from the one before.

A step is a file `<prefix>_<number>.sql` of a package, or a module of that name with
`change(target)` where SQL alone can't do it. All steps that are missing, and the new
number, are one transaction: a kill leaves the old format whole. A newer database is
refused, and left as it is.
"""

from __future__ import annotations

import importlib
import importlib.util
import sqlite3
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any, NamedTuple, Protocol


class NewerFormat(Exception):
    """A newer warpbook wrote the database; it is left as it is."""

    def __init__(self, number: int, known: int) -> None:
        """Name the format that was found, and the newest that is known."""
        super().__init__(
            f"it was written by another version of warpbook (format {number}; this one "
            f"knows {known}). Update warpbook; the file is left as it is."
        )


class Steps(NamedTuple):
    """Where the steps of a database are."""

    package: str
    prefix: str
    #: the number of the last one
    newest: int


class Target(Protocol):
    """A database that steps are applied to."""

    def number(self) -> int:
        """Give the number of its format; 0 where it has just begun."""
        ...

    def lock(self) -> None:
        """Begin a transaction that keeps out whoever else would apply steps."""
        ...

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Execute a statement, and give its rows."""
        ...

    def set_number(self, number: int) -> None:
        """Note the number of its format, within the transaction."""
        ...


class SqliteTarget:
    """A file of SQLite, which has its format in `user_version`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take a connection without a transaction of its own."""
        self._connection = connection

    def number(self) -> int:
        """Give the number of its format; 0 where it has just begun."""
        (number,) = self._connection.execute("PRAGMA user_version").fetchone()
        return int(number)

    def lock(self) -> None:
        """Begin a transaction that keeps out whoever else would apply steps."""
        self._connection.execute("BEGIN IMMEDIATE")

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(statement, parameters).fetchall()

    def set_number(self, number: int) -> None:
        """Note the number of its format, within the transaction."""
        self._connection.execute(f"PRAGMA user_version = {number}")


def check(target: Target, steps: Steps) -> int:
    """Give the format of a database.

    Raises:
        NewerFormat: it is newer than the last step.
    """
    number = target.number()
    if number > steps.newest:
        raise NewerFormat(number, steps.newest)
    return number


def bring_up_to_date(target: Target, steps: Steps) -> None:
    """Apply the steps that are missing; the caller commits.

    Raises:
        NewerFormat: the database is newer than the last step.
    """
    if check(target, steps) == steps.newest:
        return
    target.lock()
    # another process may have done it meanwhile
    for number in range(check(target, steps) + 1, steps.newest + 1):
        _apply(target, steps, number)
        target.set_number(number)


def _apply(target: Target, steps: Steps, number: int) -> None:
    name = f"{steps.prefix}_{number}"
    module = f"{steps.package}.{name}"
    if importlib.util.find_spec(module) is not None:
        importlib.import_module(module).change(target)
        return
    for statement in statements(steps.package, f"{name}.sql"):
        target.run(statement)


def statements(package: str, name: str) -> Iterator[str]:
    script = resources.files(package).joinpath(name)
    statement = ""
    for line in script.read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
