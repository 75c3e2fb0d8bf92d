"""Who holds the memory of a GPU, one line each: the size, then who."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook.protocol import DeviceHolders, Holder
from warpbook_monitors import units

#: the rest is added up
_MAX_LINES = 12


def holder_lines(holders: DeviceHolders) -> Iterator[tuple[str, str]]:
    """Give sizes and words, most first; then what nobody listed holds."""
    for holder in holders.holders[:_MAX_LINES]:
        yield _size(holder.used_bytes), _words(holder)
    more = holders.holders[_MAX_LINES:]
    if more:
        known = [holder.used_bytes for holder in more]
        total = None if None in known else sum(size_bytes or 0 for size_bytes in known)
        yield _size(total), f"{len(more)} more"
    if holders.unattributed_bytes:
        yield _size(holders.unattributed_bytes), "not attributed (driver, and unknown)"


def indented(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Set them below a heading, the sizes to the right."""
    width = max((len(size) for size, _ in rows), default=0)
    return [f"  {size.rjust(width)}  {who}" for size, who in rows]


def _size(size_bytes: int | None) -> str:
    return "unknown" if size_bytes is None else units.size(size_bytes)


def _words(holder: Holder) -> str:
    said = [holder.name]
    if holder.kind != "kernel":
        if holder.pids:
            said[0] += f" (process {', '.join(map(str, holder.pids))})"
        if holder.kind == "other_users" and holder.user:
            said.append(f"of {holder.user}")
    elif holder.idle_s is not None:
        said.append(f"idle for {units.duration_about(holder.idle_s)}")
    elif holder.execution_state:
        said.append(holder.execution_state)
    if holder.allocated_bytes is not None and holder.reserved_bytes is not None:
        said.append(
            f"torch uses {units.size(holder.allocated_bytes)} of "
            f"{units.size(holder.reserved_bytes)}"
        )
    return ", ".join(said)
