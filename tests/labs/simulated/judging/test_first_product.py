"""The first matrix product must not be in a capture: cuBLAS makes its handle there."""

from __future__ import annotations

import pytest

from tests.labs.simulated.judging.writing import Writer, kinds, numbers

N = 4


def judged_words(w: Writer) -> tuple[list[str], str]:
    judged = w.judged({"x": numbers(N)})
    return kinds(judged), " ".join(finding.message for finding in judged.findings)


def product(w: Writer, stream: int = 0) -> None:
    left, right = w.new((2, 2), stream=stream), w.new((2, 2), stream=stream)
    for operand in (left, right):
        w.launch("fill", [], [operand], stream=stream, numbers=(1.0,))
    w.launch("matmul", [left, right], [w.new((2, 2), stream=stream)], stream=stream)


def writer(is_warm: bool, stream: int = 0) -> Writer:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call(0)
    if is_warm:
        product(w, stream)
    w.launch("neg", [w.views["x"]], [w.views["out"]])
    return w


def test_a_product_in_a_capture_is_refused_without_a_warm_up() -> None:
    w = writer(is_warm=False)
    w.capture(0)
    product(w, stream=1)
    w.captured(0)
    kinds_found, words = judged_words(w)
    assert kinds_found == ["capture"]
    assert "CUBLAS_STATUS_NOT_INITIALIZED" in words and "side stream" in words


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_one_product_before_on_any_stream_is_enough(stream: int) -> None:
    w = writer(is_warm=True, stream=stream)
    w.capture(0)
    product(w, stream=1)
    w.captured(0)
    assert judged_words(w) == ([], "")


def test_what_needs_no_cublas_is_captured_at_once() -> None:
    w = writer(is_warm=False)
    w.capture(0)
    w.launch("neg", [w.views["x"]], [w.new(N, stream=1)], stream=1)
    w.captured(0)
    assert judged_words(w) == ([], "")


def test_it_is_told_once() -> None:
    w = writer(is_warm=False)
    w.capture(0)
    product(w, stream=1)
    product(w, stream=1)
    w.captured(0)
    assert judged_words(w)[0] == ["capture"]
