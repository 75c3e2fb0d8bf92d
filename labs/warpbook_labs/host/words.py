"""What host code asked of the simulated GPU, in words for cards of any kind.

It takes plain values, so that cards that are kept are told, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warpbook_monitors import units

#: the picture's rows: the engine's name in a result, and in words
LANES = (
    ("host", "host"),
    ("h2d", "to the GPU"),
    ("compute", "kernels"),
    ("d2h", "from the GPU"),
)
#: what a bar of the host is called that does nothing
WAITS = "waits"
TITLE = "On the simulated GPU, the last call"
#: beyond it nothing bounded the time
_MOST_PERCENT = 100_000


def count_rows(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Tell counts by name."""
    asked = [
        _many(counts.get("launches", 0), "launch", "launches"),
        *_if_any(counts.get("graph_launches", 0), "graph", "graphs"),
        *_if_any(counts.get("captures", 0), "capture", "captures"),
        _many(counts.get("synchronizations", 0), "wait of the host", "waits"),
    ]
    yield "asked for", ", ".join(asked)
    moved = [
        f"{units.size(counts.get('h2d_bytes', 0))} to the GPU",
        f"{units.size(counts.get('d2h_bytes', 0))} from it",
    ]
    pageable = counts.get("pageable_bytes", 0)
    if pageable:
        moved.append(f"{units.size(pageable)} of that in memory that is not pinned")
    yield "over the link", ", ".join(moved)
    new = units.size(counts.get("device_bytes", 0))
    held = units.size(counts.get("held_bytes", 0))
    yield "memory of the GPU", f"{new} new; at most {held} in use beside the buffers"
    yield "took", _time(counts, "total_ns")
    yield (
        "busy for",
        f"host {_time(counts, 'host_ns')}, copies {_time(counts, 'copy_ns')}, "
        f"kernels {_time(counts, 'compute_ns')}",
    )
    percent = counts.get("percent_of_bound", 0)
    if 0 < percent < _MOST_PERCENT:
        least = f"{percent / 100:.2f} times what the busiest engine needs"
        yield "beside the least", least
    convolutions = counts.get("convolution_percent", 0)
    if convolutions:
        fastest = f"by a model {convolutions / 100:.2f} times the fastest algorithms"
        yield "convolutions", fastest
    unrepeatable = counts.get("unrepeatable", 0)
    if unrepeatable:
        yield "may give other bits", _many(unrepeatable, "launch", "launches")


def _if_any(count: int, one: str, more: str) -> tuple[str, ...]:
    return (_many(count, one, more),) if count else ()


def _many(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _time(counts: Mapping[str, int], name: str) -> str:
    return units.duration(counts.get(name, 0) / 1e6)
