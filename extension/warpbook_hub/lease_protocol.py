"""What the keeper of the GPUs and the course service tell one another: JSON by POST.

The keeper runs as root where the GPUs are. It says what is so, and is answered with
what is to be so; each answer is whole, so that either may begin anew at any time.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

#: below the address of the course service
PREFIX = "keeper/v1/"
MOST_MESSAGE_BYTES = 256 << 10
MOST_GPUS = 64

_Text = Annotated[str, Meta(max_length=300)]
_Whole = Annotated[int, Meta(ge=0, le=2**53)]


class KeptGpu(Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU as the keeper finds it."""

    #: its UUID, or the path of a device that NVML does not know
    gpu: _Text
    name: _Text
    #: why it can't be leased; empty if it can
    problem: _Text
    #: nobody who leases GPUs may open it, or has it open
    is_clear: bool
    #: the holder's processes work on it; None where the driver does not tell
    is_busy: bool | None
    #: since the driver was loaded, in millijoules
    energy_mj: _Whole | None


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """What the keeper finds."""

    node: _Text
    gpus: Annotated[tuple[KeptGpu, ...], Meta(max_length=MOST_GPUS)]
    #: without work for so long a lease ends
    idle_end_ms: _Whole


class Grant(Struct, frozen=True):
    """Who may open a GPU, and for how long."""

    lease: str
    gpu: str
    username: str
    left_ms: int


class Orders(Struct, frozen=True):
    """All grants there are; any other is to be revoked."""

    grants: tuple[Grant, ...]


class ServerRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """JupyterHub starts a server that asks for a GPU."""

    course: _Text
    username: _Text
    minutes: Annotated[int, Meta(ge=10, le=30)]


class OwnLease(Struct, frozen=True):
    """How it stands with somebody's lease."""

    #: "none", "waiting", "held", "ending"
    state: str
    gpu: str = ""
    name: str = ""
    left_s: int = 0
    #: in the line, from 1; 0 if not waiting
    place: int = 0
    #: None: nobody can tell
    eta_s: int | None = None
    #: what the holder should know now, or how the last lease ended
    note: str = ""
