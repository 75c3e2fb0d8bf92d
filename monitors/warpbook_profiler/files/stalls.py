"""Stalls in a trace file, behind its events: `%%gpuprof --save` writes them."""

from __future__ import annotations

import os

import msgspec

from warpbook_profiler.model.errors import CaptureFailed
from warpbook_profiler.model.stalls import STALLS_KEY, KernelStalls, Stalls

#: of a file, where the bracket that closes it is
_TAIL_BYTES = 4096


def keep_stalls(path: str, stalls: Stalls) -> None:
    """Put stalls behind the events of a trace that torch wrote.

    Raises:
        CaptureFailed: the file can't be written, or is no trace.
    """
    told = b', "%b": %b}\n' % (STALLS_KEY.encode(), msgspec.json.encode(stalls))
    try:
        with open(path, "r+b", buffering=0) as file:
            begin = max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0)
            file.seek(begin)
            tail = file.read()
            try:
                file.seek(begin + tail.rindex(b"}"))
                if file.write(told) < len(told):
                    raise OSError("there is no room")
                file.truncate()
            except OSError:
                # a trace without stalls is still one
                file.seek(begin)
                file.write(tail)
                file.truncate()
                raise
    except (OSError, ValueError) as problem:
        raise CaptureFailed(f"The trace has no stalls: {problem}.") from None


def read_stalls(text: bytes) -> tuple[Stalls | None, tuple[str, ...]]:
    """Return what was kept, and what to say where it can't be used."""
    if not text:
        return None, ()
    try:
        stalls = msgspec.json.decode(text, type=Stalls)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        return None, (f"Its stalls can't be used: {problem}.",)
    if all(map(_adds_up, stalls.kernels)):
        return stalls, ()
    return None, ("Its stalls can't be used: their samples do not add up.",)


def _adds_up(kernel: KernelStalls) -> bool:
    in_lines = sum(line.samples for line in kernel.lines)
    return (
        sum(kernel.reasons.values()) == kernel.samples
        and in_lines + kernel.unattributed <= kernel.samples
        and all(sum(line.reasons.values()) == line.samples for line in kernel.lines)
    )
