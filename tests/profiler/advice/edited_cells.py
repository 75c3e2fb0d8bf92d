"""What a cell computes before and after a change's edit, on the CPU."""

from __future__ import annotations

from typing import Any

import torch

from tests.gpu.exam.agreement import OF_DTYPE, TOLERANCES
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.model.change import Change


def tried(change: Change, source: str) -> Change:
    """Give a change that has no sure edit the first one that a trial would run."""
    assert not change.code
    return next(liberal_edits(source, (change,), only_named=True), change)


def agrees(change: Change, source: str, setup: str, *names: str) -> bool:
    """Tell whether names have the same values after the edited cell as after its own.

    Args:
        change: with the edited source, which must be there.
        source: the cell before it.
        setup: what runs before either.
        names: that both set.
    """
    assert change.code
    before, after = (_after(setup, code) for code in (source, change.code))
    return all(is_close(before[name], after[name]) for name in names)


def _after(setup: str, source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "dev": "cpu"}
    torch.manual_seed(0)
    exec(setup, names)
    exec(source, names)
    return names


def is_close(one: Any, other: Any, change: str = "") -> bool:
    """Tell whether values agree, as well as a change of that name can."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(
            is_close(*pair, change) for pair in zip(one, other, strict=True)
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            is_close(one[key], other[key], change) for key in one
        )
    one, other = torch.as_tensor(one).detach(), torch.as_tensor(other).detach()
    off = max(TOLERANCES.get(change, 0.0), OF_DTYPE.get(one.dtype, 0.0), 1e-4)
    # what is complex, too
    one, other = one.to(torch.complex128), other.to(torch.complex128)
    return one.shape == other.shape and torch.allclose(
        one, other, off, off, equal_nan=True
    )
