"""A course of nbgrader that is taken over."""

from __future__ import annotations

from warpbook_hub.course.nbgrader_course import NbgraderChanges, NbgraderCourse
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.work.nbgrader_import import import_nbgrader


def nbgrader(admitted: Admitted, given: NbgraderCourse) -> NbgraderChanges:
    """Import a gradebook, or tell what an import would change."""
    connection = admitted.connection
    with connection.begin_nested() as savepoint:
        changes = import_nbgrader(
            connection, admitted.now_ms, admitted.actor, admitted.course.id, given
        )
        if given.is_preview:
            savepoint.rollback()
    return changes
