"""Mistakes of a program, whether or not its results were right this time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "race",
    "host read too early",
    "released too early",
    "uninitialised read",
    "stale graph",
    "capture",
    "read-only",
]

#: of one kind; the others are only counted
MOST_FINDINGS = 10


@dataclass(frozen=True)
class Finding:
    """A mistake, in words."""

    kind: Kind
    message: str
    #: of the source; None where it is not known
    line: int | None = None


@dataclass
class Findings:
    """Those that were found, each once."""

    listed: list[Finding] = field(default_factory=list)
    more: int = 0
    _seen: set[Finding] = field(default_factory=set)

    def add(self, kind: Kind, message: str, line: int) -> None:
        """List a mistake."""
        finding = Finding(kind, message, line if _is_known(line) else None)
        if finding in self._seen:
            return
        if sum(known.kind == kind for known in self.listed) < MOST_FINDINGS:
            self._seen.add(finding)
            self.listed.append(finding)
        else:
            self.more += 1


def at(line: int) -> str:
    """Say where something was asked."""
    return f"line {line}" if _is_known(line) else "a line that is not known"


def _is_known(line: int) -> bool:
    return 0 < line < 1_000_000
