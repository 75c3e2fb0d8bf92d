"""Sizes of tensors in a list, as aten::cat takes them."""

from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from tests.profiler.trace.written import call, kernel, trace
from warpbook_profiler.capture.kineto_events import operands_of
from warpbook_profiler.events.columns import lists_of
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.verdict.analysis import analyse


def test_sizes_in_lists_are_told_apart_from_sizes() -> None:
    assert lists_of([[[0, 32], [64, 32]], []]) == (((0, 32), (64, 32)), ())
    assert lists_of([[64, 32], []]) == ()
    # a list of numbers has no sizes
    assert lists_of([[[], []]]) == (((), ()),)


def test_torch_tells_them() -> None:
    x = torch.ones(4, 2)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        torch.cat([x, x, x])
    events = profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
    (joined,) = (event for event in events if event.name() == "aten::cat")
    if hasattr(joined, "structured_input_shapes"):
        assert operands_of(joined, "aten::cat").lists[0] == ((4, 2),) * 3


def test_a_file_tells_them(tmp_path: Path) -> None:
    args = {
        "External id": 3,
        "Input Dims": [[[8, 4], [2, 4]], []],
        "Input type": ["TensorList", "Scalar"],
    }
    operator = call(0, 1.0, cat="cpu_op", name="aten::cat", dur=9.0, args=args)
    work = kernel(5, 8.0, args={"External id": 3})
    path = tmp_path / "trace.json"
    path.write_bytes(trace(operator, call(5, 3.0), work))
    events, _ = read_chrome_trace(str(path))
    (operands,) = events.operands
    assert operands.lists == (((8, 4), (2, 4)), ())
    assert operands.dims == ((), ())


def test_sizes_that_no_tensor_has_are_not_known(tmp_path: Path) -> None:
    args = {"External id": 3, "Input Dims": [[2**40] * 30], "Input type": ["float"]}
    operator = call(0, 1.0, cat="cpu_op", name="aten::add", dur=9.0, args=args)
    work = kernel(5, 8.0, args={"External id": 3})
    path = tmp_path / "trace.json"
    path.write_bytes(trace(operator, call(5, 3.0), work))
    events, run = read_chrome_trace(str(path))
    assert not events.operands
    assert analyse(events, run).verdict is not None
