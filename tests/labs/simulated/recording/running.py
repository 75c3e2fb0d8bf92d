"""A learner's file, run on the stand-in, and what was recorded."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.simulated.program import Instruction, Program
from warpbook_labs.simulated.recording.session import Session

FOUR = np.arange(4, dtype=np.float32)


@contextmanager
def imported(session: Session) -> Iterator[None]:
    """`import torch` finds the stand-in meanwhile."""
    ours = {name: None for name in sys.modules if name.partition(".")[0] == "torch"}
    with mock.patch.dict(sys.modules, {**ours, **session.modules()}):
        yield


def record(
    source: str,
    buffers: Mapping[str, tuple[NDArray[Any], str]] | None = None,
    **options: Any,
) -> Program:
    """Run a file whose buffers are globals; its lines count from 1."""
    session = Session(buffers or {}, **options)
    text = textwrap.dedent(source).lstrip("\n")
    with imported(session):
        space: dict[str, Any] = {**session.tensors}
        exec(compile(text, "/somewhere/solution.py", "exec"), space)
        space.clear()
    return session.program()


def of_kind(program: Program, kind: type[Instruction]) -> list[Any]:
    """All instructions of a kind."""
    return [one for one in program.instructions if isinstance(one, kind)]


def kinds(program: Program) -> list[str]:
    """The instructions by name; a launch by its operation."""
    return [
        getattr(one, "operation", type(one).__name__) for one in program.instructions
    ]
