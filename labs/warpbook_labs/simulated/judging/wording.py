"""Says in words what two accesses did to each other."""

from __future__ import annotations

from warpbook_labs.simulated.operations import OPERATIONS
from warpbook_labs.simulated.program import HOST

from .accesses import Access
from .findings import Kind, at


def short(operation: str) -> str:
    """Give an operation's name, which a program may have made up."""
    return operation if operation in OPERATIONS else "an operation"


def of_conflict(first: Access, second: Access) -> tuple[Kind, str]:
    """Say that nothing puts two accesses in an order."""
    name = first.span.storage.name
    memory = f"`{name}`" if name else f"the memory of {at(first.span.storage.line)}"
    does = _begins(second)
    if second.lane.stream != HOST:
        return "race", (
            f"{does} {memory}, which {first.what} of {at(first.line)} on "
            f"{first.lane.name} may not yet have {_done(first)}: let "
            f"{second.lane.name} wait for an event that is recorded after it."
        )
    if second.is_write:
        return "race", (
            f"{does} {memory} on the host, which {first.what} of {at(first.line)} may "
            f"not yet have {_done(first)}: wait for its stream or event first."
        )
    why = "a copy with non_blocking=True does not wait"
    if first.span.view.is_mapped:
        why = "nobody waits for a kernel"
    return "host read too early", (
        f"{does} {memory} on the host, which {first.what} of {at(first.line)} may not "
        f"yet have {_done(first)}: {why}. Synchronize with its stream or event first."
    )


def of_reused(first: Access, second: Access, line: int) -> str:
    """Say that memory was given to another while somebody still used it."""
    verb = "write" if first.is_write else "read"
    return (
        f"The tensor of {at(line)} may get memory that was released while "
        f"{first.what} of {at(first.line)} on {first.lane.name} may still {verb} it, "
        f"and {at(second.line)} uses it: call `record_stream` on the released tensor, "
        "or let its own stream wait before it is released."
    )


def of_released(access: Access) -> str:
    """Say that page-locked memory may be given to another while a kernel uses it."""
    verb = "write" if access.is_write else "read"
    return (
        f"The page-locked tensor of {at(access.span.storage.line)} is released while "
        f"{access.what} of {at(access.line)} on {access.lane.name} may still {verb} "
        "it by its address, of which PyTorch does not know: another pinned tensor may "
        "get the memory. Keep the tensor until that stream is done."
    )


def _begins(access: Access) -> str:
    verb = "writes" if access.is_write else "reads"
    where = "" if access.lane.stream == HOST else f" on {access.lane.name}"
    return f"{at(access.line).capitalize()}: {access.what}{where} {verb}"


def _done(access: Access) -> str:
    return "written" if access.is_write else "read"
