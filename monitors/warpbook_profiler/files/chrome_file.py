"""What torch.profiler writes into a Chrome trace, read piece by piece.

Memory holds one piece of the file, never all of it. A piece ends between two events.
Whether a "}, {" is such a place, and not within a name or an event's arguments, only
the decoder can tell: a mark is put in place of the rest, and the cut is right if the
mark is read as the last event. Otherwise a longer piece is tried.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from warpbook_monitors.budget import CHROME
from warpbook_monitors.plain_file import check_plain
from warpbook_profiler.events.columns import NONE
from warpbook_profiler.files.chrome_odd import NO_TIME, decode_leniently
from warpbook_profiler.files.chrome_records import Piece
from warpbook_profiler.model.errors import (
    NotATrace,
    TraceDamaged,
    TraceFileError,
    TraceTooLarge,
)

#: A decompressed trace is refused beyond this size.
MAX_TRACE_BYTES = CHROME.most_bytes
#: One event, and what comes before or after all of them, is no longer than this.
MAX_PIECE_BYTES = CHROME.value_bytes
#: small enough for the CPU's cache, and for memory that needs no fresh pages
PIECE_BYTES = 160_000
#: how far from a piece's end a place to cut is looked for
_TAIL_BYTES = 20_000

# not strict: older versions wrote some numbers as strings
_DECODER = msgspec.json.Decoder(Piece, strict=False)
#: two events, or what looks so
BETWEEN = re.compile(rb"\}\s*,\s*\{")
_OPENING_OF_A_LIST = b'{"traceEvents":'
_OPENING = _OPENING_OF_A_LIST + b"["
_CLOSING = b'},{"ph":"rest"}]}'
_MARK = "rest"
_EVENTS = b'"traceEvents"'
#: what Kineto and others write for a number that is none
_NO_NUMBER = re.compile(r"(:\s*)-?(?:NaN|nan|Infinity|inf)(?=\s*[,}])")
#: numbers that other tools write for "none", and those of 64 bits without a sign
_NULL = re.compile(
    rb'("(?:[Ee]xternal id|correlation|device|stream|bytes|tid|dur)"\s*:\s*)null'
)
_NO_BEGIN = re.compile(rb'("ts"\s*:\s*)null')
_NEVER = rb"\1%r" % NO_TIME
_UNSIGNED = re.compile(
    rb'("(?:[Ee]xternal id|correlation|device|stream|bytes|tid)"\s*:\s*)"?(\d{19,20})"?'
)
#: torch on Windows writes paths as they are; what is an escape stays one
_BACKSLASH = re.compile(rb'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?')
#: a list of events without what stands beside them
LIST = re.compile(rb"(\xef\xbb\xbf)?\s*\[")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: a name may hold them as they are; outside of names they mean as much as a space
_WITHOUT_CONTROLS = bytes.maketrans(bytes(range(32)), b" " * 32)


class Part(NamedTuple):
    """Bytes of a file, with whole events but for the brace that ends the last one."""

    begin: int = 0
    #: 0 for the file's end, of which no brace is missing
    end: int = 0


WHOLE = Part()


def is_gzip(path: str) -> bool:
    """Tell whether a file is compressed."""
    check_plain(Path(path))
    with Path(path).open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_pieces(
    path: str, part: Part = WHOLE, count: Callable[[int], None] = lambda _: None
) -> Iterator[Piece]:
    """Decode a file or a part of it, a piece at a time.

    Args:
        path: of the file.
        part: of the file.
        count: takes how many bytes of the file each step has read.

    Raises:
        TraceFileError: it is damaged, too large, or no such trace.
    """
    opening, text, total = _OPENING if part.begin else b"", b"", 0
    closing = b""
    read_bytes = [PIECE_BYTES]
    for chunk in _chunks(path, part, read_bytes, count):
        total += len(chunk)
        if total > MAX_TRACE_BYTES:
            raise TraceTooLarge(path, f"larger than {MAX_TRACE_BYTES:,} bytes.")
        text += chunk
        if total == len(chunk) and not part.begin and LIST.match(text):
            opening, closing = _OPENING_OF_A_LIST, b"}"
        cut = BETWEEN.search(text, max(0, len(text) - _TAIL_BYTES))
        piece = cut and _until_mark(
            path, b"".join((opening, memoryview(text)[: cut.start()], _CLOSING))
        )
        if cut and piece:
            yield piece
            opening, text, read_bytes[0] = _OPENING, text[cut.end() - 1 :], PIECE_BYTES
        elif len(text) > MAX_PIECE_BYTES:
            raise _refused(path, "no end of an event in sight")
        else:
            read_bytes[0] = len(text)
    if part.end:
        last = _until_mark(path, opening + text + _CLOSING)
        if last is None:
            raise _refused(path, "no event ends where a part of it does")
        yield last
        return
    try:
        piece = _decode(opening + text + closing)
    except msgspec.ValidationError as problem:
        raise _refused(path, problem) from None
    except (msgspec.MsgspecError, RecursionError) as problem:
        # what other pieces came before, or what has their list, was a trace once
        is_cut = bool(opening) or _EVENTS in text
        raise _refused(path, problem, TraceDamaged if is_cut else NotATrace) from None
    if piece.events is None:
        raise _refused(path, "it holds no list of events")
    yield piece


def _until_mark(path: str, text: bytes) -> Piece | None:
    """Decode a piece that is not the last; None if its end is no end of an event."""
    try:
        piece = _decode(text)
    except msgspec.ValidationError as problem:
        # JSON with invalid content: more of it would not help
        raise _refused(path, problem) from None
    except (msgspec.DecodeError, RecursionError):
        return None
    if not piece.events or piece.events[-1].ph != _MARK:
        return None
    del piece.events[-1]
    return piece


def _decode(text: bytes) -> Piece:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # names come from anywhere, and Kineto writes them as they are
        text = _BACKSLASH.sub(_escaped, text)
        plain = text.translate(_WITHOUT_CONTROLS).decode("utf-8", "replace")
    text = _NO_NUMBER.sub(r"\1null", plain).encode()
    # what no field takes is not known, or is an id of 64 bits
    text = _NO_BEGIN.sub(_NEVER, _NULL.sub(rb"\1-1", text))
    text = _UNSIGNED.sub(_signed, text)
    try:
        return _DECODER.decode(text)
    except msgspec.ValidationError:
        return decode_leniently(text)


def _escaped(match: re.Match[bytes]) -> bytes:
    return match[0] if match[1] else rb"\\"


def _signed(match: re.Match[bytes]) -> bytes:
    number = int(match[2])
    if number < 2**63:
        return match[0]
    # -1 without a sign is no id
    return match[1] + str(NONE if number >= 2**64 - 1 else number - 2**63).encode()


def _refused(
    path: str, problem: object, kind: type[TraceFileError] = NotATrace
) -> TraceFileError:
    # a place within a piece tells nobody where it is in the file
    said = re.sub(r"\[\d+\]| \(byte \d+\)", "", str(problem))
    what = "a damaged trace" if kind is TraceDamaged else "no trace of torch.profiler"
    return kind(path, f"{what}: {said}.")


def _chunks(
    path: str, part: Part, read_bytes: list[int], count: Callable[[int], None]
) -> Iterator[bytes]:
    """Read as many bytes at a time as the list says just then."""
    left = (part.end or sys.maxsize) - part.begin
    is_first = not part.begin
    try:
        is_packed = is_gzip(path)
        with Path(path).open("rb") as packed:
            packed.seek(part.begin)
            file = gzip.open(packed) if is_packed else packed
            at = part.begin
            while chunk := file.read(min(read_bytes[0], left)):
                left -= len(chunk)
                count(packed.tell() - at)
                at = packed.tell()
                yield chunk.removeprefix(_BYTE_ORDER_MARK) if is_first else chunk
                is_first = False
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise TraceDamaged(path, f"can't be read: {problem}.") from problem
    except OSError as problem:
        # the system's own words name a number and the path once more
        why = problem.strerror or problem
        raise TraceFileError(path, f"can't be read: {why}") from problem
