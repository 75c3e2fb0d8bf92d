"""A case on host code: the inputs of every call, and whether its outputs are right."""

from __future__ import annotations

import copy
import math
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases import execution
from warpbook_labs.cases.comparison import WrongElement, with_inputs, wrong_words
from warpbook_labs.cases.preparation import Arrays, OwnPython, is_buffer, shape_of
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.simulated.messages import HostBuffer, HostCall, HostCase
from warpbook_labs.gpu.kernels import poison
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.shown_cases import calls_of, generator_of
from warpbook_labs.lab.spec import Parameter

#: of poison that no right result has
_NOT_BY_CHANCE_BYTES = 16


class WrongCall(NamedTuple):
    """What is wrong first."""

    #: the first one is 1
    number: int
    wrong: WrongElement

    @property
    def words(self) -> str:
        words = wrong_words(self.wrong)
        return f"In call {self.number}: {words}" if self.number > 1 else words


class PreparedCalls:
    """A case with the numbers of every call."""

    def __init__(self, loaded: LoadedLab, case: DrawnCase) -> None:
        """Draw the numbers.

        Raises:
            BadLab: the lab's own Python fails.
        """
        self.case, self._lab = case, loaded.lab
        self._python = OwnPython(loaded)
        calls = range(calls_of(loaded.lab))
        self.given = [self._drawn(generator_of(case.seed, call)) for call in calls]
        self.buffers = tuple(
            HostBuffer(
                parameter.name,
                parameter.dtype,
                shape_of(parameter, case.sizes),
                parameter.place,
                parameter.kind != "input",
                _size_bytes(parameter, case.sizes),
            )
            for parameter in loaded.lab.parameters
            if is_buffer(parameter)
        )
        #: of the poison in outputs
        self._key = secrets.randbits(32)

    @property
    def outputs(self) -> tuple[HostBuffer, ...]:
        return tuple(buffer for buffer in self.buffers if buffer.is_written)

    @property
    def input_names(self) -> set[str]:
        return {
            parameter.name
            for parameter in self._lab.parameters
            if parameter.kind in ("input", "inout")
        }

    @property
    def size_bytes(self) -> int:
        return len(self.given) * sum(buffer.size_bytes for buffer in self.buffers)

    def to_run(self) -> HostCase:
        """Give what a process needs that runs it: inputs, and poison in outputs."""
        outputs = {
            output.name: poison(output.size_bytes, self._key).tobytes()
            for output in self.outputs
        }
        return self._whole(outputs)

    def to_record(self) -> HostCase:
        """Give what a process needs that records it.

        Of a hidden case these are other inputs, which say nothing of what is right.
        """
        shown = self.with_other_inputs() if self.case.is_hidden else self
        return shown._whole({})

    def as_shown(self) -> PreparedCalls:
        """Give the same case with other inputs, which may be recorded as they are."""
        other = self.with_other_inputs()
        other.case = msgspec.structs.replace(self.case, is_hidden=False)
        return other

    def with_other_inputs(self) -> PreparedCalls:
        """Give the same case with other numbers in its buffers.

        Numbers that are no buffers stay, since a recording holds them.
        """
        scalars = [
            parameter.name
            for parameter in self._lab.parameters
            if parameter.kind == "scalar"
        ]
        rng = np.random.default_rng(secrets.randbits(64))
        other = copy.copy(self)
        other.given = [
            {**self._drawn(rng), **{name: given[name] for name in scalars}}
            for given in self.given
        ]
        return other

    def inputs(self, call: int) -> dict[str, NDArray[Any]]:
        """Give the true inputs of a call, by buffer."""
        return self._arrays(self.given[call])

    def first_wrong(
        self, left: Iterable[Mapping[str, execution.Memory]]
    ) -> WrongCall | None:
        """Find the first call that left something wrong in its outputs."""
        calls = zip(self.given, left, strict=True)
        for number, (given, held) in enumerate(calls, 1):
            wrong = self._python.first_wrong(given, self.case.sizes, held)
            if wrong is not None and not self.case.is_hidden:
                wrong = with_inputs(wrong, self._lab, given, self.case.sizes)
            if wrong is not None:
                return WrongCall(number, wrong)
        return None

    def memory(self, output: HostBuffer, data: bytes) -> execution.Memory:
        """Give what an output holds, with the first byte that is still poison."""
        first = self._first_unwritten(output, data)
        return execution.Memory(output.name, len(data), data, first_unwritten=first)

    def _first_unwritten(self, output: HostBuffer, data: bytes) -> int | None:
        dtype = np.dtype(output.dtype)
        same = np.frombuffer(data, np.uint8) == poison(len(data), self._key)
        if dtype.itemsize < 4 and dtype.kind != "f":
            # so small a number may be right by chance, and many of them may not
            return 0 if len(same) >= _NOT_BY_CHANCE_BYTES and same.all() else None
        places = np.flatnonzero(same.reshape(-1, dtype.itemsize).all(axis=1))
        return int(places[0]) * dtype.itemsize if len(places) else None

    def _drawn(self, rng: np.random.Generator) -> Arrays:
        return self._python.inputs(dict(self.case.sizes), self.case.values, rng)

    def _arrays(self, given: Arrays) -> dict[str, NDArray[Any]]:
        sizes = self.case.sizes
        return {
            parameter.name: self._python.shaped(
                "inputs", given, parameter, sizes
            ).astype(parameter.dtype, order="C")
            for parameter in self._lab.parameters
            if parameter.name in self.input_names
        }

    def _whole(self, outputs: dict[str, bytes]) -> HostCase:
        calls = []
        for given in self.given:
            data = {
                name: array.tobytes() for name, array in self._arrays(given).items()
            }
            numbers = {
                parameter.name: np.asarray(
                    given[parameter.name], parameter.dtype
                ).item()
                for parameter in self._lab.parameters
                if parameter.kind == "scalar"
            }
            calls.append(HostCall({**outputs, **data}, numbers))
        return HostCase(dict(self.case.sizes), self.buffers, tuple(calls))


def _size_bytes(parameter: Parameter, sizes: Mapping[str, int]) -> int:
    return math.prod(shape_of(parameter, sizes)) * np.dtype(parameter.dtype).itemsize
