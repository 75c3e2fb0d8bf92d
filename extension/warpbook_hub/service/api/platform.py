"""What instructors ask about the learning platform: its roster and its grades."""

from __future__ import annotations

from warpbook.hub_protocol import Nothing
from warpbook_hub.lti.ledger import Ledger, ledger, send_again
from warpbook_hub.lti.links import ask_again, bound_context, unbind
from warpbook_hub.service.admitted import Admitted


def scores(request: Admitted, _: Nothing) -> Ledger:
    """Tell how far the scores are, and what did not go through."""
    context = bound_context(request.connection, request.course.id)
    return ledger(request.connection, request.course.id, context.issuer)


def scores_again(request: Admitted, _: Nothing) -> dict[str, int]:
    """Have sent again what did not go through."""
    bound_context(request.connection, request.course.id)
    course = request.course.id
    scores = send_again(request.connection, request.now_ms, request.actor, course)
    return {"scores": scores}


def platform_roster(request: Admitted, _: Nothing) -> dict[str, str]:
    """Have the platform asked for its roster; the page tells what came of it."""
    bound_context(request.connection, request.course.id)
    ask_again(request.connection, request.course.id)
    return {"course": request.course.id}


def unbind_platform(request: Admitted, _: Nothing) -> dict[str, str]:
    """Let the next launch by an instructor bind the course anew."""
    course = request.course.id
    unbind(request.connection, request.now_ms, request.actor, course)
    return {"course": course}
