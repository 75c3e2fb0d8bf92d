"""What a jailed process may use, and how well it is shut in."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: how far the process is shut in, the best first:
#: "namespaces": it sees an empty root, no network and no other process;
#: "landlock": the kernel refuses it every file, but it shares the network;
#: "limits": time and memory are bounded;
#: whether its system calls are filtered, too, is told beside it
Tier = Literal["namespaces", "landlock", "limits"]

_WORDS: dict[Tier, str] = {
    "namespaces": "in a process with an empty root, no network and bounded memory "
    "and time",
    "landlock": "in a process that can open no file, with bounded memory and time",
    "limits": "in a process with bounded memory and time",
}


def isolation_words(tier: Tier, is_filtered: bool) -> str:
    """Tell in words how well a process is shut in."""
    if is_filtered:
        return f"{_WORDS[tier]}; it may make only the few system calls that it needs"
    if tier == "limits":
        return f"{_WORDS[tier]}, which this system can't isolate any further"
    return f"{_WORDS[tier]}; this system can't filter its system calls"


class Limits(Struct, frozen=True):
    """Bounds of one job."""

    #: CPU time, with the start of the process
    processor_s: int = 20
    #: what it may sleep, which takes none; waiting for a core is no sleep
    asleep_s: float = 30.0
    memory_bytes: int = 4 << 30
    output_bytes: int = 32 << 20
