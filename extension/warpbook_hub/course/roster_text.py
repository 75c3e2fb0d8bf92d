"""From a file's bytes to lines of text: in which encoding, and how that is known."""

from __future__ import annotations

import codecs
import re
from itertools import pairwise

import charset_normalizer
from msgspec import Struct

from warpbook_hub.errors import BadRoster, RosterProblem

MOST_BYTES = 2 << 20
#: of lines with other bytes than ASCII: what decides an encoding
_SAMPLE_BYTES = 32 << 10
#: that a person may choose, the likelier first where bytes can't decide
ENCODINGS = {
    "utf-8": "UTF-8",
    "cp1252": "Windows-1252, Western Europe",
    "cp1250": "Windows-1250, Central Europe",
    "cp1251": "Windows-1251, Cyrillic",
    "cp1253": "Windows-1253, Greek",
    "cp1254": "Windows-1254, Turkish",
    "cp1257": "Windows-1257, Baltic",
    "iso8859_15": "ISO 8859-15, Western Europe",
    "iso8859_2": "ISO 8859-2, Central Europe",
    "mac_roman": "Mac Roman",
    "cp850": "DOS 850",
    "cp437": "DOS 437",
    "koi8_r": "KOI8-R, Cyrillic",
    "shift_jis": "Shift JIS, Japanese",
    "euc_jp": "EUC-JP, Japanese",
    "gb18030": "GB 18030, Chinese",
    "big5": "Big5, Chinese",
    "euc_kr": "EUC-KR, Korean",
    "cp1255": "Windows-1255, Hebrew",
    "cp1256": "Windows-1256, Arabic",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16, little endian",
    "utf-16-be": "UTF-16, big endian",
    "utf-32": "UTF-32",
}
_BETWEEN = re.compile(rb"[,;|\t\r\n\"]+")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    # of UTF-32 the little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BYTE_ENCODINGS = [
    name for name in ENCODINGS if not name.startswith("utf") and name != "iso8859_15"
]


class RosterText(Struct, frozen=True):
    """A file as text."""

    text: str
    #: a key of `ENCODINGS`
    encoding: str
    #: its bytes say so, or a person has
    is_sure: bool
    #: what they may be as well, the likelier first
    others: tuple[str, ...] = ()


def decoded(content: bytes, encoding: str = "") -> RosterText:
    """Decode a file by its mark, as UTF-8, or by what its letters are likely to be.

    Args:
        content: the file.
        encoding: that a person has chosen; empty: it is detected.

    Raises:
        BadRoster: it is too large, or no text in the encoding.
    """
    if len(content) > MOST_BYTES:
        raise one_problem(1, f"The file has more than {MOST_BYTES >> 20} MiB.")
    if encoding and encoding not in ENCODINGS:
        raise one_problem(1, "There is no encoding of this name to choose.")
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    if encoding or marked:
        return RosterText(_text(content, encoding or marked), encoding or marked, True)
    try:
        return RosterText(_text(content, "utf-8"), "utf-8", True)
    except BadRoster:
        likely = _likely(content)
        if not likely:
            raise
    return RosterText(_text(content, likely[0]), likely[0], False, likely[1:])


def one_problem(line: int, message: str) -> BadRoster:
    return BadRoster((RosterProblem(line, message),))


def _text(content: bytes, encoding: str) -> str:
    try:
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        words = f"This is no text in {ENCODINGS[encoding]}."
        raise one_problem(line, words) from None
    return text.removeprefix("\ufeff")


def _likely(content: bytes) -> tuple[str, ...]:
    """Return the encodings in which it is text, the likeliest first."""
    half = len(content) // 2
    for name, zeros in (("utf-16-le", content[1::2]), ("utf-16-be", content[::2])):
        # most of a header's letters are ASCII
        if half and zeros.count(0) > half / 2:
            return (name,) if _is_text(content, name) else ()
    cells = [cell for cell in _BETWEEN.split(content) if not cell.isascii()]
    sample = b"\n".join(cells)[:_SAMPLE_BYTES]
    found = charset_normalizer.from_bytes(sample, cp_isolation=_BYTE_ENCODINGS)
    chances = {
        name: (
            _odd_letters(sample.decode(name, "replace")),
            match.chaos,
            -match.coherence,
            _BYTE_ENCODINGS.index(name),
        )
        for match in found
        for name in match.could_be_from_charset
        if name in _BYTE_ENCODINGS and _is_text(content, name)
    }
    return tuple(sorted(chances, key=lambda name: chances[name]))


def _odd_letters(text: str) -> int:
    """Count what no name has: signs beside letters, and capitals after small ones."""
    return sum(
        (not after.isascii() and not after.isalpha() and before.isalpha())
        or (not before.isascii() and not before.isalpha() and after.isalpha())
        or (before.islower() and after.isupper() and not (before + after).isascii())
        for before, after in pairwise(text)
    )


def _is_text(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
