"""Says in words what is wrong with accesses to memory."""

from __future__ import annotations

from warpbook_labs.engines.simulated.judging.accesses import Access, at
from warpbook_labs.engines.simulated.judging.calls import allowed
from warpbook_labs.engines.simulated.judging.memory import Origin
from warpbook_labs.engines.simulated.judging.order import Lane
from warpbook_labs.engines.simulated.program import DEFAULT_STREAM, HOST
from warpbook_labs.results.findings import Kind

#: operations that are no ATen calls
_OWN = ("copy", "fill", "constant", "conv2d", "conv2d_weight", "sleep")


def short(operation: str) -> str:
    """Give an operation's name, which a program may have made up."""
    if operation in _OWN:
        return operation
    return allowed.spoken(operation) or "an operation"


def of_conflict(first: Access, second: Access) -> tuple[Kind, str]:
    """Say that nothing puts two accesses in an order."""
    name = first.span.storage.name
    memory = f"`{name}`" if name else f"the memory of {at(first.span.storage.line)}"
    does = f"{_begins(second)} {memory}"
    if second.asker.stream != HOST:
        # of a replay, "which" is said already
        may_not = (
            f" while {_named(first)} may not yet have {_done(first)} it"
            if second.replay
            else f", which {_named(first)} may not yet have {_done(first)}"
        )
        return "race", f"{does}{may_not}: {_advice(first, second)}."
    does += f" on the host, which {_named(first)} may not yet have {_done(first)}"
    if second.is_write:
        return "race", f"{does}: wait for its stream or event first."
    why = "a copy with non_blocking=True does not wait"
    if first.replay:
        why = "nobody waits for a replay"
    elif first.span.view.is_mapped:
        why = "nobody waits for a kernel"
    return "host read too early", (
        f"{does}: {why}. Synchronize with its stream or event first."
    )


def of_reused(first: Access, second: Access) -> tuple[Kind, str]:
    """Say that memory was given to another while somebody still used it."""
    verb = "write" if first.is_write else "read"
    return "released too early", (
        f"The tensor of {at(second.span.storage.line)} may get memory that was "
        f"released while {_named(first)} may still {verb} it, and "
        f"{at(second.asked_line)} uses it: call `record_stream` with "
        f"{first.asker.name} on the tensor of {at(first.span.storage.line)} before it "
        "is dropped, or let its own stream wait before that."
    )


def of_released(access: Access) -> str:
    """Say that page-locked memory may be given to another while a kernel uses it."""
    verb = "write" if access.is_write else "read"
    return (
        f"The page-locked tensor of {at(access.span.storage.line)} is released while "
        f"{_named(access)} may still {verb} it by its address, of which PyTorch does "
        "not know: another pinned tensor may get the memory. Keep the tensor until "
        "that stream is done."
    )


def of_unwritten(origin: Origin) -> str:
    """Say that something reads what nobody wrote."""
    memory = f"`{origin.name}`" if origin.name else f"memory of {at(origin.allocated)}"
    missing = "which nobody has written before"
    if not origin.is_whole:
        missing = "of which nobody has written some element before"
    words = f"{_at(origin.line)}: {origin.what} reads {memory}, {missing}."
    if origin.captured is None:
        return words
    return f"{words} {of_captured(origin.name, origin.captured)}"


def of_captured(name: str | None, line: int) -> str:
    """Say that memory is written in a capture only."""
    memory = f"`{name}`" if name else "it"
    return (
        f"{_at(line)} writes {memory} in a capture, which runs nothing until it is "
        "replayed."
    )


def of_first_product(line: int) -> str:
    """Say that cuBLAS would make its handle in a capture."""
    return (
        f"{_at(line)}: the first matrix product is in a capture. cuBLAS makes its "
        "handle there, which CUDA refuses (CUBLAS_STATUS_NOT_INITIALIZED). Warm up: "
        "run the work once on a side stream before you capture it."
    )


def of_itself(lane: Lane, line: int, recorded: int) -> str:
    """Say that a stream waits for what it comes after anyhow."""
    if recorded != line:
        why = f": {at(recorded)} records the event on that stream, too"
    elif lane.stream != DEFAULT_STREAM:
        why = ": inside `with torch.cuda.stream(...)` it is itself the current stream"
    else:
        why = ""
    return f"{_at(line)} lets {lane.name} wait for itself{why}."


def of_no_event(line: int) -> str:
    """Say that an event was waited for which nobody had recorded."""
    return (
        f"{_at(line)} waits for an event that was not recorded by then, so it waits "
        "for nothing."
    )


def _begins(access: Access) -> str:
    verb = "writes" if access.is_write else "reads"
    if access.replay:
        return (
            f"{_at(access.asked_line)} replays on {access.asker.name} {access.what} of "
            f"{at(access.line)}, which {verb}"
        )
    where = "" if access.lane.stream == HOST else f" on {access.lane.name}"
    return f"{_at(access.line)}: {access.what}{where} {verb}"


def _named(access: Access) -> str:
    what = f"{access.what} of {at(access.line)}"
    if access.replay:
        line, stream = at(access.asked_line), access.asker.name
        return f"{what}, which {line} replays on {stream},"
    return f"{what} on {access.lane.name}"


def _advice(first: Access, second: Access) -> str:
    """Say which stream is to wait, and for what."""
    event = "an event that is recorded after it"
    if first.replay:
        event = f"{first.asker.name} after the replay of {at(first.asked_line)}"
    elif second.replay:
        event = f"an event that is recorded after {at(first.line)}"
    when = " before the replay" if second.replay else ""
    return f"let {second.asker.name} wait{when} for {event}"


def _done(access: Access) -> str:
    return "written" if access.is_write else "read"


def _at(line: int) -> str:
    return at(line).capitalize()
