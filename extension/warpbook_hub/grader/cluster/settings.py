"""How Ray is set up for a class, the same on each machine, and where its head is."""

from __future__ import annotations

import os
import re
import socket
import stat
from pathlib import Path

#: of what is asked for below
EXTRA = "Install it on each machine: pip install 'warpbook-hub[ray]'"
#: until a machine that is not heard of counts as lost: three tries, a second each
_HEALTH_MS, _HEALTH_TRIES = "1000", "3"
#: until what has lost the head ends, to be started anew
_HEAD_AWAY_S = "5"
#: resources of a node, by which its GPUs are known
GPU_RESOURCE = "gpu:"
#: label of a node: what its GPUs are called
GPU_NAME = "warpbook-gpu"
_MOST_LABEL = 63


_WAIT_S = 1.0
#: which Ray gives to its workers, and refuses for a head
WORKER_PORTS = range(10_002, 20_000)
_PATTERN = re.compile(r"[A-Za-z0-9._-]+:\d{1,5}")


def environment(token_file: Path) -> dict[str, str]:
    """Give what Ray's processes, the driver among them, are to find in theirs.

    The token itself is not in it: Ray reads it from its file.

    Raises:
        OSError: the file can't be read.
        ValueError: others can read it, or there is no token in it.
    """
    mode = stat.S_IMODE(token_file.stat().st_mode)
    if mode & 0o077:
        raise ValueError(f"{token_file}: others can read it. Do: chmod 600 it.")
    if len(token_file.read_text(encoding="ascii", errors="replace").strip()) < 32:
        raise ValueError(
            f"{token_file}: there is no token of 32 characters in it. Make one: "
            "python -c 'import secrets; print(secrets.token_hex(32))'"
        )
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token_file.absolute()),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_health_check_initial_delay_ms": _HEALTH_MS,
        "RAY_health_check_period_ms": _HEALTH_MS,
        "RAY_health_check_timeout_ms": _HEALTH_MS,
        "RAY_health_check_failure_threshold": _HEALTH_TRIES,
        "RAY_gcs_rpc_server_reconnect_timeout_s": _HEAD_AWAY_S,
    }


def use(token_file: Path) -> None:
    """Set this process up, before it imports Ray.

    Raises:
        OSError: the token can't be read.
        ValueError: others can read it, or there is none.
    """
    # a token in our own environment would be taken in place of the file's
    os.environ.pop("RAY_AUTH_TOKEN", None)
    os.environ.update(environment(token_file))


def label_of(name: str) -> str:
    """Write the name of a GPU as Ray's labels have to be: `NVIDIA-H100-80GB-HBM3`."""
    plain = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in name)
    return plain[:_MOST_LABEL].strip("-") or "GPU"


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
