"""The machine's NVIDIA GPUs, each read through NVML's gate and GPM's windows.

All GPUs that the driver shows are listed: `CUDA_VISIBLE_DEVICES` says what a
program may use, not what the machine has. Cheap calls are made at every read,
costly ones once a second, what never changes once.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from warpbook_monitors.attempt import Attempt
from warpbook_monitors.errors import DeviceLost, MonitorError, Unavailable
from warpbook_monitors.frames import Absence, AbsenceReason, Device, Metric, State
from warpbook_monitors.metrics import GPU, MIG
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.contact import Contact, handle_of
from warpbook_monitors.nvml.events import WAIT_MS, Events, Ringer, event_kinds
from warpbook_monitors.nvml.facts import read_facts
from warpbook_monitors.nvml.gate import NvmlError, call
from warpbook_monitors.nvml.gpm import CHIP_NAMES, GpmWindow
from warpbook_monitors.nvml.links import Links
from warpbook_monitors.nvml.mig import Instances, MigProbe
from warpbook_monitors.nvml.questions import RETRY_NS
from warpbook_monitors.nvml.ways import gpu_sheet
from warpbook_monitors.source import Discovery

_log = logging.getLogger(__name__)

Handle = Any

#: what is not told of a GPU whose MIG instances have it
MIG_HIDES = {*MIG, "gpu_utilization_ratio", "memory_utilization_ratio"}

_MIG_IS_ON = (
    "MIG is on: NVML gives this for the MIG instances, not for the GPU as a whole."
)

#: a GPU without persistence mode takes some seconds to wake
GPU_OPEN_TIMEOUT_S = 15.0


class NvmlProbe:
    """Reads one GPU: the metrics of `metrics.NVML`, then those of `metrics.GPM`."""

    def __init__(self, index: int) -> None:
        """Open the GPU and ask each question once, to learn what it answers.

        Raises:
            NvmlError: NVML does not give the GPU to this user.
            DeviceLost: the GPU is gone.
        """
        self._index = index
        gpu = call("nvmlDeviceGetHandleByIndex", index)
        self._name = _name(gpu, index)
        self._facts = read_facts(gpu)
        self._contact = Contact(gpu, self._find, self.rest)
        self._id = f"gpu:{self._facts.get('uuid', index)}"
        self._window = GpmWindow(without=self._silent_gpm_metrics())
        self._no_gpm = _refusal(self._window, gpu)
        self._links: Links | None = None
        if self._no_gpm and self._no_gpm.state in ("not_supported", "no_permission"):
            count = self._facts.get("nvlink_count")
            self._links = Links(count if isinstance(count, int) else None)
            self._window.close()
            self._window = GpmWindow(CHIP_NAMES)
        self._sheet = gpu_sheet(self._window, self._links)
        #: whether the description no longer holds
        self._changed = False
        self._instances = Instances() if self._has_mig else None
        self._instances_due_ns = 0
        #: opened MIG instances, and why others could not be; taken by the source
        self.new_instances: queue.SimpleQueue[MigProbe | NvmlError] = (
            queue.SimpleQueue()
        )
        self._ask(gpu, time.monotonic_ns())
        #: the kinds of events that it tells, as NVML's bits
        self.event_kinds = 0
        self._no_events: NvmlError | None = None
        try:
            self.event_kinds = event_kinds(gpu)
        except NvmlError as error:
            self._no_events = error
        self.device = self._describe()

    @property
    def handle(self) -> Handle:
        """NVML's handle, which is another one after the GPU was lost."""
        return self._contact.handle

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Give one value per metric of `device`.

        Raises:
            DeviceLost: the GPU is gone; it is asked again every 10 s.
        """
        self._contact.read(now_ns, self._ask)
        if self._changed:
            self.device = self._describe()
        return tuple(self._sheet.values)

    def give_up(self, why: str) -> None:
        """Take the GPU for lost from now on."""
        self._contact.give_up(why)

    def rest(self) -> None:
        """Forget the window of GPM and the counters of links."""
        self._window.rest()
        if self._links is not None:
            self._links.rest()

    def close(self) -> None:
        self._window.close()

    def absences(self) -> list[Absence]:
        """What a person may expect of this GPU, and it can't give."""
        missing = []
        if self._no_gpm is not None:
            state, why = self._no_gpm.state, str(self._no_gpm)
            if state == "not_supported" and self._has_mig:
                why = _MIG_IS_ON
            missing.append(_absence(f"GPM on GPU {self._index}", state, why))
        if self._no_events is not None:
            what = f"Errors reported by GPU {self._index} itself (XID, ECC)"
            missing.append(_absence(what, self._no_events.state, str(self._no_events)))
        return missing

    def _ask(self, gpu: Handle, now_ns: int) -> None:
        """Ask what is due, and notice what is answered differently from now on."""
        self._changed |= self._sheet.ask(gpu, now_ns)
        self._changed |= self._window.take_change()
        limit = self._sheet.value("power_limit_watts")
        if limit is not None and limit != self._facts.get("power_limit_watts"):
            self._facts = {**self._facts, "power_limit_watts": limit}
            self._changed = True
        if self._instances is not None and now_ns >= self._instances_due_ns:
            for instance in self._instances.find_new(self._contact, self._id):
                self.new_instances.put(instance)
            self._instances_due_ns = now_ns + RETRY_NS

    def _find(self) -> Handle:
        uuid = self._facts.get("uuid")
        if uuid is None:
            return call("nvmlDeviceGetHandleByIndex", self._index)
        return handle_of(str(uuid))

    def _silent_gpm_metrics(self) -> list[str]:
        """NVLink's, where there is none: asking would only cost time."""
        if self._facts.get("nvlink_count") != 0:
            return []
        return [name for name in GPU if name.startswith("nvlink_")]

    def _describe(self) -> Device:
        self._changed = False
        return Device(
            id=self._id,
            kind="gpu",
            name=self._name,
            index=self._index,
            origin="live",
            metrics=tuple(self._metric(name) for name in GPU),
            facts=self._facts,
        )

    def _metric(self, name: str) -> Metric:
        kind = GPU[name]
        state, why = self._sheet.state(name)
        if state == "not_supported" and self._has_mig and name in MIG_HIDES:
            return kind.on_device("not_supported", _MIG_IS_ON)
        if state != "ok" or name not in self._window.missing:
            return kind.on_device(state, why)
        if name.startswith("nvlink_"):
            return kind.on_device("not_supported", "No NVLink of this GPU is up.")
        return kind.on_device("not_supported", "GPM does not provide this on this GPU.")

    @property
    def _has_mig(self) -> bool:
        return self._facts.get("mig_mode") == "enabled"


