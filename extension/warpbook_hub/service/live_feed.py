"""Tells open pages what has changed: rows of the class, the queue, one's own place.

It looks at the database after something was written, and never on the event loop. What
happened is seen from jobs that began, changed or ended since it looked last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection, or_, select

from warpbook.hub_protocol import Place
from warpbook_hub.class_view import ClassRow, class_rows
from warpbook_hub.clock import HubClock
from warpbook_hub.course.courses import staff_members
from warpbook_hub.course.publications import publications
from warpbook_hub.course.windows import dates_after
from warpbook_hub.database.tables import JOBS, PUBLICATIONS, SUBMISSION_MEMBERS
from warpbook_hub.errors import HubError
from warpbook_hub.queue.overview import places
from warpbook_hub.service.row_view import row_view
from warpbook_hub.work.marks import LabWork, all_work, work_of_people

if TYPE_CHECKING:
    from warpbook_hub.service.service import Service

LOG = logging.getLogger("warpbook_hub")
#: between two looks
PAUSE_S = 0.25
#: who is stuck is a matter of time, too: all rows are computed anew so often
WHOLE_S = 60.0
#: marks at most
KEPT_MS = 600_000
_OPEN = ("queued", "leased", "parked")


class Watcher(NamedTuple):
    """An open page."""

    course: str
    person: str
    is_staff: bool
    #: the only one whose rows are sent; "" is all
    section: str
    #: whose state is shown in rows
    lab: str
    send: Callable[[dict[str, Any]], None]
    #: gives what the page may be sent now; raises HubError if nothing
    admitted: Callable[[Connection], Watcher]
    close: Callable[[], None]


class _OpenJob(NamedTuple):
    submission: str
    course: str
    state: str
    stage: str
    hidden_ms: int | None

    @property
    def tells_place(self) -> bool:
        """Whether its learners may know of it: a GPU takes only what is right."""
        return self.stage == "cpu" or self.hidden_ms is None


class _Look(NamedTuple):
    jobs: dict[str, _OpenJob]
    #: submissions with which something happened, with their courses
    touched: dict[str, str]
    #: whose they are
    members: dict[str, list[str]]
    #: of what waits or runs, by submission
    places: dict[str, Place]
    rows: dict[str, list[ClassRow]]


class _KeptWork(NamedTuple):
    by_person: Mapping[str, tuple[LabWork, ...]]
    #: a lab opens or closes then, which marks tell
    until_ms: int


class LiveFeed:
    """All open pages, and what they were told last."""

    def __init__(self, clock: HubClock) -> None:
        self._clock = clock
        self._watchers: dict[object, Watcher] = {}
        self._has_changed = asyncio.Event()
        self._lock = asyncio.Lock()
        self._jobs: dict[str, _OpenJob] = {}
        self._looked_ms = 0
        #: by course and person
        self._rows: dict[str, dict[str, ClassRow]] = {}
        #: that were asked for, by course
        self._work: dict[str, _KeptWork] = {}
        #: whose marks may be others by now, by course
        self._changed: dict[str, set[str]] = {}
        self._is_stale = False
        self._told_places: dict[str, Place] = {}

    def note_change(self) -> None:
        """Look soon: something was written."""
        self._has_changed.set()

    def note_course_change(self) -> None:
        """Compute all rows anew when they are next wanted: rosters or labs changed."""
        self._is_stale = True
        self._has_changed.set()

    def add(self, key: object, watcher: Watcher) -> None:
        """Tell a page of changes from now on."""
        self._watchers[key] = watcher
        # it is told its places, which others know
        self._told_places.clear()
        self._has_changed.set()

    def remove(self, key: object) -> None:
        self._watchers.pop(key, None)

    async def rows(self, service: Service, course: str) -> list[ClassRow]:
        async with self._lock:
            if self._is_stale:
                await self._reload(service)
            if course not in self._rows:
                await self._load(service, course)
            return list(self._rows[course].values())

    async def work(
        self, service: Service, course: str, learners: Collection[str]
    ) -> Mapping[str, tuple[LabWork, ...]]:
        """Give marks and work of learners of a course, as staff see them."""
        async with self._lock:
            if self._has_changed.is_set():
                self._has_changed.clear()
                await self._look(service, is_whole=False)
            now_ms, kept = self._clock.now_ms(), self._work.get(course)
            changed = self._changed.pop(course, set())
            if kept is None or now_ms >= kept.until_ms:
                kept = await service.read(lambda c: _kept_work(c, now_ms, course))
            elif people := sorted(changed | (set(learners) - kept.by_person.keys())):
                anew = await service.read(
                    lambda c: work_of_people(c, now_ms, course, people)
                )
                kept = _KeptWork({**kept.by_person, **anew}, kept.until_ms)
            self._work[course] = kept
            return kept.by_person

    async def run(self, service: Service) -> None:
        """Look whenever something was written, until it is cancelled."""
        whole_s = time.monotonic()
        while True:
            change = asyncio.ensure_future(self._has_changed.wait())
            try:
                # `wait_for` forgets a cancellation that comes with the change
                await asyncio.wait([change], timeout=WHOLE_S)
            finally:
                change.cancel()
            self._has_changed.clear()
            is_whole = time.monotonic() - whole_s >= WHOLE_S
            try:
                async with self._lock:
                    await self._look(service, is_whole)
            except HubError as problem:
                LOG.warning("open pages are not updated: %s", problem)
            # whatever it is, pages that are open go on
            except Exception:
                LOG.exception("open pages are not updated")
            if is_whole:
                whole_s = time.monotonic()
            await asyncio.sleep(PAUSE_S)

    async def _load(self, service: Service, course: str) -> None:
        now_ms = self._clock.now_ms()
        rows = await service.read(lambda c: class_rows(c, now_ms, course))
        self._rows[course] = {row.person: row for row in rows}

    async def _reload(self, service: Service) -> None:
        """Compute all rows anew, and tell the pages that show others."""
        if self._is_stale:
            self._work.clear()
        self._is_stale = False
        await self._close_changed(service)
        for course in list(self._rows):
            before = self._rows[course]
            await self._load(service, course)
            after = self._rows[course]
            changed = [row for row in after.values() if row != before.get(row.person)]
            if set(before) != set(after):
                self._tell_staff(course, {"type": "reload"})
            else:
                self._tell_rows(course, changed)

    async def _load_missing(self, service: Service) -> None:
        """Send all rows to pages that were opened before this service started."""
        watched = {
            watcher.course
            for watcher in self._watchers.values()
            if watcher.is_staff and watcher.lab
        }
        for course in watched - set(self._rows):
            await self._load(service, course)
            self._tell_rows(course, self._rows[course].values())

    async def _close_changed(self, service: Service) -> None:
        """Close pages whose person has another role or section than when they opened.

        A page that is closed connects again, as who its person is by then.
        """
        if not self._watchers:
            return
        watchers = dict(self._watchers)

        def admitted_now(connection: Connection) -> dict[object, Watcher | None]:
            staff = staff_members(connection)
            return {
                key: _admitted(connection, page)
                for key, page in watchers.items()
                if page.is_staff or (page.course, page.person) in staff
            }

        for key, page in (await service.read(admitted_now)).items():
            if page != watchers[key]:
                self.remove(key)
                watchers[key].close()

    async def _look(self, service: Service, is_whole: bool) -> None:
        if self._is_stale or is_whole:
            await self._reload(service)
        await self._load_missing(service)
        since_ms, now_ms = self._looked_ms, self._clock.now_ms()
        known, courses = self._jobs, list(self._rows)
        look = await service.read(lambda c: _look(c, now_ms, since_ms, known, courses))
        # what was written while it looked is looked at once more
        self._looked_ms, self._jobs = now_ms - 1, look.jobs
        for submission, course in look.touched.items():
            people = look.members.get(submission, ())
            self._changed.setdefault(course, set()).update(people)
        for course, rows in look.rows.items():
            changed = [row for row in rows if self._rows[course].get(row.person) != row]
            self._rows[course].update({row.person: row for row in changed})
            self._tell_rows(course, changed)
        for course in set(look.touched.values()):
            self._tell_staff(course, {"type": "queue"})
        self._tell_learners(look)

    def _tell_rows(self, course: str, rows: Collection[ClassRow]) -> None:
        if not rows:
            return
        for watcher in list(self._watchers.values()):
            if watcher.course == course and watcher.is_staff and watcher.lab:
                views = [
                    row_view(row, watcher.lab)
                    for row in rows
                    if watcher.section in ("", row.section)
                ]
                if views:
                    watcher.send({"type": "rows", "rows": views})

    def _tell_staff(self, course: str, message: dict[str, Any]) -> None:
        for watcher in list(self._watchers.values()):
            if watcher.course == course and watcher.is_staff:
                watcher.send(message)

    def _tell_learners(self, look: _Look) -> None:
        by_person: dict[str, list[Watcher]] = {}
        for watcher in self._watchers.values():
            by_person.setdefault(watcher.person, []).append(watcher)
        for submission, people in look.members.items():
            messages: list[dict[str, Any]] = []
            if submission in look.touched:
                messages.append({"type": "submission", "submission": submission})
            place = look.places.get(submission)
            if place is not None and place != self._told_places.get(submission):
                messages.append(
                    {"type": "place", "submission": submission, "place": place}
                )
            for person in people:
                for watcher in by_person.get(person, ()):
                    for message in messages:
                        watcher.send(message)
        self._told_places = look.places


def _kept_work(connection: Connection, now_ms: int, course: str) -> _KeptWork:
    labs = [lab.id for lab in publications(connection, course)]
    dates = (date for lab in labs for date in dates_after(connection, lab, now_ms))
    # no page's request tells of a platform's roster
    until_ms = min([now_ms + KEPT_MS, *dates])
    return _KeptWork(all_work(connection, now_ms, course), until_ms)


def _admitted(connection: Connection, page: Watcher) -> Watcher | None:
    try:
        return page.admitted(connection)
    except HubError:
        return None


def _look(
    connection: Connection,
    now_ms: int,
    since_ms: int,
    known: dict[str, _OpenJob],
    courses: Collection[str],
) -> _Look:
    columns = (
        JOBS.c.id,
        JOBS.c.submission,
        PUBLICATIONS.c.course,
        JOBS.c.state,
        JOBS.c.stage,
        PUBLICATIONS.c.hidden_ms,
    )
    query = select(*columns).join(PUBLICATIONS, PUBLICATIONS.c.id == JOBS.c.publication)
    rows = connection.execute(query.where(JOBS.c.state.in_(_OPEN))).all()
    jobs = {row.id: _OpenJob(*row[1:]) for row in rows}
    touched = {
        job.submission: job.course
        for name, job in (*jobs.items(), *known.items())
        if jobs.get(name) != known.get(name)
    }
    # what began and ended between two looks
    ended = query.where(
        or_(JOBS.c.finished_ms >= since_ms, JOBS.c.queued_ms >= since_ms)
    )
    if since_ms:
        touched |= {row.submission: row.course for row in connection.execute(ended)}
    where = places(connection, now_ms)
    by_submission = {
        job.submission: where[name]
        for name, job in jobs.items()
        if name in where and job.tells_place
    }
    members: dict[str, list[str]] = {}
    wanted = [*{*touched, *by_submission}]
    for start in range(0, len(wanted), 500):
        part = SUBMISSION_MEMBERS.c.submission.in_(wanted[start : start + 500])
        for member in connection.execute(select(SUBMISSION_MEMBERS).where(part)):
            members.setdefault(member.submission, []).append(member.person)
    changed: dict[str, list[ClassRow]] = {}
    for course in courses:
        people = {
            person
            for submission, of_course in touched.items()
            if of_course == course
            for person in members.get(submission, ())
        }
        if people:
            changed[course] = class_rows(
                connection, now_ms, course, people=sorted(people)
            )
    return _Look(jobs, touched, members, by_submission, changed)
