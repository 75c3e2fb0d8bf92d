"""Memory, children and clock of one submission, with the GPU or with the CPU.

Whether a process that stands still has left work on the GPU.

A GPU gives its time to processes in turns. A kernel that only counts takes as long as
ever if nobody else has work there, and about twice as long if somebody has. The copy
engines are asked by a copy each way. Both are timed by the GPU: a host with too few
cores is no work that anybody has left.
"""

from __future__ import annotations

import os
import secrets
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.host.child_handle import ChildHandle
from warpbook_labs.engines.host.device_region import DeviceRegion
from warpbook_labs.engines.host.lane import Bounds
from warpbook_labs.engines.host.memory import PLACES, Layout
from warpbook_labs.engines.host.messages import Run, Slot, Transport
from warpbook_labs.engines.host.regions import HostRegion, Region, Values
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.ratio import Side
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.lab.host_spec import HostPlace

#: longer than a process's turn, or nobody else's would come
_WANTED_NS = 4e6
_FIRST_STEPS = 20_000
_WARM_UP_S = 0.2
_TIMES = 7
_COPY_BYTES = 32 << 20
_PROBE_PATIENCE_S = 20.0
#: a clock that moves is no work of another's
_MOST = 1.35


class _Took(NamedTuple):
    spin_ns: float
    copy_ns: float


class Probe:
    """Knows how long it takes when all is quiet."""

    def __init__(self, tools: Tools) -> None:
        """Measure that; no child may have work there."""
        self._tools = tools
        self._held = tools.device.pinned(_COPY_BYTES)
        self._address = tools.device.allocate(_COPY_BYTES)
        until_s = time.monotonic() + _WARM_UP_S
        first_ns = tools.spin_ns(_FIRST_STEPS)
        # clocks that are low after a rest would let others' work pass for it later
        while time.monotonic() < until_s:
            first_ns = tools.spin_ns(_FIRST_STEPS)
        self._steps = max(1, round(_FIRST_STEPS * _WANTED_NS / first_ns))
        took = [self._took() for _ in range(_TIMES)]
        self.quiet = _Took(
            statistics.median(times.spin_ns for times in took),
            statistics.median(times.copy_ns for times in took),
        )

    def is_quiet(self) -> bool:
        """Tell whether nobody else has work there."""
        took = self._took()
        return all(
            now <= _MOST * before for now, before in zip(took, self.quiet, strict=True)
        )

    def _took(self) -> _Took:
        device = self._tools.device
        return _Took(
            self._tools.spin_ns(self._steps),
            device.copied_both_ways_ns(self._address, self._held, _PROBE_PATIENCE_S),
        )


#: bytes of all outputs on the host that are looked at before the clock stops
_DRAWN = 512
#: what two children need of the GPU's memory to begin with, by guess
_SPARE_BYTES = 3 << 30
#: nobody else's kernel runs when ours do
_PATIENCE_S = 20.0


class TooLarge(Exception):
    """The buffers do not fit; the message says so."""


class TookBack(Exception):
    """An output changed after its writer had said that it was done."""


class Unit(NamedTuple):
    """One timed run of one side."""

    taken_ns: float
    #: the GPU was at rest afterwards, with the child stopped
    is_quiet: bool


