"""Whether a GPU was left alone while it was measured, as far as NVML tells.

Noise that another program, heat or a moving clock brings into a measurement is no
merit and no fault of the learner's: what was disturbed is measured again, and if that
does not help, the answer is "too busy", in words.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from warpbook_labs.results.measurements import Conditions
from warpbook_labs.results.stage_times import stage
from warpbook_monitors.errors import DeviceLost, MonitorError, Unavailable
from warpbook_monitors.nvml.gate import call
from warpbook_monitors.nvml.processes import ProcessTable, has_own_pids
from warpbook_monitors.verdicts.health import REASONS

#: a clock that moves by more makes times of two moments two things
MOST_CLOCK_DRIFT_RATIO = 0.03
#: of a GPU that nobody uses: a desktop draws now and then
IDLE_PERCENT = 5
_PERIOD_S = 0.02
#: NVML makes its figures for processes some times a second; asking is dear
_PROCESS_PERIOD_S = 0.1
#: until NVML's utilization has forgotten what ran before
_SETTLE_S = 1.5
#: so late NVML tells who worked
_LATE_S = 1.0
_LATE_NS = int(_LATE_S * 1e9)
_MOST_SAMPLES = 50_000
_CLOSE_S = 1.0
# NVML's enums
_TEMPERATURE_GPU, _CLOCK_SM = 0, 1
_NOBODY = (0, 2**32 - 1)
#: what a driver may say: anything else is no reading
_MHZ, _CELSIUS, _PERCENT = (1, 10_000), (-50, 200), (0, 100)
#: a power cap is usual where matrices are multiplied; what it does to the clock counts
_DISTURBING = tuple(reason for reason in REASONS if reason.severity != "normal")

T = TypeVar("T")


class TooBusy(Exception):
    """It was measured several times, and disturbed each time; the message says how."""


class Timed(NamedTuple, Generic[T]):
    """What was measured, and when, by `time.monotonic_ns`, which processes share."""

    result: T
    since_ns: int
    until_ns: int


class _Sample(NamedTuple):
    at_ns: int
    sm_mhz: float | None
    celsius: float | None
    reasons: int | None
    #: who could work; None where NVML lists nobody
    pids: frozenset[int] | None


class _Work(NamedTuple):
    """What one process did, by the driver's word."""

    at_ns: int
    pid: int
    sm_percent: int


