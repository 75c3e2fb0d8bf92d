"""What AI assistants asked by warpbook's tools: a list on disk, sent with a hand-in.

One line of JSON for each call, of the person's own programs, which may be several. It
holds no text of code, no path and no answer.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from warpbook.hub_protocol import MOST_AI_CALLS, AiCall, AiLog
from warpbook_monitors.data_folder import data_folder

_FILE, _OLDER = "ai-calls.jsonl", "ai-calls.1.jsonl"
#: of each of the two files
_MOST_BYTES = 1 << 20


class _Line(msgspec.Struct):
    call: AiCall
    #: its name in the catalogue; empty: the call was of no lab
    lab: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def note_ai_call(
    tool: str,
    lab: str,
    asked_bytes: int,
    answered_bytes: int | None,
    is_refused: bool = False,
) -> None:
    """Add a call to the list, before it is answered; the oldest go once it is long.

    Raises:
        OSError: it can't be written.
    """
    now_ms = time.time_ns() // 1_000_000
    call = AiCall(tool, now_ms, asked_bytes, answered_bytes, is_refused)
    line = msgspec.json.encode(_Line(call, lab)) + b"\n"
    folder = data_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / _FILE
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > _MOST_BYTES:
            path.replace(folder / _OLDER)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    opened = os.open(path, flags, 0o600)
    try:
        # in one piece, whoever else appends
        os.write(opened, line)
    finally:
        os.close(opened)


def ai_log(lab: str, since_ms: int) -> AiLog:
    """Give what is kept of a lab since it opened.

    Args:
        lab: its name in the catalogue.
        since_ms: milliseconds since 1970.
    """
    folder = data_folder()
    lines = [
        line
        for name in (_OLDER, _FILE)
        for line in _lines(folder / name)
        if line.call.at_ms >= since_ms
    ]
    calls = [line.call for line in lines if line.lab == lab]
    others = sum(not line.lab for line in lines)
    return AiLog(tuple(calls[::-1][:MOST_AI_CALLS]), len(calls), others)


def _lines(path: Path) -> Iterator[_Line]:
    """Read a file; a line that a kill has cut off is passed over."""
    text = b""
    with contextlib.suppress(OSError), path.open("rb") as file:
        # more than this was not written by us
        text = file.read(2 * _MOST_BYTES)
    for line in text.splitlines():
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            yield _decode(line)
