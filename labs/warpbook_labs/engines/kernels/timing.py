"""Timed calls: learner and baseline in turns, with new inputs and a new program each.

Every output of the learner's is compared on the GPU with the reference's, which is
computed after the call from inputs that the learner's kernel never saw. One call that
is drawn is also compared on the CPU, by the lab's own Python.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases import execution
from warpbook_labs.cases.comparison import first_wrong, wrong_words
from warpbook_labs.cases.preparation import (
    OwnPython,
    memory,
    shape_of,
)
from warpbook_labs.engines.kernels.buffers import Arena
from warpbook_labs.engines.kernels.inputs import Call, TimedInputs
from warpbook_labs.engines.kernels.side import (
    Kind,
    Pool,
    ProgramSide,
    Sampling,
    Source,
    T,
)
from warpbook_labs.errors import BadRule
from warpbook_labs.gpu.errors import BadArguments, DriverError
from warpbook_labs.gpu.ratio import Side, Stopping, sides
from warpbook_labs.gpu.speed import (
    IsEnough,
    Times,
    WrongOutput,
    drawn_of_look,
)
from warpbook_labs.gpu.tools import Found, Tools
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Parameter

#: calls of each that are checked, but whose times are not used
_WARM_UP = 3
#: no new look is begun after this
_MOST_S = 12.0
#: what else lies in the GPU's memory
_SPARE_BYTES = 512 << 20


class TooLarge(Exception):
    """The timed sizes do not fit; the message says so."""


@contextlib.contextmanager
def _learners_launch() -> Iterator[None]:
    """Give words to a launch that only these sizes prevent, as by too much scratch.

    Raises:
        WrongOutput: it can't be launched.
    """
    try:
        yield
    except (BadArguments, BadRule) as problem:
        words = f"With the sizes that are timed: {problem}"
        raise WrongOutput("launch", words) from None


class Trials:
    """All that is needed for timed calls of one submission."""

    def __init__(
        self,
        tools: Tools,
        loaded: LoadedLab,
        inputs: TimedInputs,
        learner: Source,
        reference: Source,
        baseline: Source,
    ) -> None:
        """Put the inputs on the GPU, and take the memory.

        Raises:
            TooLarge: there is not enough.
            WrongOutput: the learner's rule can't be followed with the timed sizes.
            BadRule: another one can't be.
        """
        self.tools, self.loaded, self._inputs = tools, loaded, inputs
        self.speed = speed = inputs.speed
        self._python = OwnPython(loaded)
        with _learners_launch():
            memory(loaded, learner.rule, speed.sizes)
        needed = _SPARE_BYTES + sum(
            buffer.size_bytes
            for source in (learner, reference, baseline)
            for buffer in memory(loaded, source.rule, speed.sizes)
        )
        if needed > tools.device.free_bytes:
            raise TooLarge(
                f"Timed calls need {needed >> 20:,} MiB of the GPU's memory, and "
                f"{tools.device.free_bytes >> 20:,} are free."
            )
        self.kinds = {
            values: Kind(
                inputs.drawn[values],
                {name: self._pool(pool) for name, pool in pools.items()},
            )
            for values, pools in inputs.pools.items()
        }
        # where memory lies makes a kernel up to some percent faster or slower, so both
        # sides have the same
        shared = self._arena(learner, baseline)
        with _learners_launch():
            self._learner = self._side(learner, shared)
        self._baseline = self._side(baseline, shared)
        self._reference = self._side(reference, self._arena(reference))
        self._kept: tuple[Call, dict[str, NDArray[np.uint8]]] | None = None
        #: by kind of values
        self._bounds: dict[str, dict[str, float]] = {}

    def _side(self, source: Source, arena: Arena) -> ProgramSide:
        given = self.tools, self.loaded, self.speed.sizes, self.kinds
        return ProgramSide(*given, source, arena)

    def _arena(self, *sources: Source) -> Arena:
        """Take memory in which each of these programs can run."""
        needed: dict[str, execution.Memory] = {}
        for source in sources:
            for buffer in memory(self.loaded, source.rule, self.speed.sizes):
                before = needed.get(buffer.name)
                if before is None or before.size_bytes < buffer.size_bytes:
                    needed[buffer.name] = buffer
        return Arena(self.tools, list(needed.values()))

    def _pool(self, values: NDArray[Any]) -> Pool:
        # the digest reads whole words
        spare = -values.nbytes % 4
        address = self.tools.device.allocate(values.nbytes + spare)
        self.tools.device.upload(address, values)
        return Pool(values, address, self.tools.digest(address, values.nbytes))

    def run(self, stopping: Stopping, is_enough: IsEnough) -> Times:
        """Time both sides until it is enough.

        Args:
            is_enough: looks at what was taken so far.

        Raises:
            WrongOutput: a call of the learner's was wrong, or could not be launched.
            BadArguments: one of the lab's own could not be.
            Crashed: the GPU stopped it.
            Hung: it did not end.
        """
        taken: dict[Side, list[float]] = {"learner": [], "baseline": []}
        warm_up: list[Side] = ["learner", "baseline"] * _WARM_UP
        began_s = time.monotonic()
        since_ns = time.monotonic_ns()
        done = 0
        for side in warm_up:
            self._called(side, self._inputs.call())
        for pairs in stopping.looks():
            kept = drawn_of_look(done, pairs)
            for side in sides(pairs - done):
                is_kept = side == "learner" and len(taken["learner"]) == kept
                # what is right for the first one that is drawn is known already
                is_known = is_kept and not done
                call = self._inputs.first if is_known else self._inputs.call()
                taken[side].append(self._called(side, call, is_kept))
            done = pairs
            late = time.monotonic() - began_s > _MOST_S
            if late or is_enough(taken["learner"], taken["baseline"]):
                break
        until_ns = time.monotonic_ns()
        self._check_on_host()
        return Times(taken["learner"], taken["baseline"], 1, since_ns, until_ns)

    def sampled_once_more(self, sampling: Sampling[T]) -> T:
        """Run the learner's program with new inputs; it is neither timed nor checked.

        Raises:
            DriverError: it could not be run.
        """
        self._learner.ready(self._inputs.call())
        return self._learner.call(sampling)

    def _called(self, side: Side, call: Call, is_kept: bool = False) -> float:
        if side == "baseline":
            self._baseline.ready(call)
            return self._baseline.call_ns()
        self._learner.ready(call)
        with _learners_launch():
            taken_ns = self._learner.call_ns()
        self._check(call)
        if is_kept:
            self._keep(call)
        return taken_ns

    def _check(self, call: Call) -> None:
        """Compare a call with the reference's, computed only now."""
        stray = self._learner.arena.stray()
        if stray:
            raise WrongOutput("red zone", stray)
        pools = ((n, p) for kind in self.kinds.values() for n, p in kind.pools.items())
        for name, pool in pools:
            if self.tools.digest(pool.address, pool.values.nbytes) != pool.digest:
                words = f"It changes what other calls get as `{name}`."
                raise WrongOutput("red zone", words)
        self._reference.ready(call)
        for parameter in self.loaded.lab.parameters:
            # of new inputs, bit by bit
            bits = f"uint{8 * np.dtype(parameter.dtype).itemsize}"
            if (
                parameter.kind == "input"
                and self._compare(parameter, 0.0, bits).how_many
            ):
                words = (
                    f"It writes `{parameter.name}`, which is an input, in a timed call."
                )
                raise WrongOutput("input", words)
        self._reference.call_ns()
        for output in self._outputs():
            difference = self._compare(output, 0.0)
            if difference.how_many:
                # what it may be off is only asked where it is not the very same
                if call.kind not in self._bounds:
                    self._bounds[call.kind] = self._bounds_of(call)
                difference = self._compare(output, self._bounds[call.kind][output.name])
            if difference.how_many:
                count = int(np.prod(shape_of(output, self.speed.sizes), dtype=np.int64))
                shape = shape_of(output, self.speed.sizes)
                index = ", ".join(map(str, np.unravel_index(difference.first, shape)))
                raise WrongOutput(
                    "wrong",
                    f"{output.name}[{index}] is wrong in a timed call, and "
                    f"{difference.how_many:,} of {count:,} elements are.",
                )

    def _compare(
        self, parameter: Parameter, bound: float, dtype: str | None = None
    ) -> Found:
        """Compare what the learner left with what is in the reference's arena."""
        got, right = self._learner.arena, self._reference.arena
        place = got.places[parameter.name]
        size_bytes = right.places[parameter.name].size_bytes
        count = size_bytes // np.dtype(parameter.dtype).itemsize
        self.tools.clear()
        self.tools.compare(
            got.base,
            place.begin,
            right.addresses[parameter.name],
            count,
            dtype or parameter.dtype,
            bound,
            got.key,
        )
        return self.tools.outcome()

    def _outputs(self) -> list[Parameter]:
        parameters = self.loaded.lab.parameters
        return [
            parameter
            for parameter in parameters
            if parameter.kind in ("output", "inout")
        ]

    def _bounds_of(self, call: Call) -> dict[str, float]:
        """Say how far an output may be from the reference's, which may be off, too."""
        given = self._inputs.given(call)
        right = {
            output.name: self.tools.device.download(
                self._reference.arena.addresses[output.name],
                self._reference.arena.places[output.name].size_bytes,
            )
            .view(output.dtype)
            .reshape(shape_of(output, self.speed.sizes))
            for output in self._outputs()
        }
        bounds = self._python.tolerance(given, self.speed.sizes, right)
        return {
            output.name: 2 * float(np.max(bounds[output.name]))
            for output in self._outputs()
        }

    def _keep(self, call: Call) -> None:
        arena = self._learner.arena
        device = self.tools.device
        outputs = {
            output.name: device.download(
                arena.addresses[output.name], arena.places[output.name].size_bytes
            )
            for output in self._outputs()
        }
        self._kept = call, outputs

    def _check_on_host(self) -> None:
        """Compare the call that was drawn by the lab's own Python."""
        if self._kept is None:
            raise DriverError("No timed call was kept for the CPU.")
        call, outputs = self._kept
        sizes = self.speed.sizes
        expected, tolerance = self._inputs.answers(call)
        for output in self._outputs():
            wrong = first_wrong(
                output.name,
                outputs[output.name]
                .view(output.dtype)
                .reshape(shape_of(output, sizes)),
                self._python.shaped("expected", expected, output, sizes),
                tolerance[output.name],
            )
            if wrong is not None:
                raise WrongOutput("wrong", f"In a timed call {wrong_words(wrong)}")
