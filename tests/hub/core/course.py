"""A small course, and a grader that answers as a test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection

from warpbook.hub_protocol import (
    Device,
    GradedFacts,
    Hello,
    JobOrder,
    JobResult,
    LeaseName,
    Ratio,
    Receipt,
    SubmissionReceipt,
    Verdict,
    WorkRequest,
)
from warpbook_hub.course.courses import Course, add_staff, create_course, person_of
from warpbook_hub.course.publications import Publication, publish
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.queue import completion, dispatch, graders
from warpbook_hub.rules.lateness import HOUR_MS, Window
from warpbook_hub.work.submissions import receive

START_MS = 1_790_000_000_000
DUE_MS = START_MS + 100 * HOUR_MS
CLOSES_MS = DUE_MS + 100 * HOUR_MS
WINDOW = Window(START_MS, DUE_MS, CLOSES_MS)
#: of a lab that takes submissions whatever the clock says
FOREVER = Window(0, 7_000_000_000_000, 7_100_000_000_000)
LAB_DIGEST = "ab" * 32
ROSTER = b"""username,first_name,last_name,section,team
ada,Ada,Lovelace,monday,
bob,Bob,Noyce,monday,red
cyd,Cyd,Charisse,tuesday,red
"""


def facts(
    verdict: Verdict = "right", right: int = 4, of: int = 4, kind: str = ""
) -> GradedFacts:
    status = "passed" if verdict == "right" else "failed"
    return GradedFacts(verdict, status, "so it went", right, of, kind)


def timed(middle: float, spread: float = 0.1) -> GradedFacts:
    """What a GPU says of a source that is right: its speed, plus and minus a spread."""
    ratio = Ratio(middle - spread, middle, middle + spread)
    return GradedFacts("right", "passed", "so it went", 4, 4, "", True, ratio, ratio)


@dataclass
class Classroom:
    """A course with three learners and a lab, at a time that a test moves."""

    database: HubDatabase
    lab: str
    people: dict[str, str]
    instructor: str
    now_ms: int = START_MS
    tokens: dict[str, str] = field(default_factory=dict)

    def submit(
        self, username: str, source: str = "// mine", replace: bool = False
    ) -> SubmissionReceipt:
        # nobody comes at the same moment
        self.now_ms += 1
        with self.database.write() as connection:
            return receive(
                connection,
                self.now_ms,
                self.lab,
                self.people[username],
                source,
                replace=replace,
            )

    def submit_elsewhere(self, source: str) -> None:
        """Hand in as the instructor of another course of the hub, which is begun."""
        self.now_ms += 1
        with self.database.write() as connection:
            who = (connection, self.now_ms, "hub")
            create_course(*who, Course("other", "Another"))
            zed = add_staff(*who, "other", "zed", "instructor")
            lab = publish_lab(connection, "other", windows={"": FOREVER})
            receive(connection, self.now_ms, lab, zed, source)

    def grader(self, name: str = "one", cpu_slots: int = 1, gpus: int = 0) -> str:
        with self.database.write() as connection:
            token = graders.register(connection, self.now_ms, "hub", name)
            grader = graders.authenticate(connection, token)
            devices = tuple(Device(f"GPU-{name}-{n}", "H100") for n in range(gpus))
            hello = Hello(cpu_slots, devices)
            graders.hello(connection, self.now_ms, grader, hello)
        self.tokens[grader] = token
        return grader

    def lease(
        self, grader: str, cpu: int = 1, devices: tuple[str, ...] = ()
    ) -> tuple[JobOrder, ...]:
        with self.database.write() as connection:
            work = dispatch.lease(
                connection, self.now_ms, grader, WorkRequest(cpu, devices)
            )
        return work.jobs

    def finish(
        self, grader: str, order: JobOrder, graded: GradedFacts | None = None
    ) -> Receipt:
        result = JobResult(
            LeaseName(order.job, order.fence),
            graded or facts(),
            LAB_DIGEST,
            order.source_digest,
            1000,
            reference="// reference" if order.wants_reference else "",
        )
        with self.database.write() as connection:
            return completion.finish(connection, self.now_ms, grader, result)

    def grade(
        self, grader: str, graded: GradedFacts | None = None, device: str = ""
    ) -> JobOrder:
        """Lease one job and finish it a second later."""
        devices = (device,) if device else ()
        (order,) = self.lease(grader, 0 if device else 1, devices)
        self.now_ms += 1000
        assert self.finish(grader, order, graded).is_accepted
        return order


def prepare(path: Path) -> None:
    """Do nothing: the database is the file. Tests on PostgreSQL replace it."""


def classroom(path: Path, course: Course | None = None, **lab: object) -> Classroom:
    """Begin a course in a new database."""
    prepare(path)
    database = HubDatabase(path)
    settings = course or Course("gpu101", "GPU programming")
    with database.write() as connection:
        create_course(connection, START_MS, "hub", settings)
        instructor = add_staff(
            connection, START_MS, "hub", settings.id, "grace", "instructor"
        )
        import_roster(
            connection, START_MS, instructor, settings.id, read_roster(ROSTER)
        )
        published = publish_lab(connection, settings.id, **lab)
        people = {name: person_of(connection, name) for name in ("ada", "bob", "cyd")}
        people["grace"] = instructor
    return Classroom(database, published, people, instructor)


def publish_lab(connection: Connection, course: str, **changed: object) -> str:
    given = {
        "course": course,
        "lab": "vector-add",
        "title": "Vector add",
        "language": "cuda",
        "is_timed": True,
        "windows": {"": WINDOW},
        **changed,
    }
    return publish(connection, START_MS, "hub", Publication(**given))
