"""A hub, its class and its Ray cluster in simulated time, on a real database.

Everything that the database does is done, by the hub's own functions; that takes as
long in simulated time as it took here. All else is an event at a time.
"""

from __future__ import annotations

import heapq
import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from benchmarks.ray_placement import Placement
from benchmarks.simulated_class import (
    COURSE_LEARNERS,
    CPU_MS,
    DIFFERENCE,
    GPU_MS,
    GPUS,
    MINUTE_MS,
    MOST_ATTEMPTS,
    PATIENCE_MS,
    RIGHT_RATIO,
    SLOTS,
    SOURCE_CHARACTERS,
    THINK_MS,
    Run,
    Size,
    Work,
)
from tests.hub.core.course import (
    FOREVER,
    LAB_DIGEST,
    START_MS,
    Classroom,
    facts,
    publish_lab,
)
from warpbook.hub_protocol import (
    Device,
    Heartbeat,
    Hello,
    JobOrder,
    JobResult,
    LeaseName,
    Release,
    WorkRequest,
)
from warpbook_hub.course.courses import Course, create_course
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.tables import PEOPLE
from warpbook_hub.queue import completion, dispatch, graders
from warpbook_hub.work.submissions import receive

#: of one commit, as the hub's writer has it
MOST_TOGETHER = 64

Change = Callable[[Connection, int], Any]
#: what a driver yields: something to be written, or until when it works or waits
Driver = Generator[Change | float, Any, None]