class Harness:
    """Owns everything that a verdict is made of."""

    def __init__(
        self,
        device: Device | None,
        size_bytes: Mapping[HostPlace, int],
        pools: dict[str, Values],
        pool_places: Mapping[str, HostPlace],
        is_staged: bool,
        sides: Sequence[Side],
    ) -> None:
        """Take the memory.

        Raises:
            TooLarge: there is not enough.
        """
        self.tools = None if device is None else Tools(device)
        _refuse_too_large(device, size_bytes, len(sides), is_staged)
        self.transport: Transport = "staged" if is_staged else "shared"
        self.regions: dict[HostPlace, Region] = {}
        try:
            for place in PLACES:
                if not size_bytes[place]:
                    continue
                own = {
                    name: pool
                    for name, pool in pools.items()
                    if pool_places[name] == place
                }
                self.regions[place] = (
                    DeviceRegion(self.tools, size_bytes[place], own, sides)
                    if self.tools is not None and place == "device" and not is_staged
                    else HostRegion(place, size_bytes[place], own, sides)
                )
        except OSError:
            # it may be tried again in another way
            self.give_back()
            raise
        self.children: dict[Side, ChildHandle] = {}
        self._probe: Probe | None = None
        self._turn = 0

    def start(
        self,
        side: Side,
        hidden: tuple[str, ...],
        bounds: Bounds,
        is_early: bool,
        is_traced: bool = False,
    ) -> None:
        """Start a child; it is not waited for."""
        memory = tuple(region.memory(side) for region in self.regions.values())
        child = ChildHandle(
            self.transport,
            self.tools is not None,
            memory,
            hidden,
            bounds,
            is_early,
            is_traced,
        )
        self.children[side] = child

    def close(self) -> None:
        for child in self.children.values():
            child.close()
        self.children.clear()

    def give_back(self) -> None:
        """Give its memory back; its children have ended."""
        for region in self.regions.values():
            region.close()
        self.regions.clear()

    def settle(self) -> None:
        """Wait for all of ours on the GPU."""
        if self.tools is not None:
            self.tools.device.wait(_PATIENCE_S)

    def region(self, slot: Slot) -> Region:
        return self.regions[slot.place]

    def next_run(
        self, sets: int, numbers: dict[str, int | float], is_empty: bool = False
    ) -> Run:
        self._turn += 1
        return Run(self._turn, tuple(range(sets)), numbers, is_empty)

    def look_when_quiet(self) -> None:
        """Learn, once, how long the probe takes while no child has work."""
        if self.tools is not None and self._probe is None:
            self._probe = Probe(self.tools)

    def is_quiet(self) -> bool:
        """Tell whether no child that stands still has left work on the GPU."""
        return self._probe is None or self._probe.is_quiet()

    def timed(self, side: Side, run: Run, layout: Layout, patience_s: float) -> Unit:
        """Have one side do its unit, by our clock.

        Its inputs are loaded, its outputs are poisoned and it stands still. The clock
        begins before its inputs are complete and it may move, and stops when every
        output on the GPU is copied to where it can't write, and of the others many
        bytes are read at places that nobody knows. Those are copied when it stands
        still again.

        Raises:
            Lost: it ended, or does not end.
            Raised: it raised an exception.
            TookBack: an output was not yet there when it said so.
        """
        child = self.children[side]
        on_gpu: list[Slot] = []
        drawn: list[_Drawn] = []
        for place, region in self.regions.items():
            slots = [slot for slot in layout.written if slot.place == place]
            if slots and isinstance(region, HostRegion):
                drawn.append(_Drawn(region, slots, _places(slots)))
            elif slots:
                on_gpu = slots
        self.settle()
        began_ns = time.perf_counter_ns()
        for region in self.regions.values():
            region.complete(side)
        if self.tools is not None:
            self.tools.flush()
        self.settle()
        child.go_on()
        child.send(run)
        child.done(run, patience_s)
        if on_gpu:
            self.regions["device"].keep(on_gpu, side)
        seen = [part.region.drawn(part.places, side) for part in drawn]
        self.settle()
        taken_ns = time.perf_counter_ns() - began_ns
        child.stop()
        for part, bytes_then in zip(drawn, seen, strict=True):
            part.region.keep(part.slots, side)
            is_other = part.region.kept_at(part.places, side) != bytes_then
            if is_other.any():
                raise TookBack(_at(part.slots, int(part.places[is_other.argmax()])))
        return Unit(taken_ns, self.is_quiet())


class _Drawn(NamedTuple):
    """Outputs in the host's memory, and the places at which they are looked at."""

    region: HostRegion
    slots: list[Slot]
    places: NDArray[np.int64]


def _places(slots: list[Slot]) -> NDArray[np.int64]:
    """Draw bytes of outputs, each as likely as any other."""
    ends = np.cumsum([slot.size_bytes for slot in slots])
    begins = np.array([slot.offset for slot in slots])
    drawn = np.random.default_rng(secrets.randbits(64)).integers(0, ends[-1], _DRAWN)
    of = np.searchsorted(ends, drawn, side="right")
    before = ends - np.array([slot.size_bytes for slot in slots])
    places: NDArray[np.int64] = begins[of] + drawn - before[of]
    return places


def _at(slots: list[Slot], place: int) -> str:
    """Name the output that a byte belongs to."""
    return next(
        slot.name
        for slot in slots
        if slot.offset <= place < slot.offset + slot.size_bytes
    )


def _refuse_too_large(
    device: Device | None,
    size_bytes: Mapping[HostPlace, int],
    sides: int,
    is_staged: bool,
) -> None:
    # what is shared and the poison; where two are timed, each of them shares, and there
    # are inputs and what each left
    times = 2 if sides == 1 else 6
    on_gpu, in_host = 0, times * sum(size_bytes.values())
    if device is not None and is_staged:
        on_gpu = sides * size_bytes["device"]
    elif device is not None:
        on_gpu = times * size_bytes["device"]
        in_host -= on_gpu
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if device is not None and on_gpu + _SPARE_BYTES > device.free_bytes:
        raise TooLarge(
            f"Its buffers need {on_gpu >> 20:,} MiB of the GPU's memory and the "
            f"processes some {_SPARE_BYTES >> 20:,}; {device.free_bytes >> 20:,} are "
            "free."
        )
    if in_host > free_bytes:
        raise TooLarge(
            f"Its buffers need {in_host >> 20:,} MiB of memory, and "
            f"{free_bytes >> 20:,} are free."
        )
