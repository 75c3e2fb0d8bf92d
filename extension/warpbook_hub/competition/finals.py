"""The final of a competition: everybody's best, measured again in turns on one GPU."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, func, insert, select

from warpbook.hub_protocol import GradedFacts, Ratio
from warpbook_hub import audit
from warpbook_hub.competition.contests import require_settled
from warpbook_hub.competition.entries import competitors
from warpbook_hub.competition.measurements import best_of_each, timed_ratio
from warpbook_hub.course.publications import Publication
from warpbook_hub.database.tables import (
    FINAL_JOBS,
    FINALS,
    JOBS,
    RESULTS,
    SUBMISSION_MEMBERS,
)
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.ids import new_id
from warpbook_hub.queue.entries import REGRADE_LANE, enqueue
from warpbook_hub.queue.finals import cancel_finals
from warpbook_hub.queue.graders import graders
from warpbook_hub.rules.ranks import of_rounds

LEAST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS = 3, 5, 15
_SEED_BITS = 48
_decode_facts = msgspec.json.Decoder(GradedFacts).decode


class Final(Struct, frozen=True):
    """A final as it was started, and how far it is."""

    id: str
    #: 1, 2, ... of its lab: the last one counts
    number: int
    grader: str
    device: str
    rounds: int
    seed: int
    started_ms: int
    #: of all jobs: those with a result, those that wait for a person, and how many
    done: int
    parked: int
    jobs: int


def start_final(
    connection: Connection,
    now_ms: int,
    actor: str,
    lab: Publication,
    grader: str,
    device: str,
    rounds: int = USUAL_ROUNDS,
) -> Final:
    """Have the best of everybody on the board measured again; earlier results stay.

    Each round has everybody once, in an order that is drawn anew. Until the last job
    ended the GPU does nothing else. What is left of an earlier final is cancelled.

    Args:
        actor: an instructor.
        lab: of the competition.
        grader: the id of the grader that has the GPU.
        device: the GPU's UUID, as the grader names it.
        rounds: 3 to 15.

    Raises:
        BadRequest: there are too few or too many rounds.
        Conflict: the grader does not have this GPU or takes no jobs, nobody has a time,
            or see `require_settled`.
    """
    if not LEAST_ROUNDS <= rounds <= MOST_ROUNDS:
        raise BadRequest(f"A final has {LEAST_ROUNDS} to {MOST_ROUNDS} rounds.")
    cancel_finals(connection, now_ms, lab.id)
    require_settled(connection, now_ms, lab)
    there = {
        (known.id, gpu.uuid)
        for known in graders(connection, now_ms)
        if known.state == "active"
        for gpu in known.devices
    }
    if (grader, device) not in there:
        raise Conflict("No grader that takes jobs has this GPU. Choose another one.")
    people = [one.person for one in competitors(connection, lab.id)]
    best = best_of_each(connection, lab.id, people, now_ms)
    if not best:
        raise Conflict("Nobody on the board has a time yet.")
    seed = secrets.randbits(_SEED_BITS)
    before = select(func.count()).where(FINALS.c.publication == lab.id)
    row: dict[str, Any] = {
        "id": new_id(),
        "number": connection.execute(before).scalar_one() + 1,
        "grader": grader,
        "device": device,
        "rounds": rounds,
        "seed": seed,
        "started_ms": now_ms,
    }
    connection.execute(insert(FINALS).values(publication=lab.id, **row))
    submissions = sorted({measured.submission for measured in best.values()})
    order = [
        (number, submission)
        for number, of_round in enumerate(_orders(submissions, rounds, seed), 1)
        for submission in of_round
    ]
    runs = _last_runs(connection, submissions)
    for place, (number, submission) in enumerate(order):
        run = runs[submission] + number
        job = enqueue(connection, now_ms, submission, "gpu", run, REGRADE_LANE)
        in_final = {"final": row["id"], "round": number, "place": place}
        connection.execute(insert(FINAL_JOBS).values(job=job, **in_final))
    audit.note(connection, now_ms, actor, "final started", lab.id, row)
    return Final(**row, done=0, parked=0, jobs=len(order))


def last_final(connection: Connection, publication_id: str) -> Final | None:
    """Give the final of a lab that counts; None if none was started."""
    query = (
        select(FINALS)
        .where(FINALS.c.publication == publication_id)
        .order_by(FINALS.c.number.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    states = connection.execute(
        select(JOBS.c.state)
        .join(FINAL_JOBS, FINAL_JOBS.c.job == JOBS.c.id)
        .where(FINAL_JOBS.c.final == row.id)
    ).scalars()
    all_states = list(states)
    return Final(
        row.id,
        row.number,
        row.grader,
        row.device,
        row.rounds,
        row.seed,
        row.started_ms,
        all_states.count("done"),
        all_states.count("parked"),
        len(all_states),
    )


def final_ratios(connection: Connection, final: Final) -> dict[str, Ratio]:
    """Give the speed of each person by all rounds that were timed.

    Who was found wrong in a round has none, nor who has less than three rounds, as
    where the GPU was too busy or jobs were cancelled.
    """
    rows = connection.execute(
        select(SUBMISSION_MEMBERS.c.person, RESULTS.c.facts)
        .join(RESULTS, RESULTS.c.submission == SUBMISSION_MEMBERS.c.submission)
        .join(FINAL_JOBS, FINAL_JOBS.c.job == RESULTS.c.job)
        .where(FINAL_JOBS.c.final == final.id)
    )
    rounds: dict[str, list[Ratio]] = {}
    wrong: set[str] = set()
    for row in rows:
        facts = _decode_facts(row.facts)
        ratio = timed_ratio(facts)
        if ratio is not None:
            rounds.setdefault(row.person, []).append(ratio)
        elif facts.verdict == "wrong":
            wrong.add(row.person)
    return {
        person: of_rounds(ratios)
        for person, ratios in rounds.items()
        if person not in wrong and len(ratios) >= LEAST_ROUNDS
    }


def _orders(submissions: Sequence[str], rounds: int, seed: int) -> list[list[str]]:
    """Draw the order of each round; the same seed gives the same orders."""
    drawn = random.Random(seed)
    return [drawn.sample(submissions, len(submissions)) for _ in range(rounds)]


def _last_runs(connection: Connection, submissions: Sequence[str]) -> dict[str, int]:
    query = (
        select(JOBS.c.submission, func.max(JOBS.c.run))
        .where(JOBS.c.submission.in_(submissions))
        .group_by(JOBS.c.submission)
    )
    return {row[0]: int(row[1]) for row in connection.execute(query)}
