"""Memory that is released while somebody still uses it."""

from __future__ import annotations

from tests.labs.simulated.judging.writing import Writer, kinds, numbers

N = 64


def reused(
    *, tell: bool = False, wait: bool = False, wait_later: bool = False, size: int = N
) -> list[str]:
    """Release a tensor of the default stream that stream 1 still reads."""
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    x, out = w.views["x"], w.views["out"]
    w.call()
    old = w.new(N)
    w.launch("neg", [x], [old])
    w.then(0, 1)
    w.launch("neg", [old], [out], stream=1)
    if tell:
        w.use_on(old, 1)
    if wait:
        w.then(1, 0)
    w.release(old)
    new = w.new(size)
    if wait_later:
        w.then(1, 0)
    w.launch("fill", [], [new], numbers=(1.0,))
    return kinds(w.judged({"x": numbers(N)}))


def test_memory_is_given_out_again_while_another_stream_reads_it() -> None:
    assert reused() == ["released too early"]


def test_record_stream_keeps_it() -> None:
    assert reused(tell=True) == []


def test_waiting_before_it_is_released_or_used_again_is_enough() -> None:
    assert reused(wait=True) == []
    assert reused(wait_later=True) == []


def test_a_larger_tensor_does_not_fit_there() -> None:
    assert reused(size=1 << 16) == []


def test_on_one_stream_nothing_can_go_wrong() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    for _ in range(3):
        old = w.new(N)
        w.launch("neg", [w.views["x"]], [old])
        w.launch("neg", [old], [w.views["out"]])
        w.release(old)
    assert kinds(w.judged({"x": numbers(N)})) == []


def test_the_finding_names_both_lines_and_the_way_out() -> None:
    w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
    w.call()
    old = w.new(N)
    w.launch("neg", [w.views["x"]], [old], stream=0)
    w.then(0, 1)
    used = w.launch("neg", [old], [w.views["out"]], stream=1)
    w.release(old)
    new = w.new(N)
    written = w.launch("fill", [], [new], numbers=(1.0,))
    (finding,) = w.judged({"x": numbers(N)}).findings
    assert finding.line == written
    assert f"line {used}" in finding.message
    assert "record_stream" in finding.message


def test_what_is_held_is_counted_with_what_record_stream_keeps() -> None:
    for tell, expected in ((False, 1), (True, 4)):
        w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
        w.call()
        for _ in range(4):
            old = w.new(1024)
            w.launch("fill", [], [old], stream=0, numbers=(0.0,))
            w.then(0, 1)
            w.launch("neg", [old], [old], stream=1)
            if tell:
                w.use_on(old, 1)
            else:
                w.then(1, 0)
            w.release(old)
        (counts,) = w.judged({"x": numbers(N)}).counts
        assert counts.device_bytes == 4 * 4096
        assert counts.held_bytes == expected * 4096


def test_memory_of_another_stream_is_held_until_its_work_is_done() -> None:
    for waits, expected in ((False, 4), (True, 1)):
        w = Writer(x=(N, "device", "in"), out=(N, "device", "out"))
        w.call()
        for stream in range(4):
            old = w.new(1024, stream=stream)
            w.launch("fill", [], [old], stream=stream, numbers=(0.0,))
            if waits:
                w.synchronize()
            w.release(old)
        (counts,) = w.judged({"x": numbers(N)}).counts
        assert counts.held_bytes == expected * 4096
