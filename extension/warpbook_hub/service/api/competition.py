"""What people do with a lab's competition."""

from __future__ import annotations

from warpbook.hub_protocol import Nothing
from warpbook_hub.competition import contests, entries, finals
from warpbook_hub.competition.board import Board, board
from warpbook_hub.competition.contests import Competition
from warpbook_hub.competition.finals import Final
from warpbook_hub.errors import Forbidden
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import CompetitionToOpen, FinalToStart, Pseudonym


def lab_board(request: Admitted, _: Nothing) -> Board | None:
    """Give the board that somebody may see; None where the lab has no competition."""
    competition = contests.competition(request.connection, request.lab.id)
    if competition is None:
        return None
    if not request.sees_marks:
        raise Forbidden("The board is shown once the marks of this lab are released.")
    return board(
        request.connection,
        request.now_ms,
        request.course.id,
        competition,
        request.viewer,
    )


def open_competition(request: Admitted, given: CompetitionToOpen) -> Competition:
    """Open a competition, or change when its board is frozen."""
    return contests.open_competition(*request.act, request.lab, given.freezes_ms)


def join(request: Admitted, given: Pseudonym) -> dict[str, str]:
    """Put who asks on the board, or give them another pseudonym."""
    pseudonym = entries.join(
        request.connection,
        request.now_ms,
        request.lab,
        request.viewer.person,
        given.pseudonym,
    )
    return {"pseudonym": pseudonym}


def leave(request: Admitted, _: Nothing) -> dict[str, str]:
    """Take who asks off the board."""
    entries.leave(request.connection, request.lab.id, request.viewer.person)
    return {"lab": request.lab.id}


def start_final(request: Admitted, given: FinalToStart) -> Final:
    """Have everybody's best measured again."""
    return finals.start_final(
        *request.act, request.lab, given.grader, given.device, given.rounds
    )


def end_competition(request: Admitted, _: Nothing) -> Competition:
    """Have everybody see the final board."""
    return contests.end_competition(*request.act, request.lab)
