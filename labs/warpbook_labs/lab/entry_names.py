"""Finds a kernel by the name that its source gives it.

C++ compilers write a function's name with the types of its parameters (Itanium C++ ABI,
"Mangling"), unless it is declared `extern "C"`: `sum` of a pointer is `_Z3sumPf`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: of a template: true or false, a number, a type with a name, or one of C++'s own
_ARGUMENT = re.compile(r"Lb([01])E|L[a-z](n?)(\d+)E|(\d+)|([abcdfhijlmstxy])")
_TYPES = dict(
    zip(
        "bcahstijlmxyfd",
        "bool,char,signedchar,unsignedchar,short,unsignedshort,int,unsigned,long,"
        "unsignedlong,longlong,unsignedlonglong,float,double".split(","),
        strict=True,
    )
)


class NoSuchKernel(LookupError):
    """No kernel is called so, or several are; the message says what to do."""


def entry_named(name: str, entries: Iterable[str]) -> str:
    """Give the compiled name of a kernel.

    Raises:
        NoSuchKernel: there is none, or there are several.
    """
    known = list(entries)
    if name in known:
        return name
    matches = [entry for entry in known if plain_name(entry) == plain_name(name)]
    if len(matches) > 1:
        # as the source writes them, with namespaces and what a template is given
        same = [one for one in matches if f"::{_written(one)}".endswith(f"::{name}")]
        matches = same or matches
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NoSuchKernel(
            f"{len(matches)} kernels are called `{name}`, and differ by their "
            'parameters. Declare the one that is launched extern "C".'
        )
    names = ", ".join(map(plain_name, known)) or "none"
    raise NoSuchKernel(f"There is no kernel `{name}` here, only: {names}.")


def _written(entry: str) -> str:
    """Give a kernel's name as `space::sum<float,4>`; "?" for what is not known."""
    parts, at = [], 3 if entry.startswith("_ZN") else 2
    while (match := re.match(r"L?(\d+)", entry[at:])) is not None:
        begin = at + match.end()
        at = begin + int(match[1])
        parts.append(entry[begin:at])
        if entry[at : at + 1] != "I":
            continue
        given, at = [], at + 1
        while (argument := _ARGUMENT.match(entry, at)) is not None:
            truth, sign, number, length, kind = argument.groups()
            at = argument.end() + int(length or 0)
            if truth:
                given.append("true" if truth == "1" else "false")
            elif length:
                given.append(entry[argument.end() : at])
            else:
                given.append(f"{'-' * bool(sign)}{number}" if number else _TYPES[kind])
        parts[-1] += f"<{','.join(given)}{'' if entry[at : at + 1] == 'E' else '?'}>"
        break
    return "::".join(parts)


def plain_name(entry: str) -> str:
    """Give the name of a kernel without namespaces, template and parameters."""
    if not entry.startswith("_Z"):
        return entry.partition("<")[0].rpartition("::")[2]
    at = 2
    inside = entry[at : at + 1] == "N"
    at += inside
    name = entry
    while (match := re.match(r"L?(\d+)", entry[at:])) is not None:
        begin = at + match.end()
        at = begin + int(match[1])
        name = entry[begin:at]
        if not inside:
            break
    return name
