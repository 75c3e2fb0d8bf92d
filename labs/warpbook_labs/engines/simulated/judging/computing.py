"""Runs operations on the inputs that count, and follows where values come from."""

from __future__ import annotations

import math
import time

import numpy as np

from warpbook_labs.engines.simulated.judging.calls import (
    aten,
    operations,
    rates,
)
from warpbook_labs.engines.simulated.judging.calls.operations import (
    Amount,
    Operation,
    moved_bytes,
)
from warpbook_labs.engines.simulated.judging.graphs import Kernel
from warpbook_labs.engines.simulated.judging.memory import (
    CARRIED,
    CONSTANT,
    GARBAGE,
    UNWRITTEN,
    Bytes,
    Origin,
    Span,
)
from warpbook_labs.engines.simulated.judging.wording import short
from warpbook_labs.engines.simulated.program import Launch, ProgramRefused

#: of one program, each replay of a graph again
MOST_BYTES = 8 << 30
MOST_FLOPS = 2e11
#: of one operation, beside what it reads and writes
MOST_SCRATCH_BYTES = 1 << 30
#: of the CPU's time, for one program
LIMIT_S = 20.0


class Computer:
    """Does what kernels and copies do, within bounds."""

    def __init__(self) -> None:
        self._bytes_left: float = MOST_BYTES
        self._flops_left = MOST_FLOPS
        self._ends_s = time.thread_time() + LIMIT_S

    def run(self, kernel: Kernel) -> None:
        launch, reads, writes = kernel.launch, kernel.reads, kernel.writes
        operation = operation_of(launch)
        flops = flops_of(operation, launch)
        scratch_bytes = _asked(operation.scratch, launch)
        if scratch_bytes > MOST_SCRATCH_BYTES:
            raise _too_large(launch)
        self.spend(
            sum(span.array.nbytes for span in (*reads, *writes)) + scratch_bytes,
            flops,
            rates.seconds(operation, launch, flops, scratch_bytes),
        )
        try:
            stamps = _stamps(operation, kernel)
            origin = _origin(kernel)
            _apply(operation, kernel)
            carried = None
            if _is_copy(kernel):
                # told only where it ends: it may be overwritten, or nobody needs it
                carried = _nobodys(reads[0], "`copy`", launch.line)
            for span in writes:
                span.stamp(stamps)
                if _is_copy(kernel):
                    span.storage.writers.copy(reads[0], span, launch.line)
                else:
                    span.storage.writers.compute(span, launch.line)
                span.storage.garbage = origin or span.storage.garbage
                span.storage.carried = carried or span.storage.carried
        except MemoryError as error:
            raise _too_large(launch) from error

    def move(self, source: Span, target: Span, what: str, line: int) -> None:
        """Do what a copy between host and GPU does.

        Args:
            what: such as "the copy to the GPU".
        """
        if source.view.shape != target.view.shape or (
            source.view.dtype != target.view.dtype
        ):
            raise ProgramRefused("A copy between host and GPU changes shape or dtype.")
        self.spend(2 * source.array.nbytes, 0)
        target.array[...] = source.array
        carried = _nobodys(source, what, line)
        target.stamp(_copied(source))
        target.storage.writers.copy(source, target, line)
        target.storage.garbage = source.storage.garbage or target.storage.garbage
        target.storage.carried = carried or target.storage.carried

    def spend(
        self, size_bytes: float = 0, flops: float = 0, seconds: float = 0
    ) -> None:
        """Look whether a program may go on.

        Raises:
            ProgramRefused: it has computed enough.
        """
        self._bytes_left -= size_bytes
        self._flops_left -= flops
        is_too_late = time.thread_time() + seconds > self._ends_s
        if is_too_late or min(self._bytes_left, self._flops_left) < 0:
            raise ProgramRefused(
                "It computes more than is simulated: leave out what the lab does not "
                "ask for."
            )


def _stamps(operation: Operation, kernel: Kernel) -> int | Bytes:
    """Say where the values come from that a kernel writes."""
    reads, writes = kernel.reads, kernel.writes
    if _is_copy(kernel):
        return _copied(reads[0])
    if operation.is_pointwise and len(writes) == 1:
        stamps: Bytes = np.full(writes[0].stamps.shape, CONSTANT, np.uint8)
        for span in reads:
            try:
                known = np.broadcast_to(_known(span), stamps.shape)
            except ValueError:
                # a call need not use all that a launch says it reads
                raise _nonsense(kernel.launch) from None
            np.maximum(stamps, known, out=stamps)
        return stamps
    of_reads = (int(_known(span).max()) for span in reads if span.array.size)
    return max(of_reads, default=CONSTANT)


