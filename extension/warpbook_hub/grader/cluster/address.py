"""Where a cluster's head is, as HOST:PORT, and whether something answers there."""

from __future__ import annotations

import re
import socket

_WAIT_S = 1.0
#: which Ray gives to its workers, and refuses for a head
WORKER_PORTS = range(10_002, 20_000)
_PATTERN = re.compile(r"[A-Za-z0-9._-]+:\d{1,5}")


def is_address(text: str) -> bool:
    """Whether this is HOST:PORT."""
    return _PATTERN.fullmatch(text) is not None and int(text.split(":")[1]) < 1 << 16


def answers(address: str) -> bool:
    """Whether the head's port is open."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_WAIT_S):
            return True
    except OSError:
        return False


def how_to_start_head(address: str) -> str:
    """Say what starts a head, where none answers."""
    return (
        f"No head of Ray answers at {address}. On that machine keep it running: "
        f"python -m warpbook_hub.grader.cluster {address} --token-file FILE --head"
    )
