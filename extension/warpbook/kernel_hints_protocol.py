"""What a person's server says to the hub of its kernels: hints, and never facts.

A hint is the person's own word. Each field is bounded here, for both sides.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

#: below `api/v1/` of the hub's service
PATH = "kernel-hints"
#: a server speaks no more often
PERIOD_S = 60
#: of the largest message that the bounds below allow, with a GPU's usual UUID
MOST_MESSAGE_BYTES = 16 << 10
MOST_KERNELS = 10
MOST_PROCESSES = 16
MOST_NOTEBOOK = 100
_TEN_YEARS_S = 10 * 366 * 24 * 3600

#: of the hub: hints are not taken; without names of notebooks; with them
Policy = Literal["off", "activity", "notebooks"]


class KernelProcess(Struct, frozen=True, forbid_unknown_fields=True):
    """A process of a kernel that has a GPU."""

    #: UUID of the GPU, which tells the node as well
    gpu: Annotated[str, Meta(min_length=1, max_length=100)]
    #: as the node's driver tells it
    pid: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class KernelHint(Struct, frozen=True, forbid_unknown_fields=True):
    """What a server says of a kernel."""

    processes: Annotated[
        tuple[KernelProcess, ...], Meta(min_length=1, max_length=MOST_PROCESSES)
    ]
    #: None: the server does not know
    is_busy: bool | None
    #: how long it has run nothing; None while it does, or if unknown
    idle_s: Annotated[int, Meta(ge=0, le=_TEN_YEARS_S)] | None = None
    #: file name without its folder; empty unless the policy is "notebooks"
    notebook: Annotated[str, Meta(max_length=MOST_NOTEBOOK)] = ""


class KernelHints(Struct, frozen=True, forbid_unknown_fields=True):
    """All kernels of a server that have a GPU."""

    #: drawn by each start of a server, as a person may have several
    server: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    kernels: Annotated[tuple[KernelHint, ...], Meta(max_length=MOST_KERNELS)]


class HintPolicy(Struct, frozen=True):
    """What the hub takes: the answer to a question, and to a message."""

    policy: Policy
