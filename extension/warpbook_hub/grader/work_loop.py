"""What a grader does: lease, run, hand over; and go on while the hub is away."""

from __future__ import annotations

import time
from collections.abc import Callable

from warpbook.hub_client import HubAway, HubClient, HubRefused
from warpbook.hub_protocol import (
    Device,
    GradableLab,
    Heartbeat,
    HeartbeatAnswer,
    Hello,
    JobOrder,
    JobResult,
    LeaseName,
    Receipt,
    Release,
    Released,
    ReleaseReason,
    Welcome,
    Work,
    WorkRequest,
)
from warpbook_hub.grader.engine import Engine, Graded, JobEnd, NotGraded

#: between tries while the hub is away
_AGAIN_S = 1.0
_MOST_MESSAGE = 1_000


class WorkLoop:
    """One grader, from its first word to its last.

    Nothing that was graded is thrown away while the hub is away: a slot is free again
    only once its result was handed over, so what waits is bounded by the slots.
    """

    def __init__(
        self,
        client: HubClient,
        engine: Engine,
        say: Callable[[str], None] = lambda words: None,
        stays: bool = False,
        labs: Callable[[], tuple[GradableLab, ...] | None] = lambda: None,
    ) -> None:
        """Take what it works with.

        Args:
            client: of the hub.
            engine: runs jobs.
            say: writes a line for who runs it.
            stays: it waits while it is drained, and takes work again when it is told.
            labs: gives those that can be graded; None where that is not known.
        """
        self._client, self._engine, self._say = client, engine, say
        self._stays, self._labs = stays, labs
        self._orders: dict[str, JobOrder] = {}
        self._to_hand_over: dict[LeaseName, JobResult | Release] = {}
        #: GPUs that were there once, whether or not they are there now
        self._known: dict[str, Device] = {}
        self._has_said: Hello | None = None
        self._is_stopped = False
        self._is_draining = False
        self._beat_s = 0.0

    def stop(self) -> None:
        """Give back what runs, hand over what is done, and end.

        Any thread and any signal handler may call it, so it takes no lock.
        """
        self._is_stopped = True

    def run(self) -> None:
        """Work until it is stopped, or drained and done.

        Raises:
            HubRefused: the hub does not know this grader any more.
        """
        welcome = self._begin()
        try:
            while welcome is not None and not self._is_stopped:
                if self._is_draining and not self._orders and not self._stays:
                    self._say("Drained.")
                    return
                self._turn(welcome)
            self._give_back()
        finally:
            self._engine.close()

    def _begin(self) -> Welcome | None:
        while not self._is_stopped:
            try:
                hello = self._what_it_has()
                welcome = self._client.ask("hello", Welcome, hello)
            except HubAway as problem:
                self._say(f"The hub does not answer ({problem}).")
                time.sleep(_AGAIN_S)
            else:
                self._say("The hub answers.")
                self._has_said = hello
                return welcome
        return None

    def _what_it_has(self) -> Hello:
        """Say what there is; a GPU whose machine is away is still this grader's.

        Were it left out, what is right meanwhile would count without its speed.
        """
        places = self._engine.places()
        self._known.update((device.uuid, device) for device in places.devices)
        return Hello(places.cpu_slots, tuple(self._known.values()), self._labs())

    def _turn(self, welcome: Welcome) -> None:
        try:
            # the hub knows of a new GPU before it leases out what that would judge
            now = self._what_it_has()
            if now != self._has_said or time.monotonic() >= self._beat_s:
                self._heartbeat(now)
                self._beat_s = time.monotonic() + welcome.heartbeat_s
            self._hand_over()
            leased = self._lease()
        except HubAway as problem:
            self._say(f"The hub does not answer ({problem}).")
            leased = 0
        # with something done or something begun it asks again at once
        wait_s = 0.0 if leased else welcome.poll_s
        for ended in self._engine.ended(wait_s):
            self._note(ended)

    def _lease(self) -> int:
        places = self._engine.places()
        running = [order for order in self._orders.values() if order.stage == "cpu"]
        taken = {order.device for order in self._orders.values()}
        free = tuple(one.uuid for one in places.devices if one.uuid not in taken)
        request = WorkRequest(max(0, places.cpu_slots - len(running)), free)
        if self._is_draining or not (request.free_cpu_slots or free):
            return 0
        work = self._client.ask("lease", Work, request)
        self._is_draining = work.is_draining
        for order in work.jobs:
            self._orders[order.job] = order
            self._engine.submit(order)
        return len(work.jobs)

    def _heartbeat(self, now: Hello) -> None:
        orders = list(self._orders.values())
        names = tuple(LeaseName(order.job, order.fence) for order in orders)
        has = None if now == self._has_said else now
        answer = self._client.ask("heartbeat", HeartbeatAnswer, Heartbeat(names, has))
        self._has_said = now
        self._is_draining = answer.is_draining
        for job in answer.lost:
            self._say(f"Job {job} no longer belongs to this grader.")
            # what is done is handed over all the same: the hub notes that it is late
            self._engine.cancel(job)

    def _hand_over(self) -> None:
        for lease, message in list(self._to_hand_over.items()):
            job = lease.job
            try:
                if isinstance(message, JobResult):
                    receipt = self._client.ask("result", Receipt, message)
                    if not receipt.is_accepted:
                        self._say(f"Job {job}: not accepted, {receipt.reason}.")
                else:
                    self._client.ask("release", Released, message)
            except HubRefused as problem:
                # that of this job; the next heartbeat says if it is of all
                self._say(f"Job {job}: {problem}")
            del self._to_hand_over[lease]
            self._forget(lease)

    def _forget(self, lease: LeaseName) -> None:
        order = self._orders.get(lease.job)
        if order is not None and order.fence == lease.fence:
            del self._orders[lease.job]

    def _note(self, ended: JobEnd) -> None:
        message = _message_of(ended)
        if message is None:
            self._forget(ended.lease)
        elif isinstance(message, JobResult) or self._has(ended.lease):
            # a result that is late is the hub's to refuse, and to note
            self._to_hand_over[ended.lease] = message

    def _has(self, lease: LeaseName) -> bool:
        order = self._orders.get(lease.job)
        return order is not None and order.fence == lease.fence

    def _give_back(self) -> None:
        """Hand over what is done, and give back what is not, as far as can be."""
        self._engine.close()
        for ended in self._engine.ended(0.0):
            if ended.how != "cancelled":
                self._note(ended)
        for order in list(self._orders.values()):
            lease = LeaseName(order.job, order.fence)
            self._to_hand_over.setdefault(lease, Release(lease, "returned"))
        try:
            self._hand_over()
        except HubAway as problem:
            self._say(f"The hub does not answer ({problem}): it takes its jobs back.")


def _message_of(ended: JobEnd) -> JobResult | Release | None:
    """Make of an end what the hub is told of it; None if it knows already."""
    if ended.how == "cancelled":
        return None
    outcome = ended.outcome
    if isinstance(outcome, Graded):
        return JobResult(
            ended.lease,
            outcome.facts,
            outcome.lab_digest,
            outcome.source_digest,
            ended.took_ms,
            outcome.evidence,
            ended.took_ms if ended.stage == "gpu" else 0,
            outcome.energy_mj,
            outcome.reference,
            outcome.questions,
        )
    if isinstance(outcome, NotGraded):
        reason: ReleaseReason = "timed out" if outcome.is_busy else "can't grade"
        return Release(ended.lease, reason, outcome.message[:_MOST_MESSAGE])
    reason = "crashed"
    if ended.how in ("timed out", "out of memory"):
        reason = ended.how
    elif ended.how == "no node":
        reason = "returned"
    return Release(ended.lease, reason, ended.message[:_MOST_MESSAGE])
