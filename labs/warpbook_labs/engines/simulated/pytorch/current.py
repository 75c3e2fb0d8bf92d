"""The machine that records now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

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


_machines: list[Any] = []


def machine() -> Any:
    """Give it.

    Raises:
        RuntimeError: no case runs.
    """
    if not _machines:
        raise RuntimeError("No case runs on the simulated GPU.")
    return _machines[-1]


def machine_or_none() -> Any:
    """Give it; None where nothing is recorded."""
    return _machines[-1] if _machines else None


@contextlib.contextmanager
def recording(machine: Any) -> Iterator[None]:
    """Have a machine record what is asked meanwhile."""
    _machines.append(machine)
    try:
        with machine:
            yield
    finally:
        _machines.pop()


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Let Python look at numbers meanwhile, and have nothing written down."""
    held = _machines[:]
    _machines.clear()
    try:
        yield
    finally:
        _machines[:] = held
