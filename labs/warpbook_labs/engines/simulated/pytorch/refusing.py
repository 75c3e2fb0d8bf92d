"""What the simulated GPU has not, said in words with the learner's line."""

from __future__ import annotations

from typing import NoReturn

from warpbook_labs.engines.simulated.pytorch import current
from warpbook_labs.errors import Missing


def refuse(what: str, instead: str = "") -> NoReturn:
    """Say that something is not there, and perhaps what to do instead.

    Raises:
        Missing: always.
    """
    raise Missing(f"The simulated GPU has no {what}{where()}. {instead}".rstrip())


def where() -> str:
    """Name the learner's line, if there is one."""
    machine = current.machine_or_none()
    line = machine.record.line() if machine is not None else 0
    return f" (line {line})" if line else ""