def _is_copy(kernel: Kernel) -> bool:
    return (
        kernel.launch.operation == "copy"
        and len(kernel.reads) == len(kernel.writes) == 1
    )


def _copied(span: Span) -> Bytes:
    """Tell what was carried along from what is left as it was."""
    return np.where(span.stamps == UNWRITTEN, np.uint8(CARRIED), span.stamps)


def _known(span: Span) -> Bytes:
    is_garbage = (span.stamps == UNWRITTEN) | (span.stamps == CARRIED)
    if not is_garbage.any():
        return span.stamps
    return np.where(is_garbage, np.uint8(GARBAGE), span.stamps)


def _nobodys(span: Span, what: str, line: int) -> Origin | None:
    """Say where that comes from which is read, though nobody wrote it."""
    if span.holds(CARRIED):
        return span.storage.carried
    return span.unwritten(what, line)


def _origin(kernel: Kernel) -> Origin | None:
    """Say where garbage comes from that a kernel reads."""
    launch, is_copy = kernel.launch, _is_copy(kernel)
    for span in kernel.reads:
        origin = None
        if not is_copy:
            what = f"`{short(launch.operation)}`"
            origin = _nobodys(span, what, launch.line)
        if origin is None and span.holds(GARBAGE):
            origin = span.storage.garbage
        if origin is not None:
            return origin
    return None


def operation_of(launch: Launch) -> Operation:
    try:
        operation = operations.operation_of(launch)
    except Exception as problem:
        raise _nonsense(launch) from problem
    if operation is None:
        raise ProgramRefused("The operation is not known.")
    return operation


def flops_of(operation: Operation, launch: Launch) -> float:
    return _asked(operation.flops, launch)


def _asked(amount: Amount, launch: Launch) -> float:
    """Say how much of something a launch needs, whatever it was given."""
    try:
        total = amount(launch.reads, launch.writes, launch.numbers)
    except Exception as error:
        raise _nonsense(launch) from error
    if not 0 <= total < math.inf:
        raise _nonsense(launch)
    return total


def kernel_ns(launch: Launch) -> float:
    """Say how long the GPU takes for a kernel."""
    operation = operation_of(launch)
    try:
        if operation.ns is not None:
            own = operation.ns(launch.reads, launch.writes, launch.numbers)
            if own is not None:
                return max(rates.KERNEL_NS, own)
        flops = flops_of(operation, launch)
        bytes_ns = _bytes_of(operation, launch) / rates.DEVICE_BYTES_PER_S * 1e9
    except Exception as error:
        raise _nonsense(launch) from error
    flops_per_s = rates.FLOPS_PER_S
    if operation.unit == "tensor" and launch.reads:
        dtype = launch.reads[-1].dtype
        flops_per_s = rates.MATRIX_FLOPS_PER_S.get(dtype, flops_per_s)
    return max(rates.KERNEL_NS, bytes_ns, flops / flops_per_s * 1e9)


def host_ns(launch: Launch) -> float:
    """Say how long the CPU takes for its own work."""
    operation = operation_of(launch)
    flops = flops_of(operation, launch)
    bytes_ns = _bytes_of(operation, launch) / rates.HOST_BYTES_PER_S * 1e9
    return rates.HOST_WORK_NS + bytes_ns + flops / rates.HOST_FLOPS_PER_S * 1e9


def _bytes_of(operation: Operation, launch: Launch) -> float:
    if operation.bytes is not None:
        return operation.bytes(launch.reads, launch.writes, launch.numbers)
    return moved_bytes((*launch.reads, *launch.writes))


def _apply(operation: Operation, kernel: Kernel) -> None:
    launch = kernel.launch
    reads, writes = (
        [aten.tensor_of(span.array, span.view.dtype) for span in spans]
        for spans in (kernel.reads, kernel.writes)
    )
    try:
        operation.function(reads, writes, launch.numbers)
    except MemoryError:
        raise
    except Exception as error:
        if "allocate memory" in str(error):
            raise _too_large(launch) from error
        raise _nonsense(launch) from error


def _too_large(launch: Launch) -> ProgramRefused:
    what = f"Line {launch.line}: {short(launch.operation)}"
    return ProgramRefused(f"{what} takes more memory than is simulated.")


def _nonsense(launch: Launch) -> ProgramRefused:
    what = f"Line {launch.line}: {short(launch.operation)}"
    return ProgramRefused(f"{what} can't be computed of what it was given.")