def _name(gpu: Handle, index: int) -> str:
    try:
        return str(call("nvmlDeviceGetName", gpu))
    except NvmlError:
        return f"GPU {index}"


def _refusal(window: GpmWindow, gpu: Handle) -> NvmlError | None:
    """Why GPM can't be read on a GPU; None if it can."""
    try:
        window.read(gpu)
    except NvmlError as error:
        return error
    return None


class NvmlSource:
    """Finds the NVIDIA GPUs of this machine, and their MIG instances."""

    what = "NVML"

    def __init__(self) -> None:
        self._probes: list[NvmlProbe | MigProbe] = []
        #: by number, the GPUs whose opening has not come back
        self._attempts: dict[int, Attempt[NvmlProbe]] = {}
        self._absences: list[Absence] = []
        self._events = Events(self._who_rings, self._give_up)

    def open(self) -> Discovery:
        """Start NVML and open every GPU that it shows.

        Raises:
            Unavailable: NVML can't be used here, or there is no GPU.
        """
        # each on a thread of its own: one that hangs must not hide the others
        self._attempts = {
            index: Attempt(partial(NvmlProbe, index), f"warpbook-open-{index}")
            for index in range(_count())
        }
        deadline_s = time.monotonic() + GPU_OPEN_TIMEOUT_S
        for index, attempt in list(self._attempts.items()):
            try:
                self._take(index, attempt, deadline_s)
            except TimeoutError:
                self._absences.append(_silent(index))
        if not self._probes and self._attempts:
            # they are there, and shown when they answer
            return self._opened(())
        if not self._probes and not self._absences:
            raise Unavailable(
                "NVML",
                "no_device",
                "The NVIDIA driver runs, but reports no GPU.",
                "A container must be given one (docker run --gpus all).",
            )
        if not self._probes:
            raise Unavailable(
                "NVML",
                self._absences[0].reason,
                f"No GPU can be read. {self._absences[0].what}: "
                f"{self._absences[0].message}",
            )
        self._take_instances()
        return self._opened(tuple(self._probes))

    def close(self) -> None:
        """Free GPM's samples and shut NVML down, unless a call still runs."""
        heard = self._events.close(time.monotonic() + 2 * WAIT_MS / 1000)
        if not heard or any(attempt.is_running for attempt in self._attempts.values()):
            return
        for probe in self._probes:
            try:
                probe.close()
            except MonitorError:
                continue  # a lost GPU took its samples with it
        self._probes = []
        nvml.shutdown()

    def _later(self) -> Discovery | None:
        """What has come since: GPUs that hung at first, and new MIG instances."""
        known = len(self._probes)
        absences = list(self._absences)
        for index, attempt in list(self._attempts.items()):
            if not attempt.is_running:
                self._absences.remove(_silent(index))
                self._take(index, attempt, time.monotonic())
        self._take_instances()
        if known == len(self._probes) and absences == self._absences:
            return None
        return self._opened(tuple(self._probes[known:]))

    def _opened(self, probes: tuple[NvmlProbe | MigProbe, ...]) -> Discovery:
        return Discovery(
            probes, tuple(self._absences), later=self._later, events=self._events
        )

    def _take(self, index: int, attempt: Attempt[NvmlProbe], deadline_s: float) -> None:
        """Take a GPU that is open, or why it is not.

        Raises:
            TimeoutError: its opening has not come back.
        """
        try:
            probe = attempt.outcome(deadline_s)
        except NvmlError as error:
            self._absences.append(_absence(f"GPU {index}", error.state, str(error)))
        except DeviceLost as error:
            self._absences.append(_absence(f"GPU {index}", "lost", str(error)))
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - a defect here must hide no other GPU
            _log.exception("Opening GPU %d failed.", index)
            why = f"warpbook failed to open it: {error!r}"[:300]
            self._absences.append(Absence(f"GPU {index}", "unknown", why))
        else:
            self._probes.append(probe)
            self._absences += probe.absences()
        del self._attempts[index]

    def _take_instances(self) -> None:
        """Take the MIG instances that the GPUs' own threads found."""
        for probe in list(self._probes):
            while isinstance(probe, NvmlProbe) and not probe.new_instances.empty():
                instance = probe.new_instances.get()
                if isinstance(instance, MigProbe):
                    self._probes.append(instance)
                else:
                    what = f"A MIG instance of GPU {probe.device.index}"
                    self._absences.append(_absence(what, instance.state, str(instance)))

    def _give_up(self, gpu: str, why: str) -> None:
        for probe in list(self._probes):
            if gpu in (probe.device.id, probe.device.facts.get("parent")):
                probe.give_up(why)

    def _who_rings(self) -> Iterator[Ringer]:
        for probe in self._probes:
            if isinstance(probe, NvmlProbe) and probe.event_kinds:
                device = probe.device.id
                instances = {
                    int(probe.device.facts["gpu_instance_id"]): probe.device.id
                    for probe in self._probes
                    if isinstance(probe, MigProbe)
                    and probe.device.facts["parent"] == device
                }
                yield Ringer(device, probe.handle, probe.event_kinds, instances)


def _count() -> int:
    try:
        return int(call("nvmlDeviceGetCount"))
    except NvmlError as error:
        raise Unavailable("NVML", _REASONS[error.state], str(error)) from None


def _silent(index: int) -> Absence:
    return Absence(
        f"GPU {index}",
        "unknown",
        f"The driver did not answer within {GPU_OPEN_TIMEOUT_S:.0f} s about this GPU.",
        "Look for “Xid” in the kernel log (dmesg). It is shown once it answers.",
    )


_REASONS: dict[State, AbsenceReason] = {
    "not_supported": "not_supported",
    "no_permission": "no_permission",
    "lost": "lost",
    "unavailable": "unknown",
}


def _absence(what: str, state: State, message: str) -> Absence:
    return Absence(what, _REASONS[state], message)
