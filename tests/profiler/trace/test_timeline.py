"""A timeline's answers, held against sums over all events one by one."""

import json
import random

import numpy as np
import pytest

from tests.profiler.trace.recorded import NAMES, columns, run_of
from tests.profiler.trace.simulated import Program
from warpbook_profiler.events.columns import Category
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.files.file_profile import read_profile
from warpbook_profiler.timeline.timeline import MAX_ROWS, Timeline
from warpbook_profiler.timeline.timeline_body import pack, unpack
from warpbook_profiler.timeline.timeline_export import to_chrome_trace


def some_events(seed: int, count: int, span_ns: int):
    """Events on streams that overlap, nested operators, and empty ones."""
    choose = random.Random(seed)
    # functions are in the flame graph, and what a wait is for belongs to its call
    elsewhere = (Category.PYTHON, Category.SYNC)
    categories = [kind for kind in Category if kind not in elsewhere]
    events = []
    for _ in range(count):
        category = choose.choice(categories)
        on_gpu = category in (Category.KERNEL, Category.COPY, Category.MEMSET)
        events.append(
            (
                category,
                choose.randrange(2) if on_gpu else -1,
                choose.choice([7, 20]) if on_gpu else choose.choice([-5, 4242, 2**45]),
                choose.randrange(len(NAMES)),
                choose.randrange(span_ns),
                choose.choice([0, 1, choose.randrange(span_ns // 20)]),
            )
        )
    return events


def timeline(events, span_ns: int) -> Timeline:
    return Timeline(unpack(pack(columns(events), run_of(span_ns))))


def all_events(line: Timeline):
    """Every event of the rows: row, name, begin and end."""
    return [
        (number, line.names[name], begin, end)
        for number, row in enumerate(line.columns)
        for name, begin, end in zip(
            row.name.tolist(),
            row.spans.start_ns.tolist(),
            row.spans.end_ns.tolist(),
            strict=True,
        )
    ]


def union_ns(spans) -> int:
    total, until = 0, -(10**18)
    for begin, end in sorted(spans):
        total += max(end - max(begin, until), 0)
        until = max(until, end)
    return total


SPAN_NS = 100_000


@pytest.fixture(scope="module", params=range(3))
def line(request) -> Timeline:
    return timeline(some_events(request.param, 900, SPAN_NS), SPAN_NS)


def test_every_event_has_a_place_and_none_overlaps_on_its_row(line) -> None:
    assert sum(len(row) for row in line.columns) + line.omitted > 700
    for row in line.columns:
        assert (row.spans.start_ns[1:] >= row.spans.end_ns[:-1]).all()
    labels = [row.label for row in line.rows if row.level == 0]
    assert len(labels) == len(set(labels))
    # streams above threads
    kinds = [row.kind for row in line.rows]
    assert "gpu" not in kinds[kinds.index("call") :]


def test_events_are_those_of_the_trace() -> None:
    events = some_events(7, 300, SPAN_NS)
    line = timeline(events, SPAN_NS)
    shown = sorted(
        (name, begin, end - begin) for _, name, begin, end in all_events(line)
    )
    expected = sorted(
        (NAMES[name], begin, length)
        for category, _, _, name, begin, length in events
        if category != Category.OTHER
    )
    assert line.omitted == 0
    assert shown == expected


@pytest.mark.parametrize("seed", range(8))
def test_a_selection_adds_up_exactly(line, seed) -> None:
    choose = random.Random(seed)
    from_ns = choose.randrange(-100, SPAN_NS)
    to_ns = from_ns + choose.choice([1, 500, 20_000, 2 * SPAN_NS])
    events = [
        (row, name, max(begin, from_ns), min(end, to_ns))
        for row, name, begin, end in all_events(line)
        if begin < to_ns and (end > from_ns or begin >= from_ns)
    ]
    statistics = line.statistics(from_ns, to_ns)
    for number, use in enumerate(statistics.rows):
        mine = [(begin, end) for row, _, begin, end in events if row == number]
        check_use(use, mine, from_ns, to_ns)
    for gpu in statistics.gpus:
        rows = [
            number
            for number, row in enumerate(line.rows)
            if row.label.startswith(f"{gpu.label} ")
        ]
        mine = [(begin, end) for row, _, begin, end in events if row in rows]
        check_use(gpu, mine, from_ns, to_ns)
    for kind in {row.kind for row in line.rows}:
        totals: dict[str, list[int]] = {}
        for row, name, begin, end in events:
            if line.rows[row].kind == kind:
                total = totals.setdefault(name, [0, 0])
                total[0] += 1
                total[1] += end - begin
        names = [name for name in statistics.names if name.kind == kind]
        assert {name.name: [name.events, name.time_ns] for name in names} == totals
        times = [name.time_ns for name in names]
        assert times == sorted(times, reverse=True)


def check_use(use, spans, from_ns: int, to_ns: int) -> None:
    assert use.events == len(spans)
    assert use.busy_ns == union_ns(spans)
    # an event of no length breaks a gap of a row in two
    cuts = sorted([(from_ns, from_ns), *spans, (to_ns, to_ns)])
    until, gaps = from_ns, []
    for begin, end in cuts:
        gaps.append((begin - until, until))
        until = max(until, end)
    assert use.gaps == sum(length > 0 for length, _ in gaps)
    longest = max(gaps, key=lambda gap: gap[0])
    assert use.longest_gap_ns == max(longest[0], 0)
    assert use.longest_gap_from_ns == (longest[1] if longest[0] > 0 else None)


LONG_NS = 40_000_000


@pytest.fixture(scope="module")
def dense() -> Timeline:
    """Rows with enough events for levels: even, in bursts, and before the start."""
    choose = random.Random(5)
    events, at = [], -3000
    for number in range(12_000):
        length = choose.randrange(200, 4000)
        events.append((Category.KERNEL, 0, 7, choose.randrange(6), at, length))
        at += length + choose.randrange(0, 50 if number % 3000 < 2900 else 200_000)
    at = 0
    for _ in range(9000):
        length = choose.randrange(0, 300)
        events.append((Category.API, -1, 4242, choose.randrange(6), at, length))
        at += length + choose.randrange(0, 100)
    return timeline(events, LONG_NS)


@pytest.mark.parametrize("steps", [1, 7, 100, 1000])
@pytest.mark.parametrize(
    ("from_ns", "to_ns"),
    [
        (-(10**12), 10**12),
        (-5000, LONG_NS),
        (0, 10_000_000),
        (123_457, 2_345_679),
        (1_000_000, 1_050_000),
        (10**11, 10**12),
    ],
)
def test_merged_bars_add_up_to_their_events(dense, from_ns, to_ns, steps) -> None:
    window = dense.window(from_ns, to_ns, steps, text="MEMCPY")
    assert window.step_ns >= (to_ns - from_ns) / steps
    assert window.step_ns < 2 * max((to_ns - from_ns) / steps, 1)
    for row, bars in zip(dense.columns, window.bars, strict=True):
        events = [
            (begin, end, name)
            for begin, end, name in zip(
                row.spans.start_ns.tolist(),
                row.spans.end_ns.tolist(),
                row.name.tolist(),
                strict=True,
            )
            if begin < to_ns and (end > from_ns or begin >= from_ns)
        ]
        if not bars.is_merged:
            assert len(events) <= steps
            lengths = [end - begin for begin, end, _ in events]
            assert list(bars.starts_ns) == [begin for begin, _, _ in events]
            assert list(bars.durations_ns) == lengths
            assert list(bars.names) == [name for _, _, name in events]
        else:
            assert len(events) > steps
            assert len(bars.starts_ns) <= steps + 1
            check_merged(row, bars, window.step_ns, from_ns, to_ns)
        places = {
            at
            for at, begin in enumerate(bars.starts_ns)
            for a, b, name in events
            if "Memcpy" in window.names.get(name, dense.names[name])
            and overlaps(a, b, begin, begin + max(bars.durations_ns[at], 1))
        }
        inside = {
            at
            for at in bars.found
            if from_ns <= bars.starts_ns[at]
            and bars.starts_ns[at] + bars.durations_ns[at] <= to_ns
        }
        assert inside <= places <= set(bars.found)


def test_a_small_window_takes_no_more_for_what_lasts_far_beyond_it() -> None:
    short = [(Category.KERNEL, 0, 7, 1, 10 * at, 5) for at in range(300)]
    line = timeline([*short, (Category.KERNEL, 0, 7, 2, 3000, 10**13)], 10**13)
    bars = line.window(5, 3005, 100).bars
    assert max(len(row.starts_ns) for row in bars) <= 101
    assert max(sum(row.counts) for row in bars) == 300


def overlaps(begin: int, end: int, from_ns: int, to_ns: int) -> bool:
    return begin < to_ns and (end > from_ns or begin >= from_ns)


def check_merged(row, bars, step_ns: int, from_ns: int, to_ns: int) -> None:
    begins, ends = row.spans.start_ns, row.spans.end_ns
    for at, drawn_ns in enumerate(bars.starts_ns):
        begin_ns = drawn_ns // step_ns * step_ns
        end_ns = begin_ns + step_ns
        if begin_ns < from_ns or end_ns > to_ns:
            continue
        within = np.minimum(ends, end_ns) - np.maximum(begins, begin_ns)
        here = (begins < end_ns) & ((ends > begin_ns) | (begins >= begin_ns))
        assert bars.counts[at] == ((begins >= begin_ns) & (begins < end_ns)).sum()
        # from the first event in the step to the last, and no further
        first_ns = max(begins[here].min(), begin_ns)
        length_ns = max(min(ends[here].max(), end_ns) - first_ns, 1)
        assert (drawn_ns, bars.durations_ns[at]) == (first_ns, length_ns)
        assert bars.busy_ratios[at] == pytest.approx(
            within[here].sum() / length_ns, abs=6e-4
        )
        times = np.bincount(row.name[here], within[here], minlength=6)
        assert times[bars.names[at]] == times.max()


@pytest.mark.parametrize("text", ["gemm", "ATEN::", "a", "nowhere"])
def test_a_search_finds_all_and_steps_through_them_in_order(line, text) -> None:
    matches = sorted(
        {
            (begin, row)
            for row, name, begin, _ in all_events(line)
            if text.lower() in name.lower()
        }
    )
    found_events = line.search(text, -(10**9), -1)
    count = sum(text.lower() in name.lower() for _, name, _, _ in all_events(line))
    assert sum(group.events for group in found_events.found) == count
    assert found_events.previous is None
    passed = []
    while found_events.next is not None:
        event = found_events.next
        assert text.lower() in event.name.lower()
        passed.append((event.start_ns, event.row))
        found_events = line.search(text, event.start_ns, event.row)
        expected = matches[len(passed) - 2] if len(passed) > 1 else None
        previous = found_events.previous
        assert expected == (previous and (previous.start_ns, previous.row))
    assert passed == matches


def test_a_real_trace_becomes_streams_calls_and_operators(tmp_path) -> None:
    path = Program(seed=3, steps=50).write(tmp_path / "trace.json")
    events, run = read_chrome_trace(path)
    line = Timeline(unpack(pack(events, run)))
    assert {row.label for row in line.rows} >= {"Stream 7", "CUDA calls", "Operators"}
    gpu = line.statistics(line.first_ns, line.last_ns).gpus[0]
    assert gpu.label == "GPU 0" and gpu.busy_ns > 0


def test_nothing_recorded_is_an_empty_timeline() -> None:
    nothing = columns([(Category.OTHER, -1, 1, 0, 0, 1)])
    line = Timeline(unpack(pack(nothing, run_of(10))))
    assert line.window(0, 10, 5).bars == ()
    assert line.statistics(0, 10).rows == ()
    assert line.search("x", 0, -1).next is None
    assert json.loads(b"".join(to_chrome_trace(line, "")))["traceEvents"]


def test_more_than_can_be_drawn_is_counted() -> None:
    events = [
        (Category.KERNEL, 0, stream, 0, stream, 5) for stream in range(MAX_ROWS + 9)
    ]
    line = timeline(events, 1000)
    assert len(line.rows) == MAX_ROWS
    assert line.omitted == 9


def test_an_event_without_length_at_the_end_is_drawn_where_it_is() -> None:
    last_ns = 1 << 20
    kernels = [(Category.KERNEL, 0, 7, 0, 100 * at, 90) for at in range(9000)]
    line = timeline([*kernels, (Category.MEMSET, 0, 7, 1, last_ns, 0)], 2 * last_ns)
    (bars,) = line.window(0, 2 * last_ns, 100).bars
    assert bars.starts_ns[-1] == last_ns and sum(bars.counts) == 9001


@pytest.mark.parametrize("described", [1, 2])
def test_a_device_that_is_not_described_ties_with_one_that_is(
    tmp_path, described
) -> None:
    shape = {"grid": [8, 1, 1], "block": [256, 1, 1], "stream": 7}
    shape |= {"registers per thread": 32, "shared memory": 0}
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "gemm",
            "pid": device,
            "tid": 7,
            "ts": 10.0,
            "dur": 5.0,
            "args": {**shape, "device": device, "correlation": device + 1},
        }
        for device in range(2)
    ]
    limits = {"numSms": 100, "warpSize": 32, "maxThreadsPerMultiprocessor": 2048}
    limits |= {"regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 233472}
    gpus = [{"id": device, "name": "GPU", **limits} for device in range(described)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": gpus}))
    (row,) = read_profile(str(path)).profile.kernels
    assert (row.calls, row.grid) == (2, (8, 1, 1))
