"""Judges a program that a learner's Python recorded: outputs, mistakes, counts, times.

The program comes out of the jail, where anybody may have written it. What counts is
here: the inputs, which it never saw, and what it does with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.judging.machine import Machine
from warpbook_labs.engines.simulated.judging.memory import (
    CARRIED,
    FIRST_CALL,
    MOST_CALLS,
    UNWRITTEN,
    Storage,
    span_of,
)
from warpbook_labs.engines.simulated.judging.timeline import thinned
from warpbook_labs.engines.simulated.messages import (
    Buffer,
    HostVerdicts,
    Judge,
    Trial,
    Verdict,
)
from warpbook_labs.engines.simulated.program import (
    BeginCall,
    Program,
    ProgramRefused,
    View,
)
from warpbook_labs.lab.texts import INVALID_MESSAGE
from warpbook_labs.results.findings import Bar, HostCounts
from warpbook_labs.sandbox.lines.objects import in_order

MOST_INSTRUCTIONS = 100_000
MOST_BARS = 400
#: where no engine had anything to do
NO_BOUND_PERCENT = 1_000_000

Array = NDArray[Any]


def judged(job: Judge) -> HostVerdicts:
    """Judge programs, in a process that has no right answer and no learner's line."""
    return HostVerdicts(tuple(_verdict(trial) for trial in job.trials))


def _verdict(trial: Trial) -> Verdict:
    try:
        program = msgspec.msgpack.decode(trial.program, type=Program)
    except (msgspec.DecodeError, RecursionError):
        return Verdict(INVALID_MESSAGE)
    kinds = {buffer.name: buffer for buffer in trial.buffers}
    calls = [
        {
            name: np.frombuffer(data, kinds[name].dtype).reshape(kinds[name].shape)
            for name, data in call.items()
        }
        for call in trial.calls
    ]
    try:
        return judge(program, trial.buffers, calls)
    except ProgramRefused as problem:
        return Verdict(str(problem))


def judge(
    program: Program,
    buffers: Sequence[Buffer],
    calls: Sequence[Mapping[str, Array]],
) -> Verdict:
    """Do what a program asks, with inputs that it has never seen.

    Args:
        program: what was recorded; nothing of it is trusted.
        calls: for each call of `run` what the inputs hold.

    Raises:
        ProgramRefused: no machine could do this, or not within the bounds of a lab.
    """
    if len(program.instructions) > MOST_INSTRUCTIONS:
        raise ProgramRefused(
            f"More than {MOST_INSTRUCTIONS:,} things are asked of the machine."
        )
    if not 0 < len(calls) <= MOST_CALLS:
        raise ValueError(f"1 to {MOST_CALLS} calls can be judged.")
    return _Judging(program, buffers, calls).judge()


