"""The record alone, run again on other numbers, gives what PyTorch gives on them."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.labs.simulated.recording.pair import Body, outcome
from tests.labs.simulated.recording.test_shapes import CUBE, VIEWS
from tests.labs.simulated.recording.test_values import ONE, TWO, numbers
from warpbook_labs.simulated.judging.judge import Buffer, judge
from warpbook_labs.simulated.program import Program
from warpbook_labs.simulated.recording.session import Session


def assert_judged(body: Body, *arrays: NDArray[Any]) -> None:
    """Record with ones, judge with the arrays."""
    right = outcome(body, torch, list(arrays))
    if not isinstance(right, torch.Tensor):
        return
    empty = np.zeros(right.shape, str(right.dtype).removeprefix("torch."))
    names = [f"x{number}" for number in range(len(arrays))]
    lent = {
        name: (np.ones_like(array), "device")
        for name, array in zip(names, arrays, strict=True)
    }
    session = Session({**lent, "out": (empty, "device")})
    session.begin_call(0)
    module = session.modules()["torch"]
    # bodies make small tensors of the host, and write into what they are given
    given = [session.tensors[name].cpu() for name in names]
    session.tensors["out"].copy_(body(module, *given))
    sent = msgspec.msgpack.encode(session.program())
    buffers = [
        Buffer(name, "device", array.dtype.name, array.shape, True, False)
        for name, array in zip(names, arrays, strict=True)
    ]
    buffers.append(Buffer("out", "device", empty.dtype.name, empty.shape, False, True))
    judged = judge(
        msgspec.msgpack.decode(sent, type=Program),
        buffers,
        [dict(zip(names, arrays, strict=True))],
    )
    assert not judged.findings
    np.testing.assert_allclose(
        judged.outputs[0]["out"].astype(float),
        np.array(right.tolist(), float),
        rtol=2e-6,
        atol=2e-6,
    )


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_operations(dtype: str) -> None:
    for body in ONE.values():
        assert_judged(body, numbers(dtype, (3, 4), 5))
    for body in TWO.values():
        assert_judged(body, numbers(dtype, (3, 4), 5), numbers(dtype, (3, 4), 6))


def test_views() -> None:
    for body in VIEWS.values():
        assert_judged(body, CUBE)
        assert_judged(lambda t, x, view=body: view(t, x) + 1, CUBE)


def test_writes_into_views() -> None:
    def write(t: Any, x: Any, view: Body) -> Any:
        view(t, x).mul_(2)
        return x

    for name in ("chunk", "narrow", "permute", "none and dots", "view", "0 dimensions"):
        assert_judged(lambda t, x, view=VIEWS[name]: write(t, x, view), CUBE)
