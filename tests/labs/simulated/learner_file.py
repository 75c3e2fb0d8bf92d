"""A learner's file, recorded as in the jail and judged as in the parent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from warpbook_labs.simulated.judging.judge import Buffer, Judged, judge
from warpbook_labs.simulated.program import Place, Program
from warpbook_labs.simulated.recording.session import Session


def judged_file(
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    given: Sequence[NDArray[np.float32]],
    place: Place,
    out_place: Place | None = None,
) -> Judged:
    """Record `prepare(n)` and `run(state, x, out)` with zeros, and judge with others.

    Args:
        monkeypatch: the test's.
        source: the file.
        given: what x holds in each call; out has the same shape.
        place: where x is.
        out_place: where out is, if elsewhere.
    """
    zeros, shape = np.zeros_like(given[0]), given[0].shape
    places = {"x": place, "out": out_place or place}
    lent = {"pageable": "host"}
    session = Session(
        {name: (zeros, lent.get(each, each)) for name, each in places.items()}
    )
    for name, module in session.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    module = ModuleType("solution")
    exec(compile(source, "solution.py", "exec"), module.__dict__)
    state = module.prepare(zeros.size)
    for call in range(len(given)):
        session.begin_call(call)
        module.run(state, **session.tensors)
    sent = msgspec.msgpack.encode(session.program())
    program = msgspec.msgpack.decode(sent, type=Program)
    buffers = [
        Buffer(name, each, "float32", shape, name == "x", name == "out")
        for name, each in places.items()
    ]
    return judge(program, buffers, [{"x": each} for each in given])


def kinds(judged: Judged) -> list[str]:
    """Name the findings."""
    return [each.kind for each in judged.findings]
