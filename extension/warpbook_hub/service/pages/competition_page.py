"""A lab's competition: what its own page says of it, and the board."""

from __future__ import annotations

from typing import Any

from warpbook.hub_protocol import Nothing
from warpbook_hub.competition import contests
from warpbook_hub.competition.entries import MOST_PSEUDONYM, pseudonym_of
from warpbook_hub.competition.finals import LEAST_ROUNDS, MOST_ROUNDS, USUAL_ROUNDS
from warpbook_hub.queue.graders import graders
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.competition import lab_board


def competition_card(request: Admitted) -> dict[str, Any]:
    connection, lab = request.connection, request.lab
    competition = contests.competition(connection, lab.id)
    if competition is None:
        return {"phase": "", "may_open": contests.may_have(lab)}
    return {
        "phase": competition.phase(request.now_ms),
        "freezes_ms": competition.freezes_ms,
        "pseudonym": pseudonym_of(connection, lab.id, request.viewer.person),
        "most_pseudonym": MOST_PSEUDONYM,
        "may_join": request.viewer.role == "learner" and not request.viewer.is_hidden,
    }


def board_page(request: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the board; instructors freeze, measure and end there."""
    connection, lab = request.connection, request.lab
    takes_jobs = [
        known
        for known in graders(connection, request.now_ms)
        if known.state == "active"
    ]
    last_due_ms = contests.last_due_ms(connection, lab)
    return {
        "lab": lab,
        "board": lab_board(request, Nothing()),
        "may_open": contests.may_have(lab),
        "default_freeze_ms": contests.default_freeze_ms(lab),
        "is_over": request.now_ms > last_due_ms,
        "last_due_ms": last_due_ms,
        "gpus": [(known, gpu) for known in takes_jobs for gpu in known.devices],
        "rounds": (LEAST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS),
    }
