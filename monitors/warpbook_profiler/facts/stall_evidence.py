"""What most warps of a kernel wait for, as they were sampled in another run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from warpbook_profiler.model.figures import Wait
from warpbook_profiler.model.stalls import SELECTED, Stalls

#: of the samples that wait, from which one kind of wait says what limits a kernel
_LEADS = 0.5
#: fewer samples say nothing of a kernel
_LEAST_SAMPLES = 100
_OF_REASONS: Mapping[Wait, str] = {
    "device memory": "long_scoreboard lg_throttle tex_throttle drain",
    "shared memory": "short_scoreboard mio_throttle",
    "barriers": "barrier membar",
    "arithmetic": "math_pipe_throttle gmma warpgroup_arrive",
    "latency": "wait branch_resolving no_instructions imc_miss dispatch_stall",
    "issue": "not_selected",
}


def waits_of(stalls: Stalls | None) -> dict[str, Wait]:
    """Return what most warps wait for, by kernels' names; others are left out."""
    if stalls is None:
        return {}
    told = ((kernel.name, _wait(kernel.reasons)) for kernel in stalls.kernels)
    return {name: wait for name, wait in told if wait is not None}


def _wait(reasons: Mapping[str, int]) -> Wait | None:
    waiting = {name: count for name, count in reasons.items() if name != SELECTED}
    total = sum(waiting.values())
    if total < _LEAST_SAMPLES:
        return None
    by_wait: Counter[Wait] = Counter(
        {
            wait: sum(waiting.get(reason, 0) for reason in of.split())
            for wait, of in _OF_REASONS.items()
        }
    )
    [(wait, count)] = by_wait.most_common(1)
    return wait if count >= _LEADS * total else None
