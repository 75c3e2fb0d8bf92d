"""A course that is begun anew for another term."""

from __future__ import annotations

from warpbook_hub.course.next_term import Term, TermCopy, copy_course
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import NextTerm


def next_term(admitted: Admitted, given: NextTerm) -> TermCopy:
    """Begin the course, or tell how it would be."""
    connection = admitted.connection
    term = Term(given.id, given.title, given.days, given.zone)
    with connection.begin_nested() as savepoint:
        copied = copy_course(
            connection, admitted.now_ms, admitted.actor, admitted.course.id, term
        )
        if given.is_preview:
            savepoint.rollback()
    return copied
