"""What GPUs tell by themselves: XID and ECC errors, by NVML's event sets.

A thread waits in the driver while somebody watches, and only then. Events of a
time in which nobody watched are not told afterwards: NVML does not keep them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.frames import Event
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.gate import NvmlError, call
from warpbook_monitors.nvml.xid import Xid, explain

_log = logging.getLogger(__name__)

Handle = Any

#: how long one call waits; the thread ends that much after it was asked to
WAIT_MS = 500
#: after an error of the event set itself, it is made anew
RETRY_S = 10.0
#: the same event of the same GPU is told once in this time
REPEAT_S = 1.0
#: between two waits: some drivers come back from one at once
_PAUSE_S = 0.02

# nvmlEventType..., part of NVML's ABI
_SINGLE_BIT, _DOUBLE_BIT, _XID = 0x1, 0x2, 0x8
_SINGLE_BIT_STORM, _RETIREMENT, _RETIREMENT_FAILURE = 0x200, 0x400, 0x800
_WANTED = (
    _SINGLE_BIT
    | _DOUBLE_BIT
    | _XID
    | _SINGLE_BIT_STORM
    | _RETIREMENT
    | _RETIREMENT_FAILURE
)

#: in place of an instance: the event is about the GPU as a whole
_WHOLE = 0xFFFFFFFF

_OTHERS: dict[int, tuple[Any, Xid]] = {
    _SINGLE_BIT: (
        "ecc_single_bit",
        Xid(
            "normal",
            "Memory error, corrected",
            "ECC corrected a bit; results are correct.",
            "Nothing to do; if it happens often, tell the administrator.",
        ),
    ),
    _SINGLE_BIT_STORM: ("ecc_single_bit", explain(92)),
    _DOUBLE_BIT: ("ecc_double_bit", explain(48)),
    _RETIREMENT: ("page_retirement", explain(63)),
    _RETIREMENT_FAILURE: ("page_retirement", explain(64)),
}


class Ringer(NamedTuple):
    """A GPU that can tell events."""

    device: str
    handle: Handle
    #: the kinds of events that it supports, of those that are wanted
    kinds: int
    #: its MIG instances that are devices, by NVML's id of the GPU instance
    instances: Mapping[int, str] = {}


def event_kinds(gpu: Handle) -> int:
    """The wanted kinds of events that this user can hear of a GPU, as bits.

    Raises:
        NvmlError: there are none, with the reason.
        DeviceLost: the GPU is gone.
    """
    kinds = int(call("nvmlDeviceGetSupportedEventTypes", gpu)) & _WANTED
    if not kinds:
        raise nvml.NotSupported("This GPU reports no XID and no ECC events.")
    event_set = call("nvmlEventSetCreate")
    try:
        call("nvmlDeviceRegisterEvents", gpu, kinds, event_set)
    finally:
        call("nvmlEventSetFree", event_set)
    return kinds


class Events:
    """Follows the events of some GPUs between `start` and `stop`."""

    def __init__(
        self,
        ringers: Callable[[], Iterable[Ringer]],
        give_up: Callable[[str, str], None],
    ) -> None:
        """Take who can ring, and what is called for a GPU that is lost.

        Args:
            ringers: asked at each start, for a GPU may have come.
            give_up: takes the id of a lost device and why, before views know it.
        """
        self._ringers = ringers
        self._give_up = give_up
        self._tell: Callable[[Event], None] = lambda _: None
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._told: dict[tuple[str, str, int | None], float] = {}

    def start(self, tell: Callable[[Event], None]) -> None:
        """Call `tell` with each event from now on, on a thread of its own."""
        self._tell = tell
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="warpbook-events", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Tell nothing more; a call that waits comes back by itself."""
        self._wanted.clear()

    def close(self, deadline_s: float) -> bool:
        """End the thread; False if its call has not come back by then."""
        self._closed.set()
        self._wanted.set()
        if self._thread is None:
            return True
        self._thread.join(max(deadline_s - time.monotonic(), 0))
        return not self._thread.is_alive()

    def _goes_on(self) -> bool:
        return self._wanted.is_set() and not self._closed.is_set()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wanted.wait()
            if self._closed.is_set():
                return
            try:
                self._follow()
            except MonitorError as error:
                _log.warning("GPU events are not received for a while: %s", error)
                self._closed.wait(RETRY_S)

    def _follow(self) -> None:
        event_set = call("nvmlEventSetCreate")
        try:
            ids = self._register(event_set)
            while self._goes_on():
                try:
                    data = call("nvmlEventSetWait_v2", event_set, WAIT_MS)
                except nvml.TimedOut:
                    self._closed.wait(_PAUSE_S)
                    continue
                gpu = nvml.address(data.device)
                device = ids.get((gpu, data.gpuInstanceId)) or ids.get((gpu, _WHOLE))
                event = _event(data, device)
                if event is None:
                    continue
                if event.code is not None and explain(event.code).loses_gpu:
                    why = f"XID {event.code}: {event.title}. Reboot the machine."
                    self._give_up(ids[gpu, _WHOLE], why)
                if self._goes_on() and self._is_new(event):
                    self._tell(event)
        finally:
            call("nvmlEventSetFree", event_set)

    def _register(self, event_set: object) -> dict[tuple[int, int], str]:
        """Give the devices by the address of the GPU's handle and the instance."""
        ids: dict[tuple[int, int], str] = {}
        refusal = NvmlError("No GPU reports events.")
        for device, handle, kinds, instances in self._ringers():
            try:
                call("nvmlDeviceRegisterEvents", handle, kinds, event_set)
            except MonitorError as error:
                refusal = NvmlError(str(error))
            else:
                gpu = nvml.address(handle)
                ids[gpu, _WHOLE] = device
                ids.update(
                    {(gpu, instance): name for instance, name in instances.items()}
                )
        if not ids:
            raise refusal
        return ids

    def _is_new(self, event: Event) -> bool:
        key = (event.device, event.kind, event.code)
        now_s = time.monotonic()
        is_new = now_s - self._told.get(key, -REPEAT_S) >= REPEAT_S
        if is_new:
            self._told[key] = now_s
        return is_new


def _event(data: Any, device: str | None) -> Event | None:
    """Word one event; None if it is of no known kind or device."""
    if device is None:
        return None
    kind: Any = "xid"
    code: int | None = None
    if data.eventType == _XID:
        code = int(data.eventData)
        words = explain(code)
    elif data.eventType in _OTHERS:
        kind, words = _OTHERS[data.eventType]
    else:
        return None
    return Event(
        time_ms=time.time_ns() // 1000 / 1000,
        device=device,
        kind=kind,
        code=code,
        severity=words.severity,
        title=words.title,
        meaning=words.meaning,
        remedy=words.remedy,
    )
