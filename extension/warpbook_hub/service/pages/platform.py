"""The page about the learning platform."""

from __future__ import annotations

from typing import Any

from warpbook.hub_protocol import Nothing
from warpbook_hub.lti.ledger import ledger
from warpbook_hub.lti.links import context_of
from warpbook_hub.service.admitted import Admitted


def platform_page(request: Admitted, _: Nothing) -> dict[str, Any]:
    """Show what the course is there, its roster, and scores that did not go through."""
    connection, course = request.connection, request.course.id
    context = context_of(connection, course)
    scores = None if context is None else ledger(connection, course, context.issuer)
    return {"context": context, "scores": scores}
