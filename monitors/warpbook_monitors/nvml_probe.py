"""The machine's NVIDIA GPUs, each read through NVML's gate and GPM's windows.

All GPUs that the driver shows are listed: `CUDA_VISIBLE_DEVICES` says what a
program may use, not what the machine has. Cheap calls are made at every read,
costly ones once a second, what never changes once.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from warpbook_monitors import nvml
from warpbook_monitors.attempt import Attempt
from warpbook_monitors.errors import DeviceLost, MonitorError, Unavailable
from warpbook_monitors.frames import Absence, AbsenceReason, Device, Metric, State
from warpbook_monitors.gpm import GpmWindow
from warpbook_monitors.nvml import NvmlError, call
from warpbook_monitors.nvml_facts import read_facts
from warpbook_monitors.nvml_questions import METRICS, RETRY_NS, Question, questions
from warpbook_monitors.source import Opened

Handle = Any

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
        self._gpu: Handle = call("nvmlDeviceGetHandleByIndex", index)
        self._name = _name(self._gpu, index)
        self._facts = read_facts(self._gpu)
        self._window = GpmWindow(without=self._silent_gpm_metrics())
        self._questions = questions(self._window)
        #: why the GPU is lost, in words; empty while it answers
        self._lost = ""
        self._retry_ns = 0
        self._missing = self._window.missing
        #: whether the description no longer holds
        self._changed = False
        self._values: list[float | None] = [None] * len(METRICS)
        self._ask(time.monotonic_ns())
        self.device = self._describe()

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Give one value per metric of `device`.

        Raises:
            DeviceLost: the GPU is gone; it is asked again every 10 s.
        """
        if self._lost and now_ns < self._retry_ns:
            raise DeviceLost(self._lost)
        try:
            if self._lost:
                self._gpu = self._open_again()
            self._ask(now_ns)
        except (DeviceLost, Unavailable) as error:
            self._lost = str(error)
            self._retry_ns = now_ns + RETRY_NS
            self._window.rest()
            raise DeviceLost(self._lost) from None
        self._lost = ""
        if self._changed:
            self.device = self._describe()
        return tuple(self._values)

    def rest(self) -> None:
        """Forget the window of GPM."""
        self._window.rest()

    def close(self) -> None:
        """Give back what NVML lent."""
        self._window.close()

    def absences(self) -> list[Absence]:
        """What a person may expect of this GPU, and it can't give."""
        question = self._questions[0]
        if question.state == "ok":
            return []
        return [_absence(f"GPM on GPU {self._index}", question.state, question.why)]

    def _ask(self, now_ns: int) -> None:
        """Ask what is due, and notice what is answered differently from now on."""
        for question in self._questions:
            if now_ns >= question.due_ns:
                if question.ask(self._gpu, now_ns):
                    self._changed = True
                self._values[question.part] = question.values
        if self._missing is not self._window.missing:
            self._missing = self._window.missing
            self._changed = True

    def _open_again(self) -> Handle:
        """Find the GPU after it was lost; its number may have changed."""
        uuid = self._facts.get("uuid")
        try:
            if uuid is None:
                return call("nvmlDeviceGetHandleByIndex", self._index)
            return call("nvmlDeviceGetHandleByUUID", str(uuid).encode())
        except NvmlError as error:
            raise DeviceLost(str(error)) from None

    def _silent_gpm_metrics(self) -> list[str]:
        """NVLink's, where there is none: asking would only cost time."""
        if self._facts.get("nvlink_count") != 0:
            return []
        return [name for name in METRICS if name.startswith("nvlink_")]

    def _describe(self) -> Device:
        self._changed = False
        return Device(
            id=f"gpu:{self._facts.get('uuid', self._index)}",
            kind="gpu",
            name=self._name,
            index=self._index,
            origin="live",
            metrics=tuple(
                self._metric(question, name)
                for name in METRICS
                for question in self._questions
                if name in question.names
            ),
            facts=self._facts,
        )

    def _metric(self, question: Question, name: str) -> Metric:
        kind = METRICS[name]
        if question.state == "not_supported" and self._has_mig:
            return kind.on_device(
                "not_supported",
                "MIG is on: NVML gives this for the MIG instances, not for the GPU "
                f"as a whole. ({question.why})",
            )
        if question.state != "ok" or name not in self._window.missing:
            return kind.on_device(question.state, question.why)
        if name.startswith("nvlink_"):
            return kind.on_device("not_supported", "No NVLink of this GPU is up.")
        return kind.on_device("not_supported", "GPM does not give this on this GPU.")

    @property
    def _has_mig(self) -> bool:
        return self._facts.get("mig_mode") == "enabled"


def _name(gpu: Handle, index: int) -> str:
    try:
        return str(call("nvmlDeviceGetName", gpu))
    except NvmlError:
        return f"GPU {index}"


class NvmlSource:
    """Finds the NVIDIA GPUs of this machine."""

    what = "NVML"

    def __init__(self) -> None:
        """Nothing is opened yet."""
        self._probes: list[NvmlProbe] = []
        self._attempts: list[Attempt[NvmlProbe]] = []

    def open(self) -> Opened:
        """Start NVML and open every GPU that it shows.

        Raises:
            Unavailable: NVML can't be used here, or there is no GPU.
        """
        absences: list[Absence] = []
        # each on a thread of its own: one that hangs must not hide the others
        self._attempts = [
            Attempt(partial(NvmlProbe, index), f"warpbook-open-{index}")
            for index in range(_count())
        ]
        deadline_s = time.monotonic() + GPU_OPEN_TIMEOUT_S
        for index, attempt in enumerate(self._attempts):
            try:
                probe = attempt.outcome(deadline_s)
            except TimeoutError:
                absences.append(_silent(index))
            except NvmlError as error:
                absences.append(_absence(f"GPU {index}", error.state, str(error)))
            except DeviceLost as error:
                absences.append(_absence(f"GPU {index}", "lost", str(error)))
            else:
                self._probes.append(probe)
                absences += probe.absences()
        if not self._probes and not absences:
            raise Unavailable(
                "NVML",
                "no_device",
                "The NVIDIA driver runs, but shows no GPU.",
                "A container must be given one (docker run --gpus all).",
            )
        if not self._probes:
            raise Unavailable(
                "NVML",
                absences[0].reason,
                f"No GPU can be read. {absences[0].what}: {absences[0].message}",
            )
        return Opened(self._probes, tuple(absences))

    def close(self) -> None:
        """Free GPM's samples and shut NVML down, unless a call still runs."""
        if any(attempt.is_running for attempt in self._attempts):
            return
        for probe in self._probes:
            try:
                probe.close()
            except MonitorError:
                continue  # a lost GPU took its samples with it
        self._probes = []
        nvml.shutdown()


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
        "Look for “Xid” in the kernel log (dmesg); when nvidia-smi answers again, "
        "restart the Jupyter server.",
    )


_REASONS: dict[State, AbsenceReason] = {
    "not_supported": "not_supported",
    "no_permission": "no_permission",
    "lost": "lost",
    "unavailable": "unknown",
}


def _absence(what: str, state: State, message: str) -> Absence:
    return Absence(what, _REASONS[state], message)
