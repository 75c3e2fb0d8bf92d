"""SQL scripts that are shipped with a package, one statement after another."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources


def statements(package: str, name: str) -> Iterator[str]:
    """Give the statements of a script of a package."""
    script = resources.files(package).joinpath(name)
    statement = ""
    for line in script.read_text(encoding="utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