@dataclass
class SimulatedHub:
    """All of it; `run` fills what is counted."""

    room: Classroom
    size: Size
    placement: Placement
    works: list[Work] = field(default_factory=list)
    writes: int = 0
    refused: int = 0
    lost: int = 0
    writer_busy_ms: Counter[int] = field(default_factory=Counter)
    driver_busy_ms: Counter[int] = field(default_factory=Counter)
    slot_busy_ms: Counter[int] = field(default_factory=Counter)
    gpu_busy_ms: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin at 0 ms with nothing that happens."""
        self._rng = random.Random(1)
        self._now_ms = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._waiting: list[tuple[Change, Callable[[Any], None]]] = []
        self._is_writing = False
        self._runs: dict[str, Run] = {}
        self._ended: list[tuple[Run, bool]] = []
        self._away: set[int] = set()
        self._driver: Driver | None = None
        #: steps of drivers; one that waits is woken by what ends
        self._step, self._is_idle = 0, False
        #: by person
        self._labs: dict[str, str] = {}
        self._by_source: dict[str, Work] = {}
        self._open = 0

    def run(self) -> None:
        """Have everybody hand in, and go on until all is graded."""
        self._labs = self._enrol()
        within_ms = self.size.within_min * MINUTE_MS
        for person in self._labs:
            # twice as many at the deadline as on average
            handed_ms = within_ms * self._rng.random() ** 0.5
            self._at(handed_ms, lambda person=person: self._hand_in(person, 1))
        self._open = len(self._labs)
        with self.room.database.write() as connection:
            token = graders.register(connection, START_MS, "hub", "ray")
            self._grader = graders.authenticate(connection, token)
        self._begin_driver()
        if self.size.has_losses:
            self._at(within_ms * 0.9, self._lose_head)
            for minute in range(1, int(self.size.within_min) + 1):
                self._at(minute * MINUTE_MS, self._lose_node)
        last_ms = within_ms + PATIENCE_MS
        while self._open and self._now_ms < last_ms:
            self._now_ms, _, happens = heapq.heappop(self._events)
            happens()

    def unfinished(self) -> int:
        """Count submissions without a result."""
        return sum(not work.result_ms for work in self.works)

    def overtaken_ms(self) -> float:
        """Give how long at most a first attempt was leased after a later one."""
        firsts = sorted(
            (work for work in self.works if work.attempt == 1),
            key=lambda work: work.received_ms,
        )
        earliest_ms, most_ms = float("inf"), 0.0
        for work in reversed(firsts):
            most_ms = max(most_ms, work.leased_ms - earliest_ms)
            earliest_ms = min(earliest_ms, work.leased_ms)
        return most_ms

    def _enrol(self) -> dict[str, str]:
        """Begin courses with a lab each; give everybody's lab."""
        labs: dict[str, str] = {}
        with self.room.database.write() as connection:
            for first in range(0, self.size.learners, COURSE_LEARNERS):
                name = f"course{first // COURSE_LEARNERS}"
                create_course(connection, START_MS, "hub", Course(name, name))
                lab = publish_lab(connection, name, windows={"": FOREVER})
                last = min(first + COURSE_LEARNERS, self.size.learners)
                names = [f"{name}.{number}" for number in range(first, last)]
                rows = read_roster("\n".join(["username", *names]).encode())
                import_roster(connection, START_MS, "hub", name, rows)
                query = select(PEOPLE.c.id).where(
                    PEOPLE.c.username.startswith(f"{name}.")
                )
                labs.update(dict.fromkeys(connection.execute(query).scalars(), lab))
        return labs

    def _at(self, at_ms: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_ms, next(self._numbers), happens))

    # the database's writer

    def _write(self, change: Change, then: Callable[[Any], None]) -> None:
        self._waiting.append((change, then))
        if not self._is_writing:
            self._commit()

    def _commit(self) -> None:
        """Write what waits in one transaction, which takes as long as it takes."""
        together = self._waiting[:MOST_TOGETHER]
        del self._waiting[:MOST_TOGETHER]
        now_ms = START_MS + int(self._now_ms)
        begin_s = time.perf_counter()
        with self.room.database.write() as connection:
            answers = []
            for change, _ in together:
                with connection.begin_nested():
                    answers.append(change(connection, now_ms))
        took_ms = (time.perf_counter() - begin_s) * 1000
        self.writes += len(together)
        count(self.writer_busy_ms, self._now_ms, took_ms)
        self._is_writing = True

        def committed() -> None:
            self._is_writing = False
            if self._waiting:
                self._commit()
            for (_, then), answer in zip(together, answers, strict=True):
                then(answer)

        self._at(self._now_ms + took_ms, committed)

    # the class

    def _hand_in(self, person: str, attempt: int) -> None:
        work = Work(person, attempt, self._now_ms)
        source = f"// {len(self.works)} ".ljust(SOURCE_CHARACTERS, "x")
        self.works.append(work)
        self._by_source[source] = work
        lab = self._labs[person]

        def received(_: Any) -> None:
            work.received_ms = self._now_ms

        self._write(
            lambda connection, now_ms: receive(connection, now_ms, lab, person, source),
            received,
        )

    def _graded(self, order: JobOrder, is_right: bool) -> None:
        work = self._by_source[order.source]
        if order.stage == "cpu" and is_right:
            return
        work.result_ms = self._now_ms
        if is_right or work.attempt == MOST_ATTEMPTS:
            self._open -= 1
            return
        again_ms = self._now_ms + self._rng.uniform(*THINK_MS)
        self._at(again_ms, lambda: self._hand_in(work.person, work.attempt + 1))

    # the driver, as `WorkLoop` and `RayPool` are

    def _begin_driver(self) -> None:
        self._driver = self._work(self._grader)
        self._go_on(self._driver)

    def _go_on(self, driver: Driver, answer: Any = None) -> None:
        if driver is not self._driver:
            return
        self._is_idle = False
        self._step += 1
        number, begun_ms = self._step, self._now_ms
        step = driver.send(answer)

        def waited() -> None:
            # unless it was woken
            if number == self._step:
                self._go_on(driver)

        def answered(value: Any) -> None:
            count(self.driver_busy_ms, begun_ms, self._now_ms - begun_ms)
            self._go_on(driver, value)

        if callable(step):
            request_ms = self._rng.choice(self.placement.request_ms)
            self._at(begun_ms + request_ms, lambda: self._write(step, answered))
        else:
            self._at(begun_ms + step, waited)

    def _work(self, grader: str) -> Driver:
        has = self._has()
        yield lambda connection, now_ms: graders.hello(connection, now_ms, grader, has)
        beat_ms = 0.0
        while True:
            if self._now_ms >= beat_ms:
                names = [name_of(run.order) for run in self._runs.values()]
                beat = Heartbeat(tuple(names))
                yield lambda connection, now_ms, beat=beat: graders.heartbeat(
                    connection, now_ms, grader, beat
                )
                beat_ms = self._now_ms + 1000 * dispatch.HEARTBEAT_S
            while self._ended:
                yield from self._hand_over(grader, *self._ended.pop(0))
            request = self._free()
            orders: tuple[JobOrder, ...] = ()
            if request.free_cpu_slots or request.free_devices:
                work = yield lambda connection, now_ms, request=request: dispatch.lease(
                    connection, now_ms, grader, request
                )
                orders = work.jobs
            for order in orders:
                submit_ms = self._rng.choice(self.placement.submit_ms)
                count(self.driver_busy_ms, self._now_ms, submit_ms)
                yield submit_ms
                self._begin(order)
            if not orders and not self._ended:
                self._is_idle = True
                yield 1000 * dispatch.POLL_S

    def _has(self) -> Hello:
        devices = tuple(Device(uuid, "H100") for uuid in self._devices())
        return Hello(self.size.slots, devices)

    def _devices(self) -> list[str]:
        return [
            f"GPU-{node}-{number}"
            for node in range(self.size.nodes)
            for number in range(GPUS)
            if node not in self._away
        ]

    def _free(self) -> WorkRequest:
        taken = Counter(run.order.device for run in self._runs.values())
        free = tuple(uuid for uuid in self._devices() if uuid not in taken)
        slots = (self.size.nodes - len(self._away)) * SLOTS - taken[""]
        return WorkRequest(max(0, slots), free)

    def _begin(self, order: JobOrder) -> None:
        """Have a job run on its GPU's node, or where most slots are free."""
        if order.device:
            node = int(order.device.split("-")[1])
            own_ms = GPU_MS
        else:
            taken = Counter(r.node for r in self._runs.values() if not r.order.device)
            there = (n for n in range(self.size.nodes) if n not in self._away)
            node = min(there, key=lambda n: taken[n])
            own_ms = CPU_MS
            work = self._by_source[order.source]
            work.leased_ms = work.leased_ms or self._now_ms
        run = self._runs[order.job] = Run(order, node, self._now_ms)
        own_ms *= self._rng.uniform(1 - DIFFERENCE, 1 + DIFFERENCE)
        around_ms = self._rng.choice(self.placement.around_ms)
        self._at(self._now_ms + own_ms + around_ms, lambda: self._end(run, False))

    def _end(self, run: Run, is_crash: bool) -> None:
        if run.is_over:
            return
        run.is_over = True
        busy_ms = self.gpu_busy_ms if run.order.device else self.slot_busy_ms
        count(busy_ms, run.begun_ms, self._now_ms - run.begun_ms)
        self._ended.append((run, is_crash))
        if self._is_idle and self._driver is not None:
            self._go_on(self._driver)

    def _hand_over(self, grader: str, run: Run, is_crash: bool) -> Driver:
        order = run.order
        if is_crash:
            given_back = Release(name_of(order), "crashed", "Its node was lost.")
            yield lambda connection, now_ms: completion.release(
                connection, now_ms, grader, given_back
            )
            self.lost += 1
        else:
            is_right = bool(order.device) or self._rng.random() < RIGHT_RATIO
            graded = facts() if is_right else facts("wrong", 2)
            digest = order.source_digest
            result = JobResult(name_of(order), graded, LAB_DIGEST, digest, 1000)
            receipt = yield lambda connection, now_ms: completion.finish(
                connection, now_ms, grader, result
            )
            self.refused += not receipt.is_accepted
            if receipt.is_accepted:
                self._graded(order, is_right)
        del self._runs[order.job]

    # losses

    def _lose_node(self) -> None:
        """Kill a node; what ran there is given up once its loss is known."""
        there = [node for node in range(self.size.nodes) if node not in self._away]
        node = self._rng.choice(there)
        self._away.add(node)
        loss_ms = self._rng.choice(self.placement.node_loss_ms)
        runs = [run for run in self._runs.values() if run.node == node]
        known_ms = self._now_ms + loss_ms
        for run in runs:
            if not run.is_over:
                run.is_over = True
                self._at(known_ms, lambda run=run: self._give_up(run))
        back_ms = known_ms + self._rng.choice(self.placement.node_back_ms)
        self._at(back_ms, lambda: self._away.discard(node))

    def _give_up(self, run: Run) -> None:
        # unless the head was lost meanwhile
        if self._runs.get(run.order.job) is run:
            run.is_over = False
            self._end(run, True)

    def _lose_head(self) -> None:
        """End the driver and all that runs; another one begins later."""
        self._driver = None
        for run in self._runs.values():
            run.is_over = True
        self.lost += len(self._runs)
        self._runs, self._ended = {}, []
        back_ms = self._rng.choice(self.placement.head_back_ms)
        self._at(self._now_ms + back_ms, self._begin_driver)


def count(busy_ms: Counter[int], at_ms: float, ms: float) -> None:
    """Note that something was busy from a time on."""
    while ms > 0:
        minute = int(at_ms // MINUTE_MS)
        here_ms = min(ms, (minute + 1) * MINUTE_MS - at_ms)
        busy_ms[minute] += here_ms  # type: ignore[assignment]
        at_ms, ms = float((minute + 1) * MINUTE_MS), ms - here_ms


def name_of(order: JobOrder) -> LeaseName:
    """Name a lease."""
    return LeaseName(order.job, order.fence)
