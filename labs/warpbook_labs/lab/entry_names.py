"""Finds a kernel by the name that its source gives it.

C++ compilers write a function's name with the types of its parameters (Itanium C++ ABI,
"Mangling"), unless it is declared `extern "C"`: `sum` of a pointer is `_Z3sumPf`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


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
    matches = [entry for entry in known if plain_name(entry) == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NoSuchKernel(
            f"{len(matches)} kernels are called `{name}`, and differ by their "
            'parameters. Declare the one that is launched extern "C".'
        )
    names = ", ".join(map(plain_name, known)) or "none"
    raise NoSuchKernel(f"There is no kernel `{name}` here, only: {names}.")


def plain_name(entry: str) -> str:
    """Give the name of a kernel without namespaces and parameters."""
    if not entry.startswith("_Z"):
        return entry
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
