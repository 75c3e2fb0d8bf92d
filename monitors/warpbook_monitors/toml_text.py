"""TOML that somebody else may have written: bounded before its parser reads it.

Python's parser takes time by the square of a dotted key's parts, and recurses by
brackets. A scan that is linear in the text counts both.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

#: more than any rules, lab or model needs
MOST_BYTES = 512 * 1024
_MOST_DEPTH = 16
_MOST_DOTS = 8
#: of a key or a number without quotes
_MOST_LENGTH = 300

#: as the parser splits a text: strings that do not end, end with their line or the text
_TOKEN = re.compile(
    r'(?P<skip>"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"{3,5}|\\?\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
    r"|'[^'\n]*'?"
    r"|\#[^\n]*|[ \t\r]+)"
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<dot>\.)|(?P<end>[=,\n])"
    r"""|(?P<word>[^\s"'\#\[\]{}.=,]+)|(?P<other>.)""",
    re.DOTALL,
)


class UnfitToml(msgspec.DecodeError, ValueError):
    """It is no TOML, or more than is read; the message has the line and what to do."""


def decode(text: str | bytes, form: type[T]) -> T:
    """Give what a text of TOML says.

    Raises:
        UnfitToml: it is no TOML, or it is too large, or too deep.
        msgspec.ValidationError: it is not of that form; the message names the key, and
            what may stand there where that is a list of words.
    """
    try:
        text = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        words = f"it is not UTF-8 (at line {line}): save it as UTF-8"
        raise UnfitToml(words) from None
    check(text)
    try:
        return msgspec.toml.decode(text, type=form)
    except msgspec.ValidationError as problem:
        words = _words_for(form, str(problem))
        raise msgspec.ValidationError(f"{problem}{words}") from None
    except msgspec.MsgspecError:
        raise
    except (ValueError, RecursionError) as problem:
        raise UnfitToml(str(problem)) from None


def _words_for(form: type, problem: str) -> str:
    """Say which words may stand at the key that a problem names, if it is of few."""
    if not problem.startswith("Invalid enum value"):
        return ""
    schema = msgspec.json.schema(form)
    ways = [schema]
    # a path such as `$.public[0].sizes[...]`; of what may be left out one way is null
    for key, opens in [
        ("", ""),
        *re.findall(r"\.(\w+)|(\[)", problem.partition("`$")[2]),
    ]:
        if key:
            ways = [
                way["properties"].get(key, {}) for way in ways if "properties" in way
            ]
        elif opens:
            inside = ("items", "additionalProperties")
            ways = [way[name] for way in ways for name in inside if way.get(name)]
        ways = [one for way in ways for one in way.get("anyOf", [way])]
        ways = [
            schema["$defs"][one["$ref"].rpartition("/")[2]] if "$ref" in one else one
            for one in ways
        ]
    words = [f"`{word}`" for way in ways for word in way.get("enum", ())]
    return f": it is one of {', '.join(words)}" if words else ""


def check(text: str) -> None:
    """Refuse what would take a parser long.

    Raises:
        UnfitToml: it is too large, or too deep.
    """
    if len(text) > MOST_BYTES:
        raise UnfitToml(f"it has more than {MOST_BYTES >> 10} KiB: remove some")
    depth = dots = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        if kind == "dot":
            dots += 1
        elif kind in ("open", "close", "end"):
            dots = 0
        if depth > _MOST_DEPTH:
            problem = f"brackets are nested more than {_MOST_DEPTH} deep"
        elif dots > _MOST_DOTS:
            problem = f"a key has more than {_MOST_DOTS} dots"
        elif kind == "word" and len(token[0]) > _MOST_LENGTH:
            problem = f"a key or a number has more than {_MOST_LENGTH} characters"
        else:
            continue
        line = text.count("\n", 0, token.start()) + 1
        raise UnfitToml(f"{problem} (at line {line}): write it with fewer")
