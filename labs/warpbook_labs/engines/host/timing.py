"""Timed units: learner and baseline in turns, on the same new inputs.

A unit is some calls of `run`, each on buffers of its own. The learner's outputs are
compared with what the baseline left, after both; one set of one unit that is drawn is
compared with what the lab's own Python says is right, too.
"""

from __future__ import annotations

import contextlib
import secrets
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn

import numpy as np

from warpbook_labs.cases.comparison import first_wrong, wrong_words
from warpbook_labs.cases.preparation import Arrays, OwnPython
from warpbook_labs.engines.host.child_handle import Lost, Raised
from warpbook_labs.engines.host.correctness import numbers_of
from warpbook_labs.engines.host.harness import Harness, TookBack, Unit
from warpbook_labs.engines.host.lane import Bounds
from warpbook_labs.engines.host.memory import laid_out
from warpbook_labs.engines.host.messages import Prepare, Slot
from warpbook_labs.engines.host.regions import Values
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.gpu.kernels import filled
from warpbook_labs.gpu.ratio import Side, Stopping
from warpbook_labs.gpu.speed import (
    IsEnough,
    Times,
    WrongOutput,
    drawn_of_look,
    pool_sizes,
)
from warpbook_labs.lab.host_spec import HostPlace
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Speed

#: units of each that are checked, but whose times are not used
_WARM_UP = 3
#: no new look is begun so long after the warm-up
_MOST_S = 10.0
#: pairs that are done again since work was left on the GPU
_MOST_VOIDS = 4
#: at the GPU, before and after a process has ended that may have work there
_LOOKS, _BETWEEN_LOOKS_S = 5, 0.1
#: units in which nothing is called, to know what the lane itself takes
_EMPTY = 9
#: of a unit, whatever is taken off
_LEAST_SHARE = 0.1


class Disturbed(Exception):
    """Somebody else's work is on the GPU; the message says so."""


class DrawnInputs(NamedTuple):
    """What inputs of timed units are put together from."""

    pools: dict[str, Values]
    places: Mapping[str, HostPlace]
    #: as the lab's own Python drew it
    given: Arrays

    @classmethod
    def of(cls, loaded: LoadedLab, speed: Speed) -> DrawnInputs:
        """Draw them.

        Raises:
            BadLab: the lab's own Python fails.
        """
        rng = np.random.default_rng(secrets.randbits(64))
        sizes = pool_sizes(loaded, speed)
        given = OwnPython(loaded).inputs(sizes, secrets.choice(speed.values), rng)
        read = [
            parameter
            for parameter in loaded.lab.parameters
            if parameter.kind in ("input", "inout")
        ]
        pools = {
            parameter.name: np.ascontiguousarray(
                np.asarray(given[parameter.name]).reshape(-1), parameter.dtype
            )
            for parameter in read
        }
        return cls(pools, {slot.name: slot.place for slot in read}, given)


class _KeptUnit(NamedTuple):
    """A set of one unit, to be compared on the CPU."""

    given: Arrays
    outputs: dict[str, Values]


