"""The board of a competition, as learners and as staff see it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook.hub_protocol import Ratio
from warpbook_hub.competition.contests import Competition, Phase
from warpbook_hub.competition.entries import competitors, pseudonym_of
from warpbook_hub.competition.finals import Final, final_ratios, last_final
from warpbook_hub.competition.measurements import best_of_each
from warpbook_hub.database.tables import MEMBERSHIPS, PEOPLE
from warpbook_hub.rules.ranks import ranked
from warpbook_hub.rules.visibility import Viewer, may_decide


class Entry(Struct, frozen=True):
    """A line of the board: neither source nor submission is named."""

    rank: int
    pseudonym: str
    #: time of the baseline over time taken
    of_baseline: Ratio
    is_own: bool
    #: their user name, for staff who look after them; else empty
    username: str


class Board(Struct, frozen=True):
    """Who is how fast, at a moment."""

    phase: Phase
    freezes_ms: int
    ended_ms: int | None
    #: of which moment the entries are
    shown_ms: int
    #: one's own; empty for who did not join
    pseudonym: str
    entries: tuple[Entry, ...]
    #: who joined and has no time here
    without_time: int
    #: for staff, and once the competition has ended for all
    final: Final | None
    #: by the rounds of the final
    final_entries: tuple[Entry, ...]


def board(
    connection: Connection,
    now_ms: int,
    course_id: str,
    competition: Competition,
    viewer: Viewer,
) -> Board:
    """Give the board that somebody may see.

    Learners see the frozen board after the freeze, staff today's. Once the competition
    has ended all see the same, and the ranks of the final. Names are given to those who
    decide about a person.
    """
    is_staff = viewer.role != "learner" and not viewer.is_hidden
    shown_ms = competition.shown_ms(now_ms, is_staff)
    publication = competition.publication
    pseudonyms = {
        one.person: one.pseudonym for one in competitors(connection, publication)
    }
    best = best_of_each(connection, publication, list(pseudonyms), shown_ms)
    names = _names(connection, course_id, viewer) if is_staff else {}

    def entries(ratios: Mapping[str, Ratio]) -> tuple[Entry, ...]:
        people = {pseudonyms[one]: one for one in ratios if one in pseudonyms}
        placed = ranked({name: ratios[person] for name, person in people.items()})
        return tuple(
            Entry(
                one.rank,
                one.name,
                one.ratio,
                people[one.name] == viewer.person,
                names.get(people[one.name], ""),
            )
            for one in placed
        )

    shows_final = is_staff or competition.ended_ms is not None
    final = last_final(connection, publication) if shows_final else None
    return Board(
        competition.phase(now_ms),
        competition.freezes_ms,
        competition.ended_ms,
        shown_ms,
        pseudonym_of(connection, publication, viewer.person),
        entries({person: measured.ratio for person, measured in best.items()}),
        len(pseudonyms) - len(best),
        final,
        entries(final_ratios(connection, final)) if final else (),
    )


def _names(connection: Connection, course_id: str, viewer: Viewer) -> dict[str, str]:
    """Give the user names of those about whom somebody decides, by person."""
    query = (
        select(PEOPLE.c.id, PEOPLE.c.username, MEMBERSHIPS.c.section)
        .join(MEMBERSHIPS, MEMBERSHIPS.c.person == PEOPLE.c.id)
        .where(MEMBERSHIPS.c.course == course_id)
    )
    return {
        row.id: row.username
        for row in connection.execute(query)
        if may_decide(viewer, row.section)
    }
