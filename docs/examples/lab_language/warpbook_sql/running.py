"""Runs a learner's query, in the jail: no file, no network, bounded time and memory."""

import sqlite3

from warpbook_sql.messages import Query, Tables

Job = Query
MOST_ROWS = 1000


def prepare():
    """Load all that a job needs: nothing can be opened afterwards."""
    sqlite3.connect(":memory:").execute("SELECT 1").fetchall()


def do(job):
    results = []
    for sales in job.tables:
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE sales (item TEXT, amount INTEGER)")
        database.executemany("INSERT INTO sales VALUES (?, ?)", sales)
        try:
            rows = database.execute(job.source).fetchmany(MOST_ROWS)
            results.append(tuple(rows))
        except (sqlite3.Error, sqlite3.Warning) as problem:
            results.append(str(problem))
    return Tables(tuple(results))