class Trials:
    """All timed units of one submission."""

    def __init__(
        self,
        harness: Harness,
        loaded: LoadedLab,
        speed: Speed,
        drawn: DrawnInputs,
        bounds: Bounds,
    ) -> None:
        """Have both sides prepare their sets, and take memory that no child sees.

        Raises:
            WrongOutput: the learner's `prepare` fails, or leaves work on the GPU.
            Disturbed: somebody else works on the GPU.
            DriverError: the baseline's `prepare` fails.
        """
        self._harness, self._loaded, self._speed = harness, loaded, speed
        self._drawn, self._bounds = drawn, bounds
        self._python = OwnPython(loaded)
        self._layout = laid_out(loaded.lab.parameters, speed.sizes, speed.calls)
        self._numbers = numbers_of(loaded, drawn.given)
        for region in harness.regions.values():
            region.own()
        order = Prepare(dict(speed.sizes), self._layout.slots)
        for side, child in harness.children.items():
            with _blamed(side):
                child.ask(order, bounds.prepare_s)
                child.stop()
        self._empty_ns = self._measured_empty_ns()
        self._most_off: dict[str, float] | None = None
        self._kept: _KeptUnit | None = None

    def run(self, stopping: Stopping, is_enough: IsEnough) -> Times:
        """Time both sides until it is enough.

        Raises:
            WrongOutput: a unit of the learner's was wrong.
            Disturbed: somebody else works on the GPU.
            DriverError: the baseline fails, which is no fault of the learner's.
        """
        taken: dict[Side, list[float]] = {"learner": [], "baseline": []}
        since_ns = time.monotonic_ns()
        for number in range(_WARM_UP):
            self._pair(number, is_kept=False)
        # the first pair may wait for the lab's own Python to say what it may be off
        began_s = time.monotonic()
        done = 0
        for pairs in stopping.looks():
            kept = drawn_of_look(done, pairs)
            for number in range(done, pairs):
                for side, unit_ns in self._pair(number, number == kept).items():
                    taken[side].append(unit_ns / self._speed.calls)
            done = pairs
            late = time.monotonic() - began_s > _MOST_S
            if late or is_enough(taken["learner"], taken["baseline"]):
                break
        until_ns = time.monotonic_ns()
        self._check_on_host()
        return Times(taken["learner"], taken["baseline"], 1, since_ns, until_ns)

    def _pair(self, number: int, is_kept: bool) -> dict[Side, float]:
        """Time both on the same inputs; the order is another one each time."""
        order: tuple[Side, Side] = ("learner", "baseline")
        if number % 2:
            order = ("baseline", "learner")
        for _ in range(_MOST_VOIDS + 1):
            keys = self._filled()
            units = {side: self._unit(side) for side in order}
            self._check(keys, is_kept)
            if all(unit.is_quiet for unit in units.values()):
                return {
                    side: max(
                        unit.taken_ns - self._empty_ns, _LEAST_SHARE * unit.taken_ns
                    )
                    for side, unit in units.items()
                }
        return self._blame()

    def _unit(self, side: Side) -> Unit:
        self._make_ready(side)
        run = self._harness.next_run(self._speed.calls, self._numbers)
        with _blamed(side):
            unit = self._harness.timed(side, run, self._layout, self._bounds.run_s)
        if side == "learner":
            for slot in self._layout.read:
                region = self._harness.region(slot)
                if not slot.is_written and region.is_changed(slot, side):
                    words = f"It writes `{slot.name}`, an input, in a timed call."
                    raise WrongOutput("input", words)
        return unit

    def _filled(self) -> dict[tuple[str, int], int]:
        """Put all inputs together anew; tell by which keys."""
        keys = {
            (slot.name, slot.number): secrets.randbits(32) for slot in self._layout.read
        }
        for slot in self._layout.read:
            key = keys[slot.name, slot.number]
            self._harness.region(slot).fill(slot, slot.name, key)
        return keys

    def _make_ready(self, side: Side) -> None:
        """Poison what a side is to write, and load what it is to read."""
        for slot in self._layout.written:
            if not slot.is_read:
                self._harness.region(slot).poison(slot, side)
        for place, region in self._harness.regions.items():
            slots = [slot for slot in self._layout.read if slot.place == place]
            region.load(slots, side)

    def _blame(self) -> NoReturn:
        """Find out whose work is left on the GPU: it ends with its process.

        Nobody is blamed for what comes and goes, as others' work may.
        """
        stays = not any(self._harness.is_quiet() for _ in range(_LOOKS))
        self._harness.children["learner"].close()
        del self._harness.children["learner"]
        if stays and self._is_at_rest():
            raise WrongOutput(
                "goes on",
                "It works on the GPU after `prepare` or `run` has returned and the GPU "
                f"was waited for: something was there {_MOST_VOIDS + 1} times in turn.",
            )
        raise Disturbed(
            f"The GPU was not at rest after timed units, {_MOST_VOIDS + 1} times in "
            "turn. Another program uses it, or this one leaves work there now and then."
        )

    def _is_at_rest(self) -> bool:
        """Tell whether the GPU comes to rest, and then stays so."""
        for _ in range(_LOOKS):
            if self._harness.is_quiet():
                return all(self._harness.is_quiet() for _ in range(_LOOKS))
            # the driver may take a moment to end what a process had there
            time.sleep(_BETWEEN_LOOKS_S)
        return False

    def _check(self, keys: dict[tuple[str, int], int], is_kept: bool) -> None:
        kept = secrets.randbelow(self._speed.calls) if is_kept else -1
        for slot in self._layout.written:
            region = self._harness.region(slot)
            words = region.wrong(slot, 0.0)
            if words:
                # what it may be off is only asked where it is not the very same
                words = region.wrong(slot, self._bound(slot, keys))
            if words:
                raise WrongOutput("wrong", words)
        if is_kept:
            outputs = {
                slot.name: self._harness.region(slot).kept(slot, "learner").copy()
                for slot in self._layout.written
                if slot.number == kept
            }
            self._kept = _KeptUnit(self._given(keys, kept), outputs)

    def _bound(self, slot: Slot, keys: dict[tuple[str, int], int]) -> float:
        """Say how far an output may be from the baseline's, which may be off, too."""
        if self._most_off is None:
            right = {
                written.name: self._harness.region(written).kept(written, "baseline")
                for written in self._layout.written
                if written.number == slot.number
            }
            given = self._given(keys, slot.number)
            bounds = self._python.tolerance(given, dict(self._speed.sizes), right)
            self._most_off = {name: 2 * float(np.max(bounds[name])) for name in right}
        return self._most_off[slot.name]

    def _given(self, keys: dict[tuple[str, int], int], number: int) -> Arrays:
        """Give the inputs of a set, as they were put together."""
        given = dict(self._drawn.given)
        for slot in self._layout.read:
            if slot.number == number:
                count = slot.size_bytes // np.dtype(slot.dtype).itemsize
                pool = self._drawn.pools[slot.name]
                values = filled(pool, count, keys[slot.name, number])
                given[slot.name] = values.reshape(slot.shape)
        return given

    def _check_on_host(self) -> None:
        """Compare the set that was drawn by the lab's own Python."""
        if self._kept is None:
            raise DriverError("No timed unit was kept for the CPU.")
        given, outputs = self._kept
        sizes = dict(self._speed.sizes)
        expected = self._python.expected(given, sizes)
        tolerance = self._python.tolerance(given, sizes, expected)
        for parameter in self._loaded.lab.parameters:
            if parameter.name not in outputs:
                continue
            right = self._python.shaped("expected", expected, parameter, sizes)
            off = tolerance[parameter.name]
            wrong = first_wrong(parameter.name, outputs[parameter.name], right, off)
            if wrong is not None:
                raise WrongOutput("wrong", f"In a timed call {wrong_words(wrong)}")

    def _measured_empty_ns(self) -> float:
        """Tell what a unit takes in which nothing is called.

        That is the inputs' arrival, the order and the answer, the reading of outputs
        and, where buffers are staged, the copies. It is the baseline's process that is
        asked, which is ours.
        """
        taken: list[float] = []
        voids = 0
        self._filled()
        while len(taken) < _EMPTY:
            self._make_ready("baseline")
            run = self._harness.next_run(
                self._speed.calls, self._numbers, is_empty=True
            )
            patience_s = self._bounds.run_s
            with _blamed("baseline"):
                unit = self._harness.timed("baseline", run, self._layout, patience_s)
            if unit.is_quiet:
                taken.append(unit.taken_ns)
            voids = 0 if unit.is_quiet else voids + 1
            if voids > _MOST_VOIDS:
                self._blame()
        return statistics.median(taken)


@contextlib.contextmanager
def _blamed(side: Side) -> Iterator[None]:
    """Have what a child does wrong be the fault of who wrote its source."""
    try:
        yield
    except (Lost, Raised, TookBack) as problem:
        if side == "baseline":
            raise DriverError(f"The lab's baseline fails: {problem}") from None
        if isinstance(problem, TookBack):
            words = f"`{problem}` was not yet there when it said that it was done."
            raise WrongOutput("wrong", words) from None
        kind = problem.kind if isinstance(problem, Lost) else "raised"
        raise WrongOutput(kind, f"In a timed call: {problem}") from None
