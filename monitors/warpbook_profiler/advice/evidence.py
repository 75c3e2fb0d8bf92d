"""All that a rule may look at: the trace, its bare run, the chip and the source."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.code.cell_code import CellCode, walk
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.events.columns import NONE, Bools, Category, Columns, Int64s
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.calls import Calls
from warpbook_profiler.facts.roofline import Called, Need
from warpbook_profiler.facts.solver_flops import SOLVERS
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.replay.estimate import Bare

_T = TypeVar("_T")


class Product(NamedTuple):
    """Calls of one operator with the same operands that multiply."""

    by: Called
    need: Need
    flops: int
    #: positions among the events on the GPU
    events: Int64s


@dataclass(frozen=True)
class Evidence:
    """One profiled window."""

    trace: Trace
    #: the replay without the profiler, and its figures
    bare: Bare
    bare_run: BareRun
    #: of the bare run
    metrics: Metrics
    _derived: dict[Any, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def once(self, derive: Callable[[Evidence], _T]) -> _T:
        """Derive what follows from the trace alone, the first time for any code."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        found: _T = self._derived[derive]
        return found

    @property
    def events(self) -> Columns:
        return self.trace.events

    @property
    def run(self) -> Run:
        return self.trace.run

    @property
    def calls(self) -> Calls:
        return self.trace.calls

    @property
    def operators(self) -> Operators:
        """Give the operators of the window."""
        return self.once(_operators)

    @property
    def gpu(self) -> Columns:
        """Give the events on the GPU; rules name them by their position."""
        return self.operators.gpu

    @property
    def is_kernel(self) -> Bools:
        """Choose the kernels among the events on the GPU."""
        return self.once(_kernels)

    @cached_property
    def chip(self) -> Chip | None:
        """Give the GPU; None where no ceilings of it are known."""
        return Chip.of(self.run)

    def takes(self, name: str, count: float = 1.0) -> Span:
        """Give what the host, or what needs no ceiling, takes; see `Limits`.

        Raises:
            KeyError: there is no such curve.
        """
        times = self.run.calibration.times(name, count)
        if times is None:
            raise KeyError(name)
        return Span(*times)

    @cached_property
    def code(self) -> CellCode:
        """Give the cell's source as far as it is known."""
        return CellCode(self.run.source)

    def is_own_method(self, name: str) -> bool:
        """Tell whether a class of the person's has such a method, with any options."""
        parts = [
            one.body for one in walk(self.code.tree) if isinstance(one, ast.ClassDef)
        ]
        own = {getattr(one, "name", "") for body in parts for one in body}
        return name in own or any(one.endswith(f".{name}") for one in self.run.called)

    def of_code(self, code: CellCode) -> Evidence:
        """Give the same window with other code in the place of the cell's."""
        other = copy.copy(self)
        vars(other)["code"] = code
        return other

    @property
    def products(self) -> tuple[Product, ...]:
        """Return the products whose FLOPs are known, calls that are alike together."""
        return self.once(_products)

    @property
    def busy_ns(self) -> int:
        """Give how long the GPU was busy."""
        return self.bare_run.gpu_busy_ns

    def time_ns(self, events: Int64s) -> int:
        """Add up the time of events on the GPU."""
        return int(self.gpu.duration_ns[events].sum())

    def share(self, time_ns: float) -> float:
        """Give a time as a share of the bare run."""
        return time_ns / max(self.bare_run.time_ns, 1)

    def host_position(self, calls: Int64s) -> Int64s:
        """Give where the replay's host has these calls; those in no lane are out."""
        positions: Int64s = self._host_positions[calls]
        inside: Int64s = positions[positions != NONE]
        return inside

    @cached_property
    def _host_positions(self) -> Int64s:
        # by call; the last is that of NONE
        positions = np.full(len(self.calls.api) + 1, NONE, np.int64)
        row = self.bare.program.host.row
        positions[row] = np.arange(len(row))
        return positions

    def waits_within(self, positions: Int64s) -> Int64s:
        """Return the calls in which these operators wait for the GPU.

        Args:
            positions: of operators none of which encloses another.
        """
        table, calls = self.operators.table, self.calls
        waiting = np.flatnonzero(calls.waits)
        start_ns, thread = calls.api.start_ns[waiting], calls.api.track[waiting]
        edges = np.searchsorted(
            start_ns, [table.start_ns[positions], table.end_ns[positions]]
        )
        inside = np.zeros(len(waiting), np.bool_)
        for position, first, last in zip(positions, *edges, strict=True):
            inside[first:last] |= thread[first:last] == table.track[position]
        waits: Int64s = waiting[inside]
        return waits

    def line_at(self, start_ns: int) -> int | None:
        """Give the line at which the host was, where lines were asked for."""
        if self.run.marks is None:
            return None
        line = int(self.run.marks.line_at(np.array([start_ns]))[0])
        return None if line == NONE else line


def _operators(evidence: Evidence) -> Operators:
    return Operators(evidence.trace)


def _kernels(evidence: Evidence) -> Bools:
    return evidence.gpu.is_in(Category.KERNEL)


def _products(evidence: Evidence) -> tuple[Product, ...]:
    groups, place = evidence.trace.called
    at = np.flatnonzero(evidence.is_kernel)
    return tuple(
        Product(by, need, need.flops, at[np.flatnonzero(place == number)])
        for number, by in enumerate(groups)
        if (need := by.need) is not None and need.flops and by.name not in SOLVERS
    )
