"""The query of the lab is SQL's: SQLite gives the same matches and totals."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from warpbook_labs.course.session import find

QUERY = """
SELECT COUNT(t.key), COALESCE(SUM(t.amount), 0) FROM probe
LEFT JOIN t ON t.key = probe.key AND t.amount >= ?
GROUP BY probe.place ORDER BY probe.place
"""


@pytest.mark.parametrize("values", find("groupby-join").lab.hidden.values)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (300, 257)])
def test_what_is_right_is_what_sqlite_answers(values: str, n: int, m: int) -> None:
    lab, sizes = find("groupby-join"), {"n": n, "m": m}
    given = lab.cases.inputs(sizes, values, np.random.default_rng(n))
    right = lab.cases.expected(given, sizes)

    def keys(column: str) -> list[int | None]:
        return [key if key >= 0 else None for key in given[column].tolist()]

    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (key INTEGER, amount INTEGER)")
    database.execute("CREATE TABLE probe (place INTEGER, key INTEGER)")
    rows = zip(keys("key"), given["amount"].tolist(), strict=True)
    database.executemany("INSERT INTO t VALUES (?, ?)", rows)
    database.executemany("INSERT INTO probe VALUES (?, ?)", enumerate(keys("probe")))
    database.execute("CREATE INDEX by_key ON t (key)")
    answers = database.execute(QUERY, (given["least"],)).fetchall()
    database.close()
    assert answers == list(
        zip(right["matches"].tolist(), right["total"].tolist(), strict=True)
    )
