"""What the host takes: operators, launches, and recording."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns

import numpy as np
import torch

from warpbook_profiler.capture.gpu_work import compiled, graph_of
from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.capture.work_times import Call
from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.model.limits import Point

_TURNS, _CALLS = 13, 200


def host_curves() -> tuple[dict[str, tuple[Point, ...]], list[str]]:
    """Measure each; say in words what could not be measured."""
    curves: dict[str, tuple[Point, ...]] = {}
    left_out = []
    for names, measure in _MEASURES.items():
        try:
            points = measure()
        except (RuntimeError, ImportError, TraceError) as error:
            said = str(error).strip().partition("\n")[0]
            left_out.append(f"{', '.join(names)}: {said}")
        else:
            curves |= zip(names, points, strict=True)
    return curves, left_out


def _loops() -> list[tuple[Point, ...]]:
    x = torch.randn(256, device="cuda")
    weight = torch.randn(256, device="cuda", requires_grad=True)
    with torch.no_grad():
        launch, operator = _each(lambda: torch.cuda._sleep(1)), _each(lambda: x * x)
        synchronize = _each(torch.cuda.synchronize)

        def round_trip() -> None:
            x.add_(1)
            torch.cuda.synchronize()

        trip = _each(round_trip)
    autograd = _each(lambda: weight * x)
    return [(launch,), (operator,), (autograd,), (synchronize,), (trip,)]


def _autocast() -> list[tuple[Point, ...]]:
    """Measure the casts of a product: of both operands, or of one, the other kept."""
    x = torch.randn(64, 64, device="cuda")
    weight = torch.nn.Parameter(torch.randn(64, 64, device="cuda"))
    both, one = (lambda: torch.mm(x, x)), (lambda: torch.mm(x, weight))
    plain = _each(both), _each(one)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        cast = _each(both), _each(one)
    ends = [
        max(mine.usual_ns - theirs.usual_ns, 1.0)
        for mine, theirs in zip(cast, plain, strict=True)
    ]
    return [(Point(1.0, min(ends), statistics.mean(ends), max(ends)),)]


def _compiled_call() -> list[tuple[Point, ...]]:
    a, b = (torch.randn(1024, device="cuda") for _ in range(2))
    chain = compiled()
    for _ in range(_CALLS):
        chain(a, b)  # while what compiled it still ends
    return [(_each(lambda: chain(a, b)),)]


def _graph_launch() -> list[tuple[Point, ...]]:
    took_ns = []
    for kernels in (10, 100):
        graph = graph_of(kernels)
        graph.replay()
        for _ in range(3 * _TURNS):
            torch.cuda.synchronize()
            begun_ns = perf_counter_ns()
            graph.replay()
            took_ns.append(float(perf_counter_ns() - begun_ns))
    low, usual, high = np.quantile(took_ns, (0.02, 0.5, 0.95)).tolist()
    return [(Point(1.0, low, usual, high),)]


def _recorded() -> list[tuple[Point, ...]]:
    """Measure what a microsecond of the host's takes while the profiler records it."""
    x = torch.randn(64, 64, device="cuda")
    weight = torch.randn(64, 64, device="cuda", requires_grad=True)
    loops: tuple[Call, ...] = (
        lambda: x.add_(1),
        lambda: x[0].view(8, 8).t().mul_(1),
        lambda: weight * x,
        lambda: torch.nn.functional.linear(x, weight),
        lambda: (x * 2 + x).sum(),
        lambda: (weight * x).sum().backward(),
    )
    bare = [_each(call).usual_ns for call in loops]
    with _recording():
        recorded = [_each(call).usual_ns for call in loops]
    ratios = [now / before for now, before in zip(recorded, bare, strict=True)]
    low, usual, high = min(ratios), statistics.median(ratios), max(ratios)
    return [(Point(1e3, 1e3 * low, 1e3 * usual, 1e3 * high),)]


@contextmanager
def _recording() -> Iterator[None]:
    capture = Capture()
    capture.start()
    try:
        yield
    finally:
        capture.discard()


_MEASURES: dict[tuple[str, ...], Callable[[], list[tuple[Point, ...]]]] = {
    ("launch", "operator", "autograd", "synchronize", "round_trip"): _loops,
    ("autocast",): _autocast,
    ("graph_launch",): _graph_launch,
    ("compiled_call",): _compiled_call,
    # a process that has recorded once may be slower from then on
    ("recorded",): _recorded,
}


def _each(call: Call) -> Point:
    for _ in range(20):
        call()
    took_ns = []
    for _ in range(_TURNS):
        torch.cuda.synchronize()
        begun_ns = perf_counter_ns()
        for _ in range(_CALLS):
            call()
        took_ns.append((perf_counter_ns() - begun_ns) / _CALLS)
    torch.cuda.synchronize()
    return _point(took_ns)


def _point(took_ns: list[float], amount: float = 1.0) -> Point:
    """Give the fastest, the middle, and all but the slowest, which was disturbed."""
    took_ns = sorted(took_ns)
    return Point(amount, took_ns[0], statistics.median(took_ns), took_ns[-2])
