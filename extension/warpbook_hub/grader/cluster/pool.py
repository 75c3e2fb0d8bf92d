"""The engine of many machines: Ray starts each job where it is told to.

What Ray says of a job decides nothing: it never tells of one whose machine was cut off,
and tells late of it. A job has a machine, chosen here; once the head has lost that, the
job is given up, and the hub's fence refuses what may still come of it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from msgspec import Struct
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from warpbook.hub_protocol import Device, JobOrder, LeaseName
from warpbook_hub.grader.cluster.settings import (
    GPU_NAME,
    GPU_RESOURCE,
    answers,
    how_to_start_head,
)
from warpbook_hub.grader.cluster.task import run_job
from warpbook_hub.grader.engine import How, JobEnd, Places, taken
from warpbook_hub.grader.gpus import gangs
from warpbook_hub.grader.job_run import COMMAND, Bounds
from warpbook_monitors.plain_text import bounded

#: of one grader, by the hub's rules
_MOST_SLOTS = 256


_LOOK_S, _LOOK_AT_NODES_S = 0.1, 0.5
#: until a worker has started, beside the job's own time
_START_S = 120.0
#: for a worker to end by itself what it runs, once that is cancelled
_CANCEL_S = 5.0
_CLOSE_S = 10.0
#: without an answer of the head this process ends, to be started anew
_HEAD_AWAY_S = 20.0
#: its exit status then
HEAD_LOST_STATUS = 4
_MOST_MESSAGE = 300


class Node(Struct, frozen=True):
    """A machine that is there."""

    id: str
    name: str
    cpu_slots: int
    #: a job has one of these
    devices: tuple[Device, ...]


def nodes_of(
    listed: Sequence[Mapping[str, Any]], together: int = 1, accelerator: str = ""
) -> dict[str, Node]:
    """Read `ray.nodes()`.

    Args:
        listed: what it gave.
        together: GPUs that one job has.
        accelerator: only GPUs of this type, as Ray calls it; empty: of any.

    Returns:
        By id the machines that are alive.
    """
    nodes: dict[str, Node] = {}
    for one in listed:
        if not one["Alive"]:
            continue
        resources = one["Resources"]
        name = one.get("Labels", {}).get(GPU_NAME, "GPU")
        gpus = [
            Device(resource.removeprefix(GPU_RESOURCE), name)
            for resource in sorted(resources)
            if resource.startswith(GPU_RESOURCE)
        ]
        if accelerator and f"accelerator_type:{accelerator}" not in resources:
            gpus = []
        slots = int(resources.get("CPU", 0))
        where = str(one["NodeManagerAddress"])
        nodes[one["NodeID"]] = Node(one["NodeID"], where, slots, gangs(gpus, together))
    return nodes


def places_of(nodes: Mapping[str, Node]) -> Places:
    """Add up what jobs can have."""
    slots = sum(node.cpu_slots for node in nodes.values())
    gpus = [gpu for node in nodes.values() for gpu in node.devices]
    return Places(min(slots, _MOST_SLOTS), tuple(gpus[:_MOST_SLOTS]))


class NoCluster(Exception):
    """There is no cluster where one was named; the message says what to do."""


@dataclass
class _Run:
    """A job that was given to Ray."""

    order: JobOrder
    node: Node
    began_s: float
    cancelled_s: float | None = None
    #: its machine was lost, and its end was told
    is_given_up: bool = False


class RayPool:
    """Runs each job in a fresh worker of the machine that has its GPU."""

    def __init__(
        self,
        address: str,
        bounds: Bounds | None = None,
        command: Sequence[str] | None = None,
        together: int = 1,
        accelerator: str = "",
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        """Join a cluster as its driver.

        Ray reads its settings as it is imported: `settings.use` comes before this
        module is.

        Args:
            address: HOST:PORT of the head.
            bounds: of each job.
            command: what grades a job on each machine; the labs if left out.
            together: GPUs of one machine that each job has.
            accelerator: only GPUs of this type, as Ray calls it; empty: of any.
            say: writes a line for who runs it.

        Raises:
            NoCluster: it can't be joined.
        """
        self._bounds = bounds or Bounds()
        self._command = tuple(command or COMMAND)
        self._together, self._accelerator, self._say = together, accelerator, say
        if not answers(address):
            # Ray would end this process
            raise NoCluster(how_to_start_head(address))
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
            self._nodes = self._nodes_now()
        except (OSError, RuntimeError, ValueError, exceptions.RayError) as problem:
            words = bounded(str(problem), _MOST_MESSAGE)
            raise NoCluster(
                f"Ray's head at {address} can't be joined ({words}). It must run, be "
                "of the same version of Ray and Python, and have the same token."
            ) from None
        self._task = ray.remote(max_calls=1, max_retries=0)(run_job)
        self._lock = threading.Lock()
        self._runs: dict[Any, _Run] = {}
        # SimpleQueue.get waits without end once a signal's handler outlasts its timeout
        self._ended: queue.Queue[JobEnd] = queue.Queue()
        self._is_closed = threading.Event()
        self._heard_s = time.monotonic()
        self._threads = [
            threading.Thread(target=work, daemon=True, name=f"warpbook-{work.__name__}")
            for work in (self._watch_jobs, self._watch_nodes)
        ]
        for thread in self._threads:
            thread.start()

    def places(self) -> Places:
        return places_of(self._nodes)

    def submit(self, order: JobOrder) -> None:
        """Begin a job; the same lease once more changes nothing."""
        with self._lock:
            older = [
                run
                for run in self._runs.values()
                if run.order.job == order.job and not run.is_given_up
            ]
            if any(run.order.fence >= order.fence for run in older):
                return
            for run in older:
                run.cancelled_s = time.monotonic()
            refs = [ref for ref, run in self._runs.items() if run in older]
            node = self._node_for(order)
            if node is not None:
                run = _Run(order, node, time.monotonic())
                self._runs[self._given(order, node)] = run
        for ref in refs:
            ray.cancel(ref)
        if node is None:
            words = f"There is no node for it: {order.device or 'no CPU slot'} is away."
            self._tell(order, "no node", words)

    def cancel(self, job: str) -> None:
        """End a job and all that it started; one that is not there is passed over."""
        with self._lock:
            refs = [ref for ref, run in self._runs.items() if run.order.job == job]
            for ref in refs:
                self._runs[ref].cancelled_s = time.monotonic()
        for ref in refs:
            ray.cancel(ref)

    def ended(self, wait_s: float) -> list[JobEnd]:
        """Give what has ended since it was asked last."""
        return taken(self._ended, wait_s)

    def close(self) -> None:
        """End all that runs, and leave the cluster."""
        if self._is_closed.is_set():
            return
        with self._lock:
            jobs = {run.order.job for run in self._runs.values()}
        for job in jobs:
            self.cancel(job)
        end_s = time.monotonic() + _CLOSE_S
        while time.monotonic() < end_s and self._has_reachable_runs():
            time.sleep(_LOOK_S)
        self._is_closed.set()
        for thread in self._threads:
            thread.join(_CLOSE_S)
        ray.shutdown()

    def _has_reachable_runs(self) -> bool:
        with self._lock:
            return any(not run.is_given_up for run in self._runs.values())

    def _node_for(self, order: JobOrder) -> Node | None:
        """Find the machine that has its GPU, or the most free slots."""
        nodes = self._nodes
        if order.device:
            uuids = {gpu.uuid: node for node in nodes.values() for gpu in node.devices}
            return uuids.get(order.device)
        taken = Counter(
            run.node.id for run in self._runs.values() if not run.order.device
        )
        with_slots = [node for node in nodes.values() if node.cpu_slots]
        free = {node.id: node.cpu_slots - taken[node.id] for node in with_slots}
        return max(with_slots, key=lambda node: free[node.id], default=None)

    def _given(self, order: JobOrder, node: Node) -> Any:
        """Give a job to Ray, with what it takes of its machine."""
        uuids = order.device.split(",") if order.device else []
        options = {
            "num_cpus": 0 if uuids else 1,
            "num_gpus": len(uuids),
            "resources": {f"{GPU_RESOURCE}{uuid}": 1 for uuid in uuids},
            # Ray says at once that this one is away, and waits for ever for any other
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False),
        }
        task = self._task.options(**options)
        return task.remote(order, self._bounds, self._command)

    def _watch_jobs(self) -> None:
        while not self._is_closed.is_set():
            with self._lock:
                refs = list(self._runs)
            if not refs:
                time.sleep(_LOOK_S)
                continue
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=_LOOK_S)
            for ref in ready:
                self._take(ref)
            self._look_at_runs()

    def _take(self, ref: Any) -> None:
        """Note what Ray says of a job."""
        with self._lock:
            run = self._runs.pop(ref)
        try:
            ended = ray.get(ref)
        # Ray raises what the job raised, too
        except Exception as problem:  # noqa: BLE001
            # of a job that was given up only what it found is of interest
            if not run.is_given_up:
                how, words = _reason(problem, run)
                self._tell(run.order, how, words, run.began_s)
        else:
            self._ended.put(ended)

    def _look_at_runs(self) -> None:
        """Give up what is on a lost machine, and end what does not end itself."""
        now_s = time.monotonic()
        with self._lock:
            runs = list(self._runs.items())
        for ref, run in runs:
            if run.is_given_up:
                continue
            if run.node.id not in self._nodes:
                run.is_given_up = True
                words = f"Its node {run.node.name} was lost."
                self._tell(run.order, "crashed", words, run.began_s)
            elif run.cancelled_s is not None and now_s > run.cancelled_s + _CANCEL_S:
                ray.cancel(ref, force=True)
            elif run.cancelled_s is None and (
                now_s > run.began_s + self._bounds.wall_s + _START_S
            ):
                run.is_given_up = True
                words = f"Its node {run.node.name} reports nothing of it."
                self._tell(run.order, "timed out", words, run.began_s)
                ray.cancel(ref, force=True)

    def _watch_nodes(self) -> None:
        while not self._is_closed.wait(_LOOK_AT_NODES_S):
            watchdog = threading.Timer(_HEAD_AWAY_S, self._head_is_lost)
            watchdog.daemon = True
            watchdog.start()
            with contextlib.suppress(exceptions.RayError, OSError, RuntimeError):
                nodes = self._nodes_now()
                self._heard_s = time.monotonic()
                self._note(nodes)
            watchdog.cancel()
            if time.monotonic() - self._heard_s > _HEAD_AWAY_S:
                self._head_is_lost()

    def _nodes_now(self) -> dict[str, Node]:
        listed = ray.nodes()  # type: ignore[no-untyped-call]
        return nodes_of(listed, self._together, self._accelerator)

    def _note(self, nodes: dict[str, Node]) -> None:
        for node in nodes.keys() - self._nodes.keys():
            self._say(f"Node {nodes[node].name} is there.")
        for node in self._nodes.keys() - nodes.keys():
            self._say(f"Node {self._nodes[node].name} was lost.")
        self._nodes = nodes

    def _head_is_lost(self) -> None:
        """End at once: a driver can't join another head, nor leave this one."""
        self._say("Ray's head does not answer: this grader ends, to be started anew.")
        os._exit(HEAD_LOST_STATUS)

    def _tell(
        self, order: JobOrder, how: How, words: str, began_s: float | None = None
    ) -> None:
        took_s = 0.0 if began_s is None else time.monotonic() - began_s
        name = LeaseName(order.job, order.fence)
        took_ms = int(took_s * 1000)
        self._ended.put(JobEnd(name, order.stage, how, words, None, took_ms))


def _reason(problem: Exception, run: _Run) -> tuple[How, str]:
    """Say how a job ended of which Ray has no result."""
    if isinstance(problem, exceptions.TaskCancelledError) or run.cancelled_s:
        return "cancelled", ""
    words = bounded(str(problem).strip().partition("\n")[0], _MOST_MESSAGE)
    if isinstance(problem, exceptions.TaskUnschedulableError):
        return "no node", f"Its node {run.node.name} is away."
    if isinstance(problem, exceptions.OutOfMemoryError):
        return "out of memory", f"Its node {run.node.name} was out of memory."
    name = type(problem).__name__
    return "crashed", f"Ray lost it on {run.node.name} ({name}). {words}"
