"""Inputs of timed calls as they are on the CPU, and what is right for one of the calls.

Nothing here wants the GPU, so it is done while the GPU starts.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases.preparation import Answers, Arrays, OwnPython, shape_of
from warpbook_labs.gpu.kernels import filled
from warpbook_labs.gpu.speed import pool_sizes
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Speed


class Call(NamedTuple):
    """What the inputs of one call are made from."""

    kind: str
    #: by parameter
    keys: dict[str, int]


class TimedInputs:
    """What inputs of all timed calls are put together from, of each kind of values."""

    def __init__(self, loaded: LoadedLab, speed: Speed) -> None:
        """Draw them, and compute what is right for a call of those to come.

        Raises:
            BadLab: the lab's own Python fails.
        """
        self.speed, self._python = speed, OwnPython(loaded)
        self._read = [
            parameter
            for parameter in loaded.lab.parameters
            if parameter.kind in ("input", "inout")
        ]
        rng = np.random.default_rng(secrets.randbits(64))
        sizes = pool_sizes(loaded, speed)
        #: as the lab's own Python drew them
        self.drawn: dict[str, Arrays] = {
            values: self._python.inputs(sizes, values, rng) for values in speed.values
        }
        #: elements by kind and parameter
        self.pools: dict[str, dict[str, NDArray[Any]]] = {
            values: {
                parameter.name: np.ascontiguousarray(
                    np.asarray(drawn[parameter.name]).reshape(-1), parameter.dtype
                )
                for parameter in self._read
            }
            for values, drawn in self.drawn.items()
        }
        #: is made once, and compared on the CPU if no later one is drawn for that
        self.first = self.call()
        self._first_answers = self._computed(self.first)

    def call(self) -> Call:
        """Draw the inputs of a call."""
        kind = secrets.choice(list(self.drawn))
        return Call(kind, {name: secrets.randbits(32) for name in self.pools[kind]})

    def given(self, call: Call) -> Arrays:
        """Give the inputs of a call, as the GPU puts them together."""
        given = dict(self.drawn[call.kind])
        for parameter in self._read:
            shape = shape_of(parameter, self.speed.sizes)
            pool = self.pools[call.kind][parameter.name]
            count = int(np.prod(shape, dtype=np.int64))
            given[parameter.name] = filled(
                pool, count, call.keys[parameter.name]
            ).reshape(shape)
        return given

    def answers(self, call: Call) -> Answers:
        """Compute what is right for a call; of the first one it is there."""
        return self._first_answers if call is self.first else self._computed(call)

    def _computed(self, call: Call) -> Answers:
        return self._python.answers(self.given(call), dict(self.speed.sizes))
