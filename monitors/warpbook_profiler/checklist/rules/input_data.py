"""How batches come from the host."""

from __future__ import annotations

from warpbook_monitors import units
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, at_line, percent

#: of the window, below which copies to the GPU decide nothing
_LEAST_COPYING = 0.01
#: of the window, from which the main process is said to wait for batches
_LEAST_LOADING = 0.05
_LOADER = "enumerate(DataLoader)#"
_WITH_WORKERS = f"{_LOADER}_MultiProcessingDataLoaderIter"


def pinned_input(facts: Facts) -> Judgement:
    """Tell whether copies to the GPU come from pinned memory."""
    advised = facts.by_change("pinned", "pin-once")
    if advised is not None:
        return advised
    copies = [copy for copy in facts.metrics.copies if copy.direction == "HtoD"]
    if not copies:
        return Judgement("not applicable", "Nothing is copied to the GPU.")
    times_ns = {"pinned": 0, "pageable": 0}
    for copy in copies:
        times_ns[copy.host_memory] = times_ns.get(copy.host_memory, 0) + copy.time_ns
    total_ns = sum(times_ns.values())
    share = total_ns / max(facts.metrics.window_ns, 1)
    pinned = times_ns["pinned"] / max(total_ns, 1)
    evidence = (
        f"{percent(pinned)} of the time of copies to the GPU is from pinned memory; "
        f"they take {percent(share)} of the window."
    )
    if pinned >= 1 - _LEAST_COPYING:
        return Judgement("yes", evidence)
    if share < _LEAST_COPYING:
        return Judgement("not applicable", evidence)
    passed = facts.code.keyword("pin_memory", "DataLoader")
    if passed is not None and passed[0]:
        evidence += f" The code has pin_memory=True{at_line(passed[1])}."
    return facts.without_gain(evidence)


def loader_workers(facts: Facts) -> Judgement:
    """Tell whether other processes prepare batches."""
    advised = facts.by_change("workers", "more-workers", "keep-workers")
    if advised is not None:
        return advised
    loading = facts.annotations(_LOADER)
    if not loading:
        return Judgement("not applicable", "No DataLoader is in this window.")
    time_ns = sum(row.host_ns for row in loading)
    batches = sum(row.times for row in loading)
    share = time_ns / max(facts.profile.wall_ns, 1)
    evidence = (
        f"The main process spends {units.duration_ns(time_ns)} on {batches:,} batches, "
        f"{percent(share)} of the window."
    )
    if any(row.name.startswith(_WITH_WORKERS) for row in loading):
        return Judgement("yes", f"Worker processes load. {evidence}")
    if share < _LEAST_LOADING:
        return Judgement("not applicable", evidence)
    return facts.without_gain(evidence)