class Watch:
    """Reads one GPU on a thread of its own; better not in the process that measures."""

    def __init__(self, uuid: str) -> None:
        """Take NVML's UUID of the GPU; nothing is read yet."""
        self._uuid = uuid
        self._samples: list[_Sample] = []
        self._work: list[_Work] = []
        self._problem = ""
        self._is_lost = False
        self._tells_processes = True
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="warpbook-quiet", daemon=True
        )
        # the driver's clock is Unix time
        self._unix_ns = time.time_ns() - time.monotonic_ns()
        self._asked_us = time.time_ns() // 1000

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """End it; a call that hangs is left behind."""
        self._ended.set()
        self._thread.join(_CLOSE_S)

    def over(self, since_ns: int, until_ns: int, own_pids: Set[int]) -> Conditions:
        """Tell what the GPU was like between two moments of `time.monotonic_ns`."""
        samples = self._between(since_ns, until_ns)
        clocks = [sample.sm_mhz for sample in samples if sample.sm_mhz is not None]
        warm = [sample.celsius for sample in samples if sample.celsius is not None]
        flags = [sample.reasons for sample in samples if sample.reasons is not None]
        drift = _drift(clocks)
        said = [
            *(["The GPU does not answer any more."] if self._is_lost else ()),
            *self._others(since_ns, until_ns, own_pids),
            *(
                f"The GPU's clocks were lowered ({reason.name}): {reason.words}."
                for reason in _DISTURBING
                if any(bits & reason.bit for bits in flags)
            ),
            *([drift] if drift else ()),
        ]
        return Conditions(
            disturbed=" ".join(said),
            sm_clock_mhz=(min(clocks), max(clocks)) if clocks else None,
            temperature_celsius=max(warm) if warm else None,
            reasons=tuple(
                reason.name
                for reason in REASONS
                if any(bits & reason.bit for bits in flags)
            ),
            unknown=tuple(self._unknown(samples, clocks, flags)),
        )

    def is_alone(self, since_ns: int, until_ns: int, own_pids: Set[int]) -> bool:
        """Whether NVML lists some of these processes then, and no other."""
        listed = self._listed(since_ns, until_ns)
        return bool(listed) and listed <= own_pids

    def wait_for_work(self, after_ns: int) -> bool:
        """Wait until NVML has told who worked up to then; it is late by some tenths.

        Returns:
            whether it did.
        """
        until_s = time.monotonic() + _LATE_S
        while self._tells_processes and time.monotonic() < until_s:
            if any(work.at_ns >= after_ns for work in self._work):
                return True
            time.sleep(_PERIOD_S)
        return False

    def used_while_we_rest(self) -> str:
        """Say in words if somebody uses the GPU now, while nothing of ours runs.

        Waits a moment, since NVML tells of the last second.
        """
        until_s = time.monotonic() + _SETTLE_S
        while True:
            percent = _percent(self._read("nvmlDeviceGetUtilizationRates"))
            if percent is None or percent <= IDLE_PERCENT:
                return ""
            if time.monotonic() > until_s:
                return (
                    f"Another program uses the GPU: it is {percent} % busy while "
                    "nothing of this runs."
                )
            time.sleep(_PERIOD_S)

    def _others(
        self, since_ns: int, until_ns: int, own_pids: Set[int]
    ) -> Iterator[str]:
        """Say who else worked; where PIDs are other ones, that more of them did."""
        listed = self._listed(since_ns, until_ns)
        most = {
            pid: percent
            for pid, percent in self._busiest(since_ns, until_ns).items()
            # a figure may tell of one that ended before
            if not listed or pid in listed
        }
        if not own_pids.isdisjoint(most) or not has_own_pids():
            for pid, percent in most.items():
                if pid not in own_pids:
                    yield f"{_named(pid)} used the GPU at the same time ({percent} %)."
        elif len(most) > len(own_pids):
            yield "Another program used the GPU at the same time."

    def _listed(self, since_ns: int, until_ns: int) -> frozenset[int]:
        """Give who had a context; empty where NVML did not always list them."""
        lists = [sample.pids for sample in self._between(since_ns, until_ns)]
        if None in lists:
            return frozenset()
        return frozenset[int]().union(*(pids for pids in lists if pids is not None))

    def _between(self, since_ns: int, until_ns: int) -> list[_Sample]:
        return [
            sample for sample in self._samples if since_ns <= sample.at_ns <= until_ns
        ]

    def _busiest(self, since_ns: int, until_ns: int) -> dict[int, int]:
        """Give by PID how busy each process kept the multiprocessors, in percent."""
        most: dict[int, int] = {}
        for work in self._work:
            # a figure stands for some tenths of a second before it
            if since_ns <= work.at_ns <= until_ns + _LATE_NS and work.sm_percent:
                most[work.pid] = max(work.sm_percent, most.get(work.pid, 0))
        return most

    def _unknown(
        self,
        samples: list[_Sample],
        clocks: list[float],
        flags: list[int],
    ) -> Iterator[str]:
        if self._problem or not samples:
            yield self._problem or "NVML told nothing while it was measured."
            return
        if not clocks:
            yield "NVML does not tell the clock of the multiprocessors here."
        if not flags:
            yield "NVML does not tell here what lowers the clocks."
        if not self._tells_processes:
            yield (
                "NVML does not tell here which process works; whether the GPU was used "
                "before and after was looked at."
            )

    def _run(self) -> None:
        next_s = processes_s = time.monotonic()
        while not self._ended.is_set() and len(self._samples) < _MOST_SAMPLES:
            self._sample()
            if self._tells_processes and time.monotonic() >= processes_s:
                self._take_work()
                processes_s = time.monotonic() + _PROCESS_PERIOD_S
            next_s = max(next_s + _PERIOD_S, time.monotonic())
            self._ended.wait(next_s - time.monotonic())

    def _sample(self) -> None:
        sample = _Sample(
            time.monotonic_ns(),
            _within(_MHZ, self._read("nvmlDeviceGetClockInfo", _CLOCK_SM)),
            _within(_CELSIUS, self._read("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)),
            self._reasons(),
            self._pids(),
        )
        if any(value is not None for value in sample[1:]):
            self._samples.append(sample)

    def _reasons(self) -> int | None:
        # named "throttle reasons" before driver 535
        for name in ("Event", "Throttle"):
            bits = self._read(f"nvmlDeviceGetCurrentClocks{name}Reasons")
            if bits is not None:
                return int(bits)
        return None

    def _pids(self) -> frozenset[int] | None:
        """List who has a context, which costs less than who worked, and is not late."""
        lists = [
            self._read(f"nvmlDeviceGet{kind}RunningProcesses")
            for kind in ("Compute", "Graphics", "MPSCompute")
        ]
        if lists[0] is None:
            return None
        return frozenset(process.pid for some in lists for process in some or ())

    def _take_work(self) -> None:
        try:
            listed = call(
                "nvmlDeviceGetProcessUtilization", self._gpu(), self._asked_us
            )
        except MonitorError as problem:
            # "not found": nobody has worked since
            self._tells_processes = "Not Found" in str(problem)
            return
        for sample in listed:
            self._asked_us = max(self._asked_us, min(sample.timeStamp, _now_us()))
            percent = _within(_PERCENT, sample.smUtil)
            if percent is not None and sample.pid not in _NOBODY:
                at_ns = sample.timeStamp * 1000 - self._unix_ns
                self._work.append(_Work(at_ns, sample.pid, int(percent)))

    def _gpu(self) -> Any:
        return call("nvmlDeviceGetHandleByUUID", self._uuid.encode())

    def _read(self, function: str, *given: object) -> Any:
        try:
            return call(function, self._gpu(), *given)
        except DeviceLost:
            self._is_lost = True
        except Unavailable as problem:
            self._problem = str(problem)
        except MonitorError:
            pass  # this one it does not tell
        return None


def when_quiet(
    watch: Watch,
    trial: Callable[[], Timed[T]],
    own_pids: Callable[[], Set[int]],
    tries: int = 4,
) -> tuple[T, Conditions]:
    """Measure until nothing disturbs it.

    Args:
        trial: measures; nothing of ours runs on the GPU before and after it.

    Raises:
        TooBusy: each try was disturbed.
    """
    why = ""
    for number in range(1, tries + 1):
        with stage("quiet GPU"):
            why = watch.used_while_we_rest()
        if why:
            continue
        timed = trial()
        span = timed.since_ns, timed.until_ns, own_pids()
        is_hidden = False
        with stage("quiet GPU"):
            if not watch.is_alone(*span):
                is_hidden = not watch.wait_for_work(timed.until_ns)
            conditions = watch.over(*span)
            why = conditions.disturbed
            if is_hidden and not why:
                why = watch.used_while_we_rest()
        if not why:
            return timed.result, msgspec.structs.replace(conditions, tries=number)
    raise TooBusy(
        f"{why} It was measured {tries} times, and disturbed each time. The submission "
        "is recorded, and can be graded again."
    )


def _drift(clocks: Iterable[float]) -> str:
    """Say how the clock moved; a moment of a step is none."""
    held = np.array(list(clocks))
    if not len(held):
        return ""
    low, high = np.quantile(held, [0.05, 0.95])
    if high - low <= MOST_CLOCK_DRIFT_RATIO * high:
        return ""
    return f"The GPU's clock moved between {low:.0f} and {high:.0f} MHz."


def _named(pid: int) -> str:
    """Name a process; the name is its own choice, and made fit to show."""
    known = ProcessTable().describe(pid, time.time())
    return f"Process {pid}" if known is None else f"{known.name} (process {pid})"


def _percent(rates: Any) -> int | None:
    share = _within(_PERCENT, getattr(rates, "gpu", None))
    return None if share is None else int(share)


def _within(bounds: tuple[int, int], value: Any) -> float | None:
    if isinstance(value, int | float) and bounds[0] <= value <= bounds[1]:
        return float(value)
    return None


def _now_us() -> int:
    return time.time_ns() // 1000
