"""What counts for a board: the best timed submission of each, at some moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, select

from warpbook.hub_protocol import GradedFacts, Ratio
from warpbook_hub.course.windows import windows_of
from warpbook_hub.database.tables import (
    FINAL_JOBS,
    JOBS,
    RESULTS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
)
from warpbook_hub.rules.ranks import better_of

_decode_facts = msgspec.json.Decoder(GradedFacts).decode


class Measurement(NamedTuple):
    """The speed of a submission."""

    submission: str
    ratio: Ratio


def best_of_each(
    connection: Connection, publication_id: str, people: Sequence[str], at_ms: int
) -> dict[str, Measurement]:
    """Give the best of each person as it was known at a moment.

    It is computed from results and their times, so nothing has to happen when a board
    freezes. A submission counts that was handed in before its person was due, is right,
    and was timed. Of its results the last run counts that had ended by then. Those of a
    final are apart.
    """
    windows = windows_of(connection, publication_id, people)
    # everybody's: SQLite would look for each person in each submission
    rows = connection.execute(
        select(
            SUBMISSIONS.c.id,
            SUBMISSIONS.c.received_ms,
            SUBMISSION_MEMBERS.c.person,
            RESULTS.c.run,
            RESULTS.c.stage,
            RESULTS.c.facts,
        )
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .join(RESULTS, RESULTS.c.submission == SUBMISSIONS.c.id)
        .where(
            SUBMISSIONS.c.publication == publication_id,
            RESULTS.c.received_ms <= at_ms,
            RESULTS.c.job.not_in(select(FINAL_JOBS.c.job)),
        )
        # "cpu" comes before "gpu"; of equal speeds the earlier submission is kept
        .order_by(
            SUBMISSIONS.c.received_ms,
            SUBMISSIONS.c.id,
            SUBMISSION_MEMBERS.c.person,
            RESULTS.c.run,
            RESULTS.c.stage,
        )
    ).all()
    best: dict[str, Measurement] = {}
    for (submission, person), results in groupby(
        rows, key=lambda row: (row.id, row.person)
    ):
        own = list(results)
        window = windows.get(person)
        if window is None or window.is_late(own[0].received_ms):
            continue
        ratio = _ratio_of(own)
        before = best.get(person)
        if ratio and (before is None or better_of(ratio, before.ratio)):
            best[person] = Measurement(submission, ratio)
    return best


def timed_ratio(facts: GradedFacts) -> Ratio | None:
    """Give the speed of what is right and was timed."""
    is_timed = facts.verdict == "right" and facts.is_speed_graded
    return facts.of_baseline if is_timed else None


def count_open(
    connection: Connection, publication_id: str, people: Sequence[str]
) -> int:
    """Count submissions in time of some people that are not graded to their end."""
    windows = windows_of(connection, publication_id, people)
    rows = connection.execute(
        select(SUBMISSIONS.c.id, SUBMISSIONS.c.received_ms, SUBMISSION_MEMBERS.c.person)
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .join(JOBS, JOBS.c.submission == SUBMISSIONS.c.id)
        .where(
            SUBMISSIONS.c.publication == publication_id,
            JOBS.c.state.in_(("queued", "leased", "parked")),
        )
    )
    in_time = {
        row.id
        for row in rows
        if row.person in windows and not windows[row.person].is_late(row.received_ms)
    }
    return len(in_time)


def _ratio_of(results: Iterable[Any]) -> Ratio | None:
    """Give the speed by the last run that has ended; None where it has none."""
    ratio: Ratio | None = None
    for result in results:
        facts = _decode_facts(result.facts)
        if result.stage == "gpu":
            ratio = timed_ratio(facts)
        elif facts.verdict == "wrong":
            ratio = None
    return ratio
