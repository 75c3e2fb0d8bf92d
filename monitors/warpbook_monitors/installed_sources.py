"""Sources of readings that other installed packages bring.

A package names a callable that makes a `Source` under the entry point
`warpbook.sources`. Its code is called on threads of its own only, and what it gives
is checked; whatever goes wrong is an absence or a state.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import get_args

import msgspec

from warpbook_monitors.attempt import Attempt
from warpbook_monitors.errors import NoReading, Unavailable
from warpbook_monitors.frames import Absence, Device, Metric, State
from warpbook_monitors.metrics import GPU, MOST
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.source import Discovery, Probe, Source

_log = logging.getLogger(__name__)

GROUP = "warpbook.sources"
#: the stream begins without a source that takes longer
OPEN_TIMEOUT_S = 3.0
CLOSE_TIMEOUT_S = 1.0
#: of one source
MAX_DEVICES = 64
MAX_ABSENCES = 20
MAX_FACTS = 50
#: what JavaScript holds exactly
_MAX_FACT = 2**53
_MAX_WHY = 300


class InstalledSources:
    """Every source that an installed package names, each opened on its own thread."""

    what = "Sources of other packages"

    def __init__(self) -> None:
        #: by name, those that have not come back
        self._attempts: list[tuple[str, Attempt[_Found]]] = []
        self._sources: list[tuple[str, Source]] = []
        self._absences: list[Absence] = []
        self._ids: set[str] = set()

    def open(self) -> Discovery:
        """Open all; one that is not open in time is shown when it is."""
        self._attempts = [
            (entry.name, Attempt(partial(_open, entry), f"warpbook-open-{entry.name}"))
            for entry in entry_points(group=GROUP)
        ]
        deadline_s = time.monotonic() + OPEN_TIMEOUT_S
        for _, attempt in self._attempts:
            attempt.wait(max(deadline_s - time.monotonic(), 0))
        return self._opened()

    def close(self) -> None:
        """Close those that opened; none is waited for longer than a second."""
        for name, source in self._sources:
            closing = Attempt(source.close, f"warpbook-close-{name}")
            try:
                closing.outcome(time.monotonic() + CLOSE_TIMEOUT_S)
            except BaseException:  # noqa: BLE001 - its defect must not keep others open
                _log.exception("Closing the source %s failed.", name)

    def _later(self) -> Discovery | None:
        is_waiting = all(attempt.is_running for _, attempt in self._attempts)
        return None if is_waiting else self._opened()

    def _opened(self) -> Discovery:
        """Take what has opened since the last time, and say what has not."""
        probes: list[_InstalledProbe] = []
        attempts, self._attempts = self._attempts, []
        for name, attempt in attempts:
            if attempt.is_running:
                self._attempts.append((name, attempt))
                continue
            try:
                opened = attempt.outcome(time.monotonic())
            except Unavailable as error:
                self._absences.append(error.absence)
                continue
            self._sources.append((name, opened.source))
            self._absences += opened.absences
            for probe in opened.probes:
                if probe.device.id in self._ids:
                    why = f"Another device has the id {probe.device.id}."
                    self._absences.append(Absence(name, "unknown", why))
                else:
                    self._ids.add(probe.device.id)
                    probes.append(probe)
        late = tuple(
            Absence(
                name,
                "unknown",
                f"It did not open within {OPEN_TIMEOUT_S:.0f} s.",
                "It is shown once it opens.",
            )
            for name, _ in self._attempts
        )
        return Discovery(
            probes,
            (*self._absences, *late),
            later=self._later if self._attempts else None,
        )


class _Found(msgspec.Struct):
    """One source that is open."""

    source: Source
    probes: Sequence[_InstalledProbe]
    absences: Sequence[Absence]


class _InstalledProbe:
    """Somebody else's probe, of which only what is valid comes through."""

    def __init__(self, name: str, probe: Probe) -> None:
        """Check the description.

        Raises:
            ValueError: it is not one of a GPU, or not in the metrics' vocabulary.
        """
        self._name = name
        self._probe = probe
        self._described = probe.device
        # kept here: a description of theirs is never asked for on the clock's thread
        self.device = _checked_device(name, self._described)

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Read it.

        Raises:
            NoReading: it says so, it fails, or it gives what its metrics can't be.
        """
        try:
            values = self._probe.read(now_ns)
            described = self._probe.device
            if described is not self._described:
                device = _checked_device(self._name, described)
                if device.id != self.device.id:
                    raise ValueError(f"the id became {device.id}")
                self._described, self.device = described, device
            return _checked_values(values, self.device.metrics)
        except NoReading as nothing:
            known = nothing.state in get_args(State) and nothing.state != "ok"
            state = nothing.state if known else "unavailable"
            raise NoReading(bounded(str(nothing), _MAX_WHY), state) from None
        except Exception as error:
            why = f"The source {self._name} failed: {error!r}"
            raise NoReading(bounded(why, _MAX_WHY)) from error

    def rest(self) -> None:
        """Let it forget its windows; a defect in that ends nothing."""
        try:
            self._probe.rest()
        except Exception:  # noqa: BLE001 - its defect must not end the thread
            _log.exception("The source %s failed to rest.", self._name)


def _open(entry: EntryPoint) -> _Found:
    """Load and open one source.

    Raises:
        Unavailable: it says so, or it fails.
    """
    try:
        try:
            source: Source = entry.load()()
            opened = source.open()
        except Unavailable as error:
            absence = _checked_absence(error.absence)
        else:
            if len(opened.probes) > MAX_DEVICES:
                raise ValueError(f"it has more than {MAX_DEVICES} devices")
            return _Found(
                source,
                [_InstalledProbe(entry.name, probe) for probe in opened.probes],
                [_checked_absence(it) for it in opened.absences[:MAX_ABSENCES]],
            )
    except BaseException as error:  # noqa: BLE001 - whatever it raises ends its own thread only
        _log.exception("Opening the source %s failed.", entry.name)
        why = bounded(f"{entry.value} failed: {error!r}", _MAX_WHY)
        absence = Absence(entry.name, "unknown", why, "Ask whoever made that package.")
    raise Unavailable(absence.what, absence.reason, absence.message, absence.remedy)


def _checked_device(name: str, described: Device) -> Device:
    # by its types: a Struct that Python code makes is not checked
    device = msgspec.convert(msgspec.to_builtins(described), Device)
    if device.kind != "gpu" or not device.id.startswith(f"gpu:{name}:"):
        raise ValueError(f"its devices are GPUs with ids that begin with gpu:{name}:")
    if len(device.facts) > MAX_FACTS:
        raise ValueError(f"it has more than {MAX_FACTS} facts")
    for key, fact in device.facts.items():
        # NaN is not between any two numbers
        if not isinstance(fact, str) and not 0 <= fact <= _MAX_FACT:
            raise ValueError(f"{fact} as {key}")
    total = device.facts.get("memory_total_bytes", 1)
    if isinstance(total, str) or not total:
        raise ValueError(
            f"{total!r} as memory_total_bytes: leave out what is not known"
        )
    names = [metric.name for metric in device.metrics]
    strange = [metric for metric in names if metric not in GPU]
    if strange or len(set(names)) != len(names):
        raise ValueError(f"unknown or repeated metrics: {', '.join(strange or names)}")
    return Device(
        id=bounded(device.id),
        kind="gpu",
        name=bounded(device.name),
        # NVML's index is not theirs to give
        index=None,
        origin="live",
        metrics=tuple(
            GPU[metric.name].on_device(metric.state, bounded(metric.why, _MAX_WHY))
            for metric in device.metrics
        ),
        facts={
            bounded(key): bounded(fact) if isinstance(fact, str) else fact
            for key, fact in device.facts.items()
        },
    )


def _checked_values(
    values: Sequence[float | None], metrics: Sequence[Metric]
) -> tuple[float | None, ...]:
    if len(values) != len(metrics):
        raise ValueError(f"{len(values)} values for {len(metrics)} metrics")
    for value, metric in zip(values, metrics, strict=True):
        if value is not None and not 0 <= value <= MOST[metric.unit]:
            raise ValueError(f"{value} as {metric.name}")
    return tuple(None if value is None else float(value) for value in values)


def _checked_absence(absence: Absence) -> Absence:
    absence = msgspec.convert(msgspec.to_builtins(absence), Absence)
    return Absence(
        bounded(absence.what),
        absence.reason,
        bounded(absence.message, _MAX_WHY),
        bounded(absence.remedy, _MAX_WHY),
    )
