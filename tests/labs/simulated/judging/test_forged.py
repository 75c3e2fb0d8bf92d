"""Programs that no Python recorded."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.labs.simulated.judging.writing import Writer, kinds, numbers
from warpbook_labs.engines.simulated import program as recorded
from warpbook_labs.engines.simulated.judging.calls.operations import OPERATIONS
from warpbook_labs.engines.simulated.judging.judge import judge
from warpbook_labs.engines.simulated.program import ProgramRefused, View

N = 64
BIG = 1 << 62

Forge = Callable[[Writer, View, View], object]


def view(of: View, **changed: object) -> View:
    fields = {name: getattr(of, name) for name in of.__struct_fields__}
    return View(**{**fields, **changed})


FORGED: dict[str, Forge] = {
    "memory that is not there": lambda w, x, out: w.launch(
        "neg", [view(x, storage=77)], [out]
    ),
    "beyond its memory": lambda w, x, out: w.launch("neg", [view(x, offset=1)], [out]),
    "far beyond": lambda w, x, out: w.launch("neg", [view(x, offset=BIG)], [out]),
    "a negative offset": lambda w, x, out: w.launch("neg", [view(x, offset=-1)], [out]),
    "a negative extent": lambda w, x, out: w.launch(
        "neg", [view(x, shape=(-1,))], [out]
    ),
    "more strides than extents": lambda w, x, out: w.launch(
        "neg", [view(x, strides=(1, 1))], [out]
    ),
    "many elements of few bytes": lambda w, x, out: w.launch(
        "sum", [view(x, shape=(BIG, BIG), strides=(0, 0))], [out]
    ),
    "an extent beyond any": lambda w, x, out: w.launch(
        "neg", [view(x, shape=(BIG,), strides=(BIG,))], [out]
    ),
    "its own memory as the host's": lambda w, x, out: w.launch(
        "neg", [view(x, is_mapped=True)], [out]
    ),
    "pageable memory as the GPU sees it": lambda w, x, out: w.launch(
        "neg", [view(w.new(N, "pageable"), is_mapped=True)], [out]
    ),
    "what the GPU sees, on the host": lambda w, x, out: w.launch(
        "neg",
        [view(w.new(N, "pinned"), is_mapped=True)],
        [w.new(N, "pinned")],
        -1,
    ),
    "its own memory as the host's, copied": lambda w, x, out: w.copy(
        view(x, is_mapped=True), w.new(N, "pinned")
    ),
    "more tensors than a kernel takes": lambda w, x, out: w.launch(
        "copy", [*[view(x, shape=(0,))] * 20_000, x], [out]
    ),
    "a dtype of its own": lambda w, x, out: w.launch(
        "neg", [view(x, dtype="object")], [out]
    ),
    "elements over each other": lambda w, x, out: w.launch(
        "neg", [x], [view(out, strides=(0,))]
    ),
    "an operation of its own": lambda w, x, out: w.launch("<b>system", [x], [out]),
    "other shapes": lambda w, x, out: w.launch("neg", [view(x, shape=(3,))], [out]),
    "too few operands": lambda w, x, out: w.launch("add", [x], [out]),
    "no operand at all": lambda w, x, out: w.launch("matmul", [], []),
    "numbers that are none": lambda w, x, out: w.launch(
        "sum", [x], [out], numbers=(float("nan"),)
    ),
    "a product of vectors": lambda w, x, out: w.launch("matmul", [x, x], [out]),
    "a sleep without end": lambda w, x, out: w.launch(
        "sleep", [], [], numbers=(float("inf"),)
    ),
    "a convolution of nothing": lambda w, x, out: w.launch("conv2d", [x, x], [out]),
    "much memory": lambda w, x, out: w.new(1 << 30),
    "memory of less than nothing": lambda w, x, out: w.said.append(
        recorded.Allocate(77, -1, "device", 0)
    ),
    "one number for two tensors": lambda w, x, out: w.said.append(
        recorded.Allocate(x.storage, 4, "device", 0)
    ),
    "a buffer that is released": lambda w, x, out: w.release(x),
    "a stream beyond all": lambda w, x, out: w.launch("neg", [x], [out], 65),
    "a stream below all": lambda w, x, out: w.launch("neg", [x], [out], -2),
    "the GPU's memory on the host": lambda w, x, out: w.launch("neg", [x], [out], -1),
    "the host's memory on the GPU": lambda w, x, out: w.launch(
        "neg", [w.new(N, "pageable")], [out]
    ),
    "a copy within the GPU": lambda w, x, out: w.copy(x, out),
    "a copy that converts": lambda w, x, out: w.copy(
        x, w.new(N, "pinned", dtype="int32")
    ),
    "a graph that is not there": lambda w, x, out: w.replay(3),
    "the end of no capture": lambda w, x, out: w.captured(3),
    "a capture in a capture": lambda w, x, out: list(map(w.capture, range(2))),
    "one call too many": lambda w, x, out: w.call(1),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_no_machine_could_do_is_refused(name: str) -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    FORGED[name](w, w.views["x"], w.views["out"])
    with pytest.raises(ProgramRefused) as refused:
        w.judged({"x": numbers(N)})
    assert "<b>" not in str(refused.value)


def test_a_call_too_few_is_refused() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    with pytest.raises(ProgramRefused):
        w.judged({"x": numbers(N)})


def test_other_buffers_than_the_labs_are_refused() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    x, out = w.views["x"], w.views["out"]
    for forged in (
        {"x": x},
        {"x": x, "out": x},
        {"x": x, "out": view(out, shape=(N - 1,))},
        {"x": x, "out": view(out, offset=1)},
        {"x": x, "out": view(out, dtype="float64")},
    ):
        program = recorded.Program(forged, tuple(w.said))
        with pytest.raises(ProgramRefused):
            judge(program, w.buffers, [{"x": numbers(N)}])


def test_much_work_is_refused_before_it_is_done() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    wide = view(w.views["x"], shape=(6_000, 6_000), strides=(0, 0))
    w.launch("matmul", [wide, wide], [w.new((6_000, 6_000))])
    with pytest.raises(ProgramRefused):
        w.judged({"x": numbers(N)})


def test_replays_that_multiply_are_refused() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.capture(0)
    for _ in range(5_000):
        w.record(1, 1)
    w.captured(0)
    w.call()
    for _ in range(1_000):
        w.replay(0)
    with pytest.raises(ProgramRefused):
        w.judged({"x": numbers(N)})


def test_a_program_can_not_know_the_inputs() -> None:
    """Constants of the inputs that were recorded are other numbers than those here."""
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    known = w.new(N, "pinned")
    w.launch("constant", [], [known], -1, tuple(float(n) for n in numbers(N)))
    w.copy(known, w.views["out"])
    judged = w.judged({"x": numbers(N, 1)})
    assert kinds(judged) == []
    assert not np.array_equal(judged.outputs[0]["out"], numbers(N, 1))


def zeros(w: Writer, *shape: int, dtype: str = "float32") -> View:
    """Many elements of a few bytes."""
    return view(w.new(1, dtype=dtype), shape=shape, strides=(0,) * len(shape))


CONVOLUTION = (1.0, 64.0, 0.0, 0.0, 0.0)
COSTLY: dict[str, Forge] = {
    "images that are nearly all margin": lambda w, x, out: w.launch(
        "conv2d",
        [zeros(w, 1024, 1024, 1, 1), zeros(w, 1, 1024, 1, 1)],
        [w.new((1024, 1, 3, 3))],
        numbers=(64.0, 64.0, 0.0, 0.0, 0.0),
    ),
    "windows over each other": lambda w, x, out: w.launch(
        "conv2d",
        [zeros(w, 1, 1, 1000, 1000), zeros(w, 1, 1, 120, 120)],
        [w.new((1, 1, 1009, 1009))],
        numbers=CONVOLUTION,
    ),
    "windows of a gradient": lambda w, x, out: w.launch(
        "conv2d_weight",
        [zeros(w, 1, 1, 1000, 1000), zeros(w, 1, 1, 1009, 1009)],
        [w.new((1, 1, 120, 120))],
        numbers=CONVOLUTION,
    ),
    "a product of whole numbers": lambda w, x, out: w.launch(
        "matmul",
        [zeros(w, 4000, 4000, dtype="int64")] * 2,
        [w.new((4000, 4000), dtype="int64")],
    ),
    "a slow function of very many": lambda w, x, out: w.launch(
        "topk",
        [zeros(w, 1 << 26, dtype="int8")],
        [w.new(1 << 20, dtype="int8"), w.new(1 << 20, dtype="int64")],
        numbers=(0.0, 1.0),
    ),
}


@pytest.mark.parametrize("name", COSTLY)
def test_what_would_cost_much_is_refused_before_it_is_begun(name: str) -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    COSTLY[name](w, w.views["x"], w.views["out"])
    tracemalloc.start()
    begun_s = time.thread_time()
    with pytest.raises(ProgramRefused, match="than is simulated"):
        w.judged({"x": numbers(N)})
    took_s = time.thread_time() - begun_s
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took_s < 2
    assert most_bytes < 512 << 20


def test_memory_that_runs_out_ends_the_program_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_out(*_: object) -> None:
        raise MemoryError

    operation = replace(OPERATIONS["copy"], function=run_out)
    monkeypatch.setitem(OPERATIONS, "copy", operation)
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    line = w.launch("copy", [w.views["x"]], [w.views["out"]])
    with pytest.raises(ProgramRefused, match=f"Line {line}: copy takes more memory"):
        w.judged({"x": numbers(N)})


#: ATen calls that no recording has: operation, arguments, and what is read
HOSTILE = {
    "a view": ("aten.as_strided.default", '[[{"r": 0}, [100], [1]], {}]', "x"),
    "a view by its own name": ("aten.view.default", '[[{"r": 0}, [64]], {}]', "x"),
    "no bounds are looked at": (
        "aten._unsafe_index.Tensor",
        '[[{"r": 0}, [{"r": 1}]], {}]',
        "xi",
    ),
    "numbers beyond": (
        "aten.index_select.default",
        '[[{"r": 0}, 0, {"r": 1}], {}]',
        "xi",
    ),
    "numbers beyond, gathered": (
        "aten.gather.default",
        '[[{"r": 0}, 0, {"r": 1}], {}]',
        "xi",
    ),
    "a huge range": ("aten.arange.default", "[[1000000000000], {}]", ""),
    "a huge result": ("aten.repeat.default", '[[{"r": 0}, [1000000000]], {}]', "x"),
    "another shape": ("aten.cat.default", '[[[{"r": 0}, {"r": 0}]], {}]', "x"),
    "another dtype": ("aten.gt.Scalar", '[[{"r": 0}, 0], {}]', "x"),
    "nonsense": ("aten.mul.Tensor", '[[{"r": 7}, "x"], {}]', "x"),
    "places below": ("aten.mul.Tensor", '[[{"r": -1}, 2], {}]', "x"),
    "lists in lists": ("aten.cat.default", "[[[[[[[[[1]]]]]]]], {}]", "x"),
    "very deep": ("aten.cat.default", "[" * 100_000, "x"),
    "no JSON": ("aten.mul.Tensor", "{", "x"),
    "no lists": ("aten.mul.Tensor", "[1, 2]", "x"),
    "another library": ("prims.mul.default", '[[{"r": 0}, 2], {}]', "x"),
    "no overload": ("aten.mul", '[[{"r": 0}, 2], {}]', "x"),
    "an attribute": ("aten.mul.__class__", '[[{"r": 0}, 2], {}]', "x"),
    "a file": ("aten.from_file.default", '[["/etc/passwd"], {}]', ""),
    "a storage": ("aten.set_.source_Tensor", '[[{"w": 0}, {"r": 0}], {}]', "x"),
    "made to fit": ("aten.resize_.default", '[[{"w": 0}, [1000000]], {}]', ""),
    "an out that is made to fit": (
        "aten.cat.out",
        '[[[{"r": 0}, {"r": 0}]], {"out": {"w": 0}}]',
        "x",
    ),
    "as many as the numbers say": ("aten.nonzero.default", '[[{"r": 0}], {}]', "x"),
    "by another device": ("aten.arange.default", '[[64], {"device": "cuda"}]', ""),
    "a pointer for a constant": ("aten.mul.Tensor", '[[{"c": "ops"}, 2], {}]', "x"),
    "gradients of rows that are not there": (
        "aten.embedding_dense_backward.default",
        '[[{"r": 0}, {"r": 1}, 64, -1, false], {}]',
        "xi",
    ),
    "pixels that are not there": (
        "aten.max_pool2d_with_indices_backward.default",
        '[[{"r": 0}, {"r": 0}, [1, 1], [1, 1], [0, 0], [1, 1], false, {"r": 1}], {}]',
        "xi",
    ),
    "groups that are not there": (
        "aten.native_group_norm.default",
        '[[{"r": 0}, null, null, 1000, 1000, 1000, 1, 0.1], {}]',
        "x",
    ),
    "fused, with lists of other lengths": (
        "aten._fused_sgd_.default",
        '[[[{"w": 0}], [{"r": 0}, {"r": 0}], []], {"weight_decay": 0, "momentum": 0,'
        ' "lr": 0, "dampening": 0, "nesterov": false, "maximize": false,'
        ' "is_first_step": false}]',
        "x",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_aten_calls_that_no_recording_has_are_refused(name: str) -> None:
    operation, call, reads = HOSTILE[name]
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    index = w.new(N, dtype="int64")
    w.launch("fill", [], [index], numbers=(99.0,))
    views = {"x": w.views["x"], "i": index}
    w.launch(operation, [views[read] for read in reads], [w.views["out"]], call=call)
    with pytest.raises(ProgramRefused):
        w.judged({"x": numbers(N)})


def test_a_huge_sum_of_broadcast_views_is_refused_before_there_is_memory() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    x = w.views["x"]
    wide = view(x, shape=(4000, 1, 1, 4), strides=(0, 0, 0, 1))
    high = view(x, shape=(1, 4000, 4000, 4), strides=(0, 0, 0, 1))
    for writes in ([w.views["out"]], [w.new((4000, 4))]):
        w.launch("add", [wide, high], writes)
        begun_s = time.thread_time()
        with pytest.raises(ProgramRefused):
            w.judged({"x": numbers(N)})
        assert time.thread_time() - begun_s < 2
