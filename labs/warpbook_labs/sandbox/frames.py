"""Messages on pipes between a process and the one that it keeps.

A message is its length in eight bytes, and as many bytes.
"""

from __future__ import annotations

from typing import IO

LENGTH_BYTES = 8


def read_message(pipe: IO[bytes], most_bytes: int) -> bytes | None:
    """Read one message; None where there is none any more, or it is too long."""
    head = pipe.read(LENGTH_BYTES)
    length = int.from_bytes(head, "little")
    if len(head) < LENGTH_BYTES or length > most_bytes:
        return None
    content = pipe.read(length)
    return content if len(content) == length else None


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(LENGTH_BYTES, "little") + content


def write_message(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(framed(content))
    pipe.flush()
