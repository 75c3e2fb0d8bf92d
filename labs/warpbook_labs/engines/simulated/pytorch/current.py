"""The machine that records now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

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
