"""Runs kernels from PTX in the jail, each run with memory of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from warpbook_labs.cases.execution import (
    Argument,
    BufferArgument,
    FloatArgument,
    IntegerArgument,
    Memory,
    Run,
)
from warpbook_labs.engines.interpreter.jobs import (
    Interpret,
    Interpreted,
    LineQuestion,
    Origin,
    RunResult,
)
from warpbook_labs.engines.interpreter.ptx.machine.machine import Machine
from warpbook_labs.engines.interpreter.ptx.memory.spaces import Buffer
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    BadLaunch,
    PtxError,
    Unsupported,
)
from warpbook_labs.results.findings import Report, written_input
from warpbook_labs.sandbox.progress import note_step
from warpbook_labs.sandbox.work import Refused

__all__ = ["Job", "do", "prepare"]

Job = Interpret
#: meets every part of the interpreter, which then has loaded what it needs: barriers
#: that some miss, races, atomics, exchanges in a warp, printing, functions, all types
_REHEARSAL = Path(__file__).with_name("rehearsal.ptx")
#: that a message names, beside the one that wrote
_MOST_LINES = 6


def prepare() -> None:
    """Load all that jobs need, which no file can be opened for later."""
    machine = Machine(_REHEARSAL.read_text(encoding="ascii"))
    buffers = [machine.empty(name, 512) for name in "xy"]
    machine.run("rehearse", (2, 1, 1), (64, 1, 1), buffers)


def do(job: Interpret) -> Interpreted | Refused:
    try:

        def is_over() -> bool:
            return time.process_time() > job.processor_s

        return Interpreted(tuple(_noted(_run(job, run, is_over)) for run in job.runs))
    except Unsupported as problem:
        return Refused(str(problem), "unsupported")
    except PtxError as problem:
        return Refused(str(problem))


def _noted(ran: RunResult) -> RunResult:
    note_step()
    return ran


def _run(job: Interpret, run: Run, is_over: Callable[[], bool]) -> RunResult:
    if is_over():
        words = "It was not run, since a case before it took too long."
        return RunResult((), (), words, "not run")
    try:
        return _launched(job, run, is_over)
    except Unsupported as problem:
        return RunResult((), (), str(problem), "unsupported", line=problem.line)
    except PtxError as problem:
        return RunResult((), (), str(problem), "refused")
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 - `asm` says what no compiler would
        what = f"{type(problem).__name__}: {problem}"[:200]
        words = f"This interpreter can't make sense of the kernel ({what})."
        return RunResult((), (), words, "unsupported")


def _launched(job: Interpret, run: Run, is_over: Callable[[], bool]) -> RunResult:
    machine = Machine(job.ptx)
    if job.question is not None:
        machine.follow(launch.kernel for launch in run.launches)
    buffers: dict[str, Buffer] = {}
    for memory in run.memory:
        if memory.data is None:
            buffers[memory.name] = machine.empty(
                memory.name, memory.size_bytes, memory.off_bytes
            )
        else:
            values = np.frombuffer(memory.data, np.uint8)
            buffers[memory.name] = machine.put(memory.name, values, memory.off_bytes)
    outputs = [buffers[memory.name] for memory in run.memory if memory.is_told]

    def launched() -> tuple[Report, ...]:
        reports = []
        for launch in run.launches:
            report = machine.run(
                launch.kernel,
                launch.grid,
                launch.block,
                [_argument(argument, buffers) for argument in launch.arguments],
                launch.dynamic_shared_bytes,
                job.max_steps,
                is_over,
            )
            reports.append(report)
            if report.stopped:
                break
        return tuple(reports)

    reports = launched()
    for memory in run.memory:
        if memory.is_input and _has_changed(machine, buffers[memory.name], memory):
            line = int(machine.writer_lines(buffers[memory.name]).max(initial=0))
            reports[-1].add(written_input(memory.name, line))
    held = _held(machine, outputs)
    if (
        job.question is not None
        and reports[-1].stopped
        and job.question.what != "finding"
    ):
        return RunResult(reports, held)
    if job.question is not None and not job.question.is_again:
        return RunResult(
            reports, held, origin=_origin(job.question, machine, run, buffers)
        )
    if reports[-1].stopped or not machine.has_changed():
        return RunResult(reports, held)
    # what the program keeps from call to call may spoil the next
    machine.put_back(buffers.values())
    again = launched()
    if job.question is not None:
        return RunResult(
            reports, held, origin=_origin(job.question, machine, run, buffers)
        )
    return RunResult(reports, held, again=_held(machine, outputs), again_reports=again)


def _origin(
    question: LineQuestion, machine: Machine, run: Run, buffers: dict[str, Buffer]
) -> Origin:
    origins = machine.origins
    assert origins is not None
    if question.what == "finding":
        # the line of the access itself may be among them
        return Origin(origins.of_told()[: _MOST_LINES + 1])
    if question.what == "access":
        return Origin(origins.of_accesses(question.line)[:_MOST_LINES])
    buffer, number = buffers[question.buffer], len(run.launches)
    if question.what == "value":
        lines = origins.of_value(buffer, question.byte, question.line)
        if len(lines) < _MOST_LINES:
            # what others have may be what it lacks
            alike = np.flatnonzero(machine.writer_lines(buffer) == question.line)
            lines += origins.beyond(buffer, 4 * alike, question.byte, question.line)
        return Origin(lines[:_MOST_LINES], question.line)
    launches = tuple({launch % number: None for launch in origins.launches_to(buffer)})
    by_word = machine.writer_lines(buffer)
    written = np.flatnonzero(by_word)
    if not len(written):
        lines, line = origins.of_nobody(buffer)
        return Origin(lines[:_MOST_LINES], line, launches, has_written=False)
    # the one before it, which tells what was meant
    at = max(int(np.searchsorted(written, question.byte // 4)) - 1, 0)
    word = int(written[at])
    writer = int(by_word[word])
    lines = (
        *(unused for unused in origins.of_unused(buffer) if unused != writer),
        *origins.of_place(buffer, 4 * word, writer),
    )
    lines = tuple(dict.fromkeys(lines))
    # of a second call, the first may have written the very same
    return Origin(lines[:_MOST_LINES], writer, launches, word != question.byte // 4)


def _has_changed(machine: Machine, buffer: Buffer, memory: Memory) -> bool:
    return machine.read(buffer, np.uint8).tobytes() != memory.data


def _held(machine: Machine, buffers: list[Buffer]) -> tuple[Memory, ...]:
    return tuple(
        Memory(
            buffer.name,
            buffer.size_bytes,
            machine.read(buffer, np.uint8).tobytes(),
            first_unwritten=machine.first_unwritten(buffer),
            writer_lines=machine.writer_lines(buffer).astype("<u2").tobytes(),
        )
        for buffer in buffers
    )


def _argument(argument: Argument, buffers: dict[str, Buffer]) -> Any:
    if isinstance(argument, BufferArgument):
        if argument.name not in buffers:
            raise BadLaunch(f"There is no buffer `{argument.name}` to launch with.")
        return buffers[argument.name]
    if isinstance(argument, IntegerArgument | FloatArgument):
        return argument.value
    return np.void(argument.data)
