"""What a kernel takes of a multiprocessor, as a real compile tells it: no GPU needed.

NVRTC compiles to the machine's own code with `--ptxas-options=-v`, which writes each
kernel's registers, spills and shared memory into its log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from warpbook_labs.lab.entry_names import plain_name
from warpbook_profiler.facts.occupancy import MULTIPROCESSORS, Multiprocessor, occupancy

#: where no GPU is attached
DEFAULT_ARCHITECTURE = "sm_90"
_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(sm_\d+)\w*'")
_SPILLS = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_PTXAS = re.compile(r"^ptxas (info|  ).*$\n?", re.M)


class Resources(Struct, frozen=True):
    """What one kernel takes, by the compiler's word."""

    kernel: str
    architecture: str
    #: of each thread
    registers: int
    #: of each thread, in memory of its own: arrays, and what registers had no room for
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    #: of each block, fixed when it was compiled
    shared_bytes: int


class KernelOccupancy(Struct, frozen=True):
    """What a multiprocessor holds of one launch of a kernel."""

    resources: Resources
    threads_per_block: int
    dynamic_shared_bytes: int
    blocks: int
    #: of the warps that there is room for
    occupancy: float
    #: what allows no more blocks; empty where not even one fits
    limited_by: tuple[str, ...]


def read_log(log: str) -> tuple[dict[str, Resources], str]:
    """Read a compiler's log; give each kernel's resources, and what else it says."""
    resources_of = {}
    parts = _ENTRY.split(log)
    for kernel, architecture, text in zip(
        parts[1::3], parts[2::3], parts[3::3], strict=True
    ):
        used, spilled = _USED.search(text), _SPILLS.search(text)
        if used is None:
            continue  # another version's words: nothing is made up
        shared = _SHARED.search(text)
        stack, stored, loaded = spilled.groups() if spilled else (0, 0, 0)
        name = plain_name(kernel)
        resources_of[name] = Resources(
            name,
            architecture,
            int(used[1]),
            int(stack),
            int(stored),
            int(loaded),
            int(shared[1]) if shared else 0,
        )
    return resources_of, _PTXAS.sub("", log).strip()


def multiprocessor(architecture: str) -> Multiprocessor | None:
    """Find what a multiprocessor of "sm_90" holds; None where it is not known."""
    digits = architecture.removeprefix("sm_")
    if not digits.isdecimal():
        return None
    return MULTIPROCESSORS.get(divmod(int(digits), 10))


def held(
    resources: Resources, threads_per_block: int, dynamic_shared_bytes: int = 0
) -> KernelOccupancy | None:
    """Tell what a multiprocessor holds; None where the architecture is not known."""
    room = multiprocessor(resources.architecture)
    if room is None:
        return None
    shared = resources.shared_bytes + dynamic_shared_bytes
    of = occupancy(room, threads_per_block, resources.registers, shared)
    return KernelOccupancy(
        resources,
        threads_per_block,
        dynamic_shared_bytes,
        of.blocks,
        of.ratio,
        of.limited_by,
    )


def held_by_launches(
    resources: dict[str, Resources], launches: Iterable[tuple[str, int, int]]
) -> tuple[KernelOccupancy, ...]:
    """Tell it of each different launch: kernel, threads of a block, shared bytes."""
    distinct = dict.fromkeys(launches)
    occupancies = (
        held(resources[kernel], threads, shared)
        for kernel, threads, shared in distinct
        if kernel in resources
    )
    return tuple(known for known in occupancies if known is not None)