class _Judging:
    def __init__(
        self,
        program: Program,
        buffers: Sequence[Buffer],
        calls: Sequence[Mapping[str, Array]],
    ) -> None:
        self._program = program
        self._calls = calls
        self._machine = Machine()
        self._buffers = {buffer.name: buffer for buffer in buffers}
        self._storages = self._buffer_storages()
        self._outputs: list[dict[str, bytes]] = []
        self._unwritten: list[dict[str, int]] = []
        self._writers: list[dict[str, tuple[bytes, bytes]]] = []
        self._sources: list[dict[str, tuple[int, ...]]] = []
        self._counts: list[HostCounts] = []
        self._count_lines: list[dict[str, tuple[int, ...]]] = []
        self._bars: tuple[Bar, ...] = ()

    def judge(self) -> Verdict:
        begun = 0
        for instruction in self._program.instructions:
            if isinstance(instruction, BeginCall):
                self._end_call(begun)
                if begun == len(self._calls):
                    raise ProgramRefused("`run` was called more often than it is.")
                self._begin_call(begun)
                begun += 1
            else:
                self._machine.do(instruction)
        if begun != len(self._calls):
            raise ProgramRefused("`run` was not called as often as it is.")
        self._end_call(begun)
        tuner, findings = self._machine.tuner, self._machine.watch.report.findings
        self._counts[-1].convolution_percent = tuner.percent
        self._counts[-1].unrepeatable = tuner.unrepeatable
        self._count_lines[-1] |= tuner.lines()
        return Verdict(
            "",
            tuple(self._outputs),
            tuple(self._unwritten),
            tuple(self._writers),
            tuple(self._sources),
            tuple(findings),
            tuple(self._counts),
            tuple(self._count_lines),
            self._bars,
            self._machine.first_look,
            dict(tuner.percents),
        )

    def _buffer_storages(self) -> dict[str, Storage]:
        views, storages = self._program.buffers, {}
        if views.keys() != self._buffers.keys():
            raise ProgramRefused("The program has other buffers than the lab.")
        for name, buffer in self._buffers.items():
            number = views[name].storage
            strides = _dense_strides(buffer.shape)
            if views[name] != View(number, buffer.dtype, buffer.shape, strides, 0):
                raise ProgramRefused(f"The program has another `{name}` than the lab.")
            size_bytes = math.prod(buffer.shape) * np.dtype(buffer.dtype).itemsize
            self._machine.memory.add(number, size_bytes)
            storages[name] = self._machine.memory.keep(
                Storage(
                    number,
                    size_bytes,
                    buffer.place,
                    name=name,
                    is_read_only=not buffer.is_output,
                )
            )
        return storages

    def _begin_call(self, number: int) -> None:
        self._machine.begin_call(number, is_last=number == len(self._calls) - 1)
        for name, buffer in self._buffers.items():
            storage = self._storages[name]
            if not buffer.is_input:
                storage.forget()
                continue
            given = np.ascontiguousarray(self._calls[number][name], buffer.dtype)
            storage.data[:] = given.reshape(-1).view(np.uint8)
            storage.stamps[:] = FIRST_CALL + number

    def _end_call(self, begun: int) -> None:
        """End the call before, or `prepare`."""
        machine = self._machine
        machine.become_idle()
        if not begun:
            return
        _finish(machine)
        self._counts.append(machine.counts)
        self._count_lines.append(machine.counting.lines())
        if begun == len(self._calls):
            self._bars = thinned(machine.timeline.bars(), MOST_BARS)
        outputs, unwritten, writers, sources = {}, {}, {}, {}
        for name, buffer in self._buffers.items():
            if buffer.is_output:
                span = span_of(self._storages[name], self._program.buffers[name])
                outputs[name] = np.ascontiguousarray(span.array).tobytes()
                writers[name] = span.storage.writers.words()
                sources[name] = in_order(span.storage.writers.sources)
                machine.watch.output(span)
                missing = np.flatnonzero(np.isin(span.stamps, (UNWRITTEN, CARRIED)))
                if missing.size:
                    machine.watch.left_out(span.storage)
                    unwritten[name] = int(missing[0])
        self._outputs.append(outputs)
        self._unwritten.append(unwritten)
        self._writers.append(writers)
        self._sources.append(sources)


def _finish(machine: Machine) -> None:
    counts, timeline = machine.counts, machine.timeline
    counts.host_ns = timeline.host_ns
    counts.copy_ns = timeline.busy_ns("h2d") + timeline.busy_ns("d2h")
    counts.compute_ns = timeline.busy_ns("compute")
    counts.kernel_ns = timeline.sum_ns("compute")
    least_ns = max(
        # who sleeps keeps no engine busy
        timeline.busy_ns("compute", with_apart=False),
        counts.h2d_bytes / rates.PINNED_BYTES_PER_S * 1e9,
        counts.d2h_bytes / rates.PINNED_BYTES_PER_S * 1e9,
    )
    percent = NO_BOUND_PERCENT
    if least_ns:
        percent = min(percent, math.ceil(100 * counts.total_ns / least_ns))
    counts.percent_of_bound = percent


def _dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
