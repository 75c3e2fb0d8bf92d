"""One change of a source, and the mutant that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct


class Change(NamedTuple):
    """A piece of a source that is replaced, by offsets in characters."""

    operator: str
    begin: int
    end: int
    new: str


class Mutant(Struct, frozen=True):
    """A source that differs from a right one in one place."""

    #: of the right solution, from the lab's folder
    file: str
    line: int
    operator: str
    #: the lines that differ, on one line
    before: str
    after: str
    source: str

    @property
    def words(self) -> str:
        """Where it differs, and how."""
        return (
            f"{self.file}:{self.line}: {self.before} -> {self.after} ({self.operator})"
        )


#: what a replacement needs before the source
_HEADERS = {"__half": "#include <cuda_fp16.h>\n"}


def mutants(file: str, source: str, changes: Iterable[Change]) -> Iterator[Mutant]:
    """Apply each change by itself; the same text is yielded once."""
    seen = {_squeezed(source)}
    for operator, begin, end, new in changes:
        text = source[:begin] + new + source[end:]
        if _squeezed(text) in seen:
            continue
        seen.add(_squeezed(text))
        first, last = source.rfind("\n", 0, begin) + 1, source.find("\n", end)
        last = len(source) if last < 0 else last
        yield Mutant(
            file,
            source.count("\n", 0, begin) + 1,
            operator,
            _squeezed(source[first:last]),
            _squeezed(source[first:begin] + new + source[end:last]),
            _HEADERS.get(new, "") + text,
        )


def _squeezed(text: str) -> str:
    return " ".join(text.split())
