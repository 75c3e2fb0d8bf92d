"""What is wrong with a field of a request, in words for who has filled in a form."""

from __future__ import annotations

import re
from typing import NamedTuple

from warpbook_monitors.plain_text import bounded

_PLACE = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_NAMED = re.compile(r"Object (?P<what>missing required|contains unknown) field `(.*)`")
_KIND = re.compile(r"Expected `(?P<kind>[a-z]+)[^`]*`(, got `(?P<got>[a-z]+)`)?")
_BOUND = re.compile(
    r"Expected `[a-z]+`(?P<of> of length)? (?P<sign><=|>=) (?P<most>[\d.]+)"
)
_INDEX = re.compile(r"(?P<name>[^\[\]]+)\[(?P<index>\d+)\]")
#: a unit that a name ends in, which the form says beside the field
_UNIT = re.compile(r"^is_|_(ms|h|min|percent)$")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "yes or no",
    "str": "a text",
    "array": "a list",
    "object": "an object with fields",
}


class FieldProblem(NamedTuple):
    """What is wrong, and with which field."""

    #: such as `windows[0].due_ms`; empty where it is of none
    field: str
    words: str


def field_problem(problem: str) -> FieldProblem:
    """Return in words what msgspec says; what is of no known form stays as it is."""
    place = _PLACE.search(problem)
    path = place["path"] if place else ""
    text = problem[: place.start()] if place else problem
    named = _NAMED.match(text)
    if named:
        path = f"{path}.{named[2]}".strip(".")
        is_missing = named["what"] == "missing required"
        what = "it is missing" if is_missing else "there is no such field"
    else:
        what = _wrong(text, path)
    where = _where(path)
    words = f"{where}: {what}" if where else what
    return FieldProblem(path, bounded(words, 300))


def _wrong(text: str, path: str) -> str:
    bound = _BOUND.match(text)
    if bound:
        most = bound["most"].removesuffix(".0")
        if bound["of"]:
            unit = "entries" if "`array`" in text else "characters"
            return f"it is to have {most} {unit} at {_LIMITS[bound['sign']]}"
        if path.endswith("_ms"):
            return "it is to be a date and time from 1970 to 2199"
        return f"it is to be {most} at {_LIMITS[bound['sign']]}"
    if text.startswith("Invalid enum value"):
        return "it is none of the choices"
    kind = _KIND.match(text)
    if kind is None:
        return text
    if kind["got"] == "null":
        return "it is empty"
    is_time = path.endswith("_ms")
    return f"it is to be {'a date and time' if is_time else _KINDS[kind['kind']]}"


_LIMITS = {"<=": "most", ">=": "least"}


def _where(path: str) -> str:
    """Write a path as a person says it: the field, and the row of its list."""
    if not path:
        return ""
    *outer, last = path.split(".")
    rows = []
    for part in outer:
        row = _INDEX.fullmatch(part)
        rows.append(f"row {int(row['index']) + 1} of {row['name']}" if row else part)
    name = _UNIT.sub("", last).replace("_", " ")
    return ", ".join([name[:1].upper() + name[1:], *reversed(rows)])
