"""What changes a course as a whole: another term, labs of nbgrader, new versions."""

from __future__ import annotations

from sqlalchemy import select

from warpbook_hub.course.nbgrader_course import NbgraderChanges, NbgraderCourse
from warpbook_hub.course.next_term import Term, TermCopy, copy_course
from warpbook_hub.course.versions import publish_version
from warpbook_hub.database.tables import JOBS, SUBMISSIONS, outside_finals
from warpbook_hub.errors import Conflict, NotFound
from warpbook_hub.queue.control import retry_parked
from warpbook_hub.queue.coverage import Coverage
from warpbook_hub.queue.dispatch import take_back
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.lab_texts import lab_of, version_files
from warpbook_hub.service.parameters import NextTerm, VersionToPublish
from warpbook_hub.work.decisions import regrade
from warpbook_hub.work.nbgrader_import import import_nbgrader


def next_term(admitted: Admitted, given: NextTerm) -> TermCopy:
    connection = admitted.connection
    term = Term(given.id, given.title, given.days, given.zone)
    with connection.begin_nested() as savepoint:
        copied = copy_course(
            connection, admitted.now_ms, admitted.actor, admitted.course.id, term
        )
        if given.is_preview:
            savepoint.rollback()
    return copied


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


def publish_this_version(admitted: Admitted, given: VersionToPublish) -> dict[str, int]:
    """Publish the version that the graders have, and grade again what is asked."""
    connection, now_ms, lab = admitted.connection, admitted.now_ms, admitted.lab
    about = lab_of(lab.lab)
    if about is None:
        raise NotFound(f"There is no lab `{lab.lab}` here any more.")
    versions = Coverage(connection, now_ms).of(lab.lab).versions
    if given.digest not in (versions or ("",)):
        raise Conflict("The graders have another version by now. Load the page anew.")
    publish_version(
        connection,
        now_ms,
        admitted.actor,
        lab,
        given.digest,
        about.speed is not None,
        version_files(lab.lab),
    )
    of_lab = select(JOBS).where(JOBS.c.publication == lab.id, outside_finals())
    for job in connection.execute(of_lab.where(JOBS.c.state == "leased")).all():
        # its grader was told to grade the version before
        take_back(connection, now_ms, job, "Another version was published.", False)
    if given.again == "nothing":
        return {"graded again": 0}
    if given.again == "waiting":
        parked = connection.execute(of_lab.where(JOBS.c.state == "parked")).all()
        for job in parked:
            retry_parked(connection, now_ms, admitted.actor, job.id)
        return {"graded again": len(parked)}
    handed_in = select(SUBMISSIONS.c.id).where(
        SUBMISSIONS.c.publication == lab.id, SUBMISSIONS.c.replaced_ms.is_(None)
    )
    names = connection.execute(handed_in).scalars().all()
    reason = "another version of the lab was published"
    begun = regrade(connection, now_ms, admitted.actor, names, reason)
    return {"graded again": begun}
