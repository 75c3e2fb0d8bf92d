"""MIG: the instances of a GPU, each a device of its own.

What an instance has for itself is its memory, its processes and, on Hopper and
newer, GPM's figures of its part of the chip. Power, temperature, clocks and links
belong to the GPU. GPM counts for a GPU instance: compute instances that share one
show the same figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from warpbook_monitors.errors import DeviceLost
from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.metrics import MIG
from warpbook_monitors.nvml.contact import Contact, handle_of
from warpbook_monitors.nvml.facts import Fact, memory_total
from warpbook_monitors.nvml.gate import NvmlError, call
from warpbook_monitors.nvml.gpm import CHIP_NAMES, GpmWindow
from warpbook_monitors.nvml.questions import Sheet
from warpbook_monitors.nvml.ways import SLOW_PERIOD_NS, memory_questions, mig_question

Handle = Any


class MigProbe:
    """Reads one MIG instance: the metrics of `metrics.MIG`."""

    def __init__(self, instance: Handle, gpu: Contact, parent_id: str) -> None:
        """Open the instance and ask each question once.

        Raises:
            NvmlError: NVML does not give the instance to this user.
            DeviceLost: the GPU is gone.
        """
        self._uuid = str(call("nvmlDeviceGetUUID", instance))
        self._contact = Contact(instance, lambda: handle_of(self._uuid), self.rest)
        self._name = str(call("nvmlDeviceGetName", instance))
        self._facts: dict[str, Fact] = {"parent": parent_id, **_facts(instance)}
        self._window = GpmWindow(
            CHIP_NAMES, gpu_instance=int(self._facts["gpu_instance_id"])
        )
        self._sheet = Sheet(
            MIG, [*memory_questions(), mig_question(self._window, lambda: gpu.handle)]
        )
        self._check_ns = 0
        self._changed = False
        self._ask(instance, time.monotonic_ns())
        self.device = self._describe()

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Give one value per metric of `device`.

        Raises:
            DeviceLost: the instance was destroyed, or its GPU is gone.
        """
        self._contact.read(now_ns, self._ask)
        if self._changed:
            self.device = self._describe()
        return tuple(self._sheet.values)

    def give_up(self, why: str) -> None:
        """Take the instance for lost from now on."""
        self._contact.give_up(why)

    def rest(self) -> None:
        self._window.rest()

    def close(self) -> None:
        self._window.close()

    def _ask(self, instance: Handle, now_ns: int) -> None:
        if now_ns >= self._check_ns:
            self._check_identity(instance)
            self._check_ns = now_ns + SLOW_PERIOD_NS
        self._changed |= self._sheet.ask(instance, now_ns)
        self._changed |= self._window.take_change()

    def _check_identity(self, instance: Handle) -> None:
        """NVML hands out the handles of destroyed instances again."""
        try:
            if call("nvmlDeviceGetUUID", instance) == self._uuid:
                return
        except NvmlError:
            pass
        raise DeviceLost(
            "This MIG instance is gone. New instances appear within 10 s while the GPU "
            "is watched."
        )

    def _describe(self) -> Device:
        self._changed = False
        return Device(
            id=f"mig:{self._uuid}",
            kind="mig",
            name=self._name,
            index=None,
            origin="live",
            metrics=tuple(self._metric(name) for name in MIG),
            facts=self._facts,
        )

    def _metric(self, name: str) -> Metric:
        state, why = self._sheet.state(name)
        if state == "ok" and name in self._window.missing:
            state, why = "not_supported", "GPM does not provide this on this GPU."
        return MIG[name].on_device(state, why)


class Instances:
    """The MIG instances of one GPU: those that are known, and those that are new."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def find_new(self, gpu: Contact, parent_id: str) -> Iterator[MigProbe | NvmlError]:
        """Open what is new; give the error of one that this user may not open.

        Raises:
            DeviceLost: the GPU is gone.
        """
        try:
            slots = int(call("nvmlDeviceGetMaxMigDeviceCount", gpu.handle))
        except NvmlError:
            return
        for slot in range(slots):
            try:
                instance = call("nvmlDeviceGetMigDeviceHandleByIndex", gpu.handle, slot)
                uuid = call("nvmlDeviceGetUUID", instance)
            except NvmlError as error:
                # an empty slot says "not found", which is no refusal
                if error.state == "no_permission" and f"{slot}" not in self._known:
                    self._known.add(f"{slot}")
                    yield error
                continue
            if uuid in self._known:
                continue
            self._known.add(uuid)
            try:
                yield MigProbe(instance, gpu, parent_id)
            except NvmlError as error:
                yield error


def _facts(instance: Handle) -> dict[str, Fact]:
    """What tells instances apart.

    Raises:
        NvmlError: NVML does not tell which instance it is.
    """
    facts: dict[str, Fact] = {
        "gpu_instance_id": call("nvmlDeviceGetGpuInstanceId", instance),
        "compute_instance_id": call("nvmlDeviceGetComputeInstanceId", instance),
    }
    facts.update(memory_total(instance))
    try:
        attributes = call("nvmlDeviceGetAttributes_v2", instance)
    except NvmlError:
        return facts
    return facts | {
        "sm_count": attributes.multiprocessorCount,
        "gpu_slices": attributes.gpuInstanceSliceCount,
        "compute_slices": attributes.computeInstanceSliceCount,
        "copy_engine_count": attributes.sharedCopyEngineCount,
        "decoder_count": attributes.sharedDecoderCount,
        "encoder_count": attributes.sharedEncoderCount,
    }
