"""Messages on pipes between a process and the one that it keeps.

A message is its length in eight bytes, and as many bytes.
"""

from __future__ import annotations

from typing import IO

_LENGTH_BYTES = 8


def read_message(pipe: IO[bytes], most_bytes: int) -> bytes | None:
    """Read one message; None where there is none any more, or it is too long."""
    head = pipe.read(_LENGTH_BYTES)
    length = int.from_bytes(head, "little")
    if len(head) < _LENGTH_BYTES or length > most_bytes:
        return None
    content = pipe.read(length)
    return content if len(content) == length else None


def write_message(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(len(content).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(content)
    pipe.flush()
