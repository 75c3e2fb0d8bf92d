"""What a jailed process may use, and how well it is shut in."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: how far the process is shut in, the best first:
#: "namespaces": it sees an empty root, no network and no other process;
#: "landlock": the kernel refuses it every file, but it shares the network;
#: "limits": time and memory are bounded, and nothing else is held back
Tier = Literal["namespaces", "landlock", "limits"]

TIER_WORDS: dict[Tier, str] = {
    "namespaces": "in a process with an empty root, no network and bounded memory "
    "and time",
    "landlock": "in a process that can open no file, with bounded memory and time",
    "limits": "in a process with bounded memory and time, which this system can't "
    "isolate any further",
}


class Limits(Struct, frozen=True):
    """Bounds of one job."""

    #: by the clock, with the start of the process
    wall_s: float = 30.0
    #: of the processor
    processor_s: int = 20
    memory_bytes: int = 4 << 30
    output_bytes: int = 32 << 20
