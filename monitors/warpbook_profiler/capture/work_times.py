"""One recording of works, and what it says that they take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
import torch
from torch.autograd.profiler import record_function

from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.events.columns import Category, Int64s
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.limits import Point

Call = Callable[[], object]

_SPAN = "warpbook: measured "
_MOST_TURNS, _LEAST_TURNS = 15, 4
_TURNS_S = 0.05
#: what takes longer is left out, so that a small GPU is done in time
_LONGEST_S = 0.15
#: times of amounts that are so near are one point
_NEAR = 1.7


class Work(NamedTuple):
    """Work of one kind and size."""

    curve: str
    #: bytes, FLOPs, or how many
    amount: float
    #: makes its operands, and gives what does it once
    make: Callable[[], Call]
    #: what is measured is the time between its kernels
    is_between: bool = False


def gpu_curves(
    work: Iterable[Work],
) -> tuple[dict[str, tuple[Point, ...]], list[str]]:
    """Do it all within one recording; say in words what could not be done.

    Raises:
        TraceError: nothing could be recorded.
    """
    every, left_out = tuple(work), dict[str, str]()
    precision = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    capture = Capture(shapes=False)
    capture.start()
    for number, one in enumerate(every):
        try:
            _repeat(one.make(), f"{_SPAN}{number}")
        except (RuntimeError, ImportError) as error:
            # this torch has no such kernel for this GPU, or it is out of memory
            said = str(error).strip().partition("\n")[0]
            left_out[one.curve] = f"{one.curve}: {said}"
    torch.set_float32_matmul_precision(precision[0])
    torch.backends.cudnn.allow_tf32 = precision[1]
    times = _times(Trace(*capture.stop()), every)
    taken: dict[str, list[tuple[float, list[float]]]] = defaultdict(list)
    for one, several in zip(every, times, strict=True):
        if several:
            taken[one.curve].append((one.amount, several))
    return {name: _curve(points) for name, points in taken.items()}, list(
        left_out.values()
    )


def _repeat(call: Call, name: str) -> None:
    for _ in range(2):
        call()  # sets up what is set up once
    torch.cuda.synchronize()
    begun_s = perf_counter()
    call()
    torch.cuda.synchronize()
    took_s = perf_counter() - begun_s
    if took_s > _LONGEST_S:
        return
    for _ in range(min(_MOST_TURNS, max(_LEAST_TURNS, round(_TURNS_S / took_s)))):
        with record_function(name):
            call()
    torch.cuda.synchronize()


def _times(trace: Trace, work: Sequence[Work]) -> list[list[float]]:
    """Give what each turn of each work took on the GPU."""
    events, launch = trace.events, trace.calls.launch
    number_of = np.array(
        [
            int(name.removeprefix(_SPAN)) if name.startswith(_SPAN) else -1
            for name in events.names
        ]
    )[events.name]
    spans = events.where((number_of >= 0) & ~events.is_in(Category.GPU_ANNOTATION))
    number_of = number_of[(number_of >= 0) & ~events.is_in(Category.GPU_ANNOTATION)]
    at_ns = np.append(trace.calls.api.start_ns, 0)[launch]
    place = np.searchsorted(spans.start_ns, at_ns, side="right") - 1
    inside = (place >= 0) & (launch >= 0) & (at_ns < spans.end_ns[place])
    times: list[list[float]] = [[] for _ in work]
    for turn in np.unique(place[inside]).tolist():
        events_of = np.flatnonzero(inside & (place == turn))
        one = work[number_of[turn]]
        times[number_of[turn]] += _of_turn(trace, events_of, one.is_between)
    return times


def _of_turn(trace: Trace, events: Int64s, is_between: bool) -> list[float]:
    gpu = trace.on_gpu
    if not is_between:
        return [float(gpu.duration_ns[events].sum())]
    gaps = gpu.start_ns[events[1:]] - gpu.end_ns[events[:-1]]
    # before the first of them the queue may have been empty
    return [float(max(gap, 1)) for gap in gaps[len(gaps) // 4 :].tolist()]


def _curve(taken: list[tuple[float, list[float]]]) -> tuple[Point, ...]:
    """Make one point of what is near, by the rates that were reached."""
    points: list[Point] = []
    group: list[tuple[float, list[float]]] = []
    for amount, times in [*sorted(taken, key=lambda one: one[0]), (np.inf, [])]:
        if group and amount > _NEAR * group[0][0]:
            middle = float(np.exp(np.mean(np.log([size for size, _ in group]))))
            each = [
                time_ns / size * middle
                for size, several in group
                for time_ns in several
            ]
            low, usual, high = np.quantile(each, (0.02, 0.5, 0.95)).tolist()
            points.append(Point(middle, max(low, 1.0), max(usual, 1.0), max(high, 1.0)))
            group = []
        group.append((amount, times))
    return tuple(points)
