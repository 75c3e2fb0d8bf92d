"""What changed between two profiles of the same code, the largest change first.

Kernels and operators are aligned by name, and GPU work also by the path of operators
that launched it. Where both were repeated, times without the profiler are compared, and
a permutation test of their ranks says how often chance alone would give as much.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from warpbook_monitors import units
from warpbook_monitors.history.span import DeviceSpan
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.report_view import ReportTable
from warpbook_profiler.model.spread import shift

#: fewer runs of each can't show that a change is more than chance
LEAST_RUNS = 4
#: a change that chance gives more often than this is not believed
_CHANCE = 0.05
#: what differs by less is called the same
_SAME_SHARE = 0.05
#: the part of a change that one name explains at least, to be called the most of it
_MOST_SHARE = 0.5
#: a clock that differs by more is told
_CLOCK_SHARE = 0.03
_PERMUTATIONS = 4000
#: of each table in a comparison that goes with a report
_MOST_ROWS = 20
_REST = re.compile(r"^\([\d,]+ others\)$")


class Pair(Struct, frozen=True):
    """One figure of both profiles; None where one does not have it."""

    name: str
    before_ns: int | None
    after_ns: int | None
    before_calls: int | None = None
    after_calls: int | None = None

    @property
    def change_ns(self) -> int:
        """Give how much more it takes now; what is not there takes nothing."""
        return (self.after_ns or 0) - (self.before_ns or 0)


class Clocks(Struct, frozen=True):
    """What the server's history says of a GPU while a code ran."""

    sm_clock_mhz: float | None
    temperature_celsius: float | None
    #: what slowed its clocks
    slowed_by: tuple[str, ...]
    #: by heat or the power supply; the power limit is no fault
    is_throttled: bool


class Comparison(Struct, frozen=True):
    """Two profiles of the same code, the earlier one first."""

    sentence: str
    #: nothing that is more than chance
    is_same: bool
    #: is it chance, in words; clocks and temperature
    notes: tuple[str, ...]
    #: the GPU itself ran faster or slower, so the code need not have changed
    cautions: tuple[str, ...]
    #: how often chance alone gives as large a difference; None without repeats
    chance: float | None
    #: with the GPU's work; without the profiler, where both were repeated
    wall: Pair
    #: busy time and the causes of idle time
    causes: tuple[Pair, ...]
    paths: tuple[Pair, ...]
    kernels: tuple[Pair, ...]
    operators: tuple[Pair, ...]
    clocks: tuple[Clocks | None, Clocks | None]
    #: as they are shown, which the server makes; empty on the way there
    tables: tuple[ReportTable, ...] = ()


def compare(
    before: CellProfile,
    after: CellProfile,
    clocks: tuple[Clocks | None, Clocks | None] = (None, None),
) -> Comparison:
    """Compare two profiles.

    Args:
        before: the earlier one.
        after: the later one.
        clocks: of the time of each, where they are known.
    """
    earlier, later = _bare(before), _bare(after)
    wall = _profiled(before, after)
    if earlier and later:
        medians = round(statistics.median(earlier)), round(statistics.median(later))
        wall = Pair("Time without the profiler", *medians)
    chance = None
    if min(len(earlier), len(later)) >= LEAST_RUNS:
        chance = _chance(earlier, later)
    causes = _sorted(_causes(before, after))
    idle = [cause for cause in causes if cause.name != _BUSY]
    paths = _aligned(
        ((row.path, row.time_ns, row.calls) for row in before.paths),
        ((row.path, row.time_ns, row.calls) for row in after.paths),
    )
    operators = _aligned(
        ((row.name, row.self_ns, row.calls) for row in before.operators),
        ((row.name, row.self_ns, row.calls) for row in after.operators),
    )
    # without a GPU the operators did the work
    parts = (*idle, *paths) if causes else operators
    is_same = _is_same(wall, chance)
    return Comparison(
        sentence=_untold(wall, chance is None or _is_close(earlier, later))
        if is_same
        else _sentence(wall, parts),
        is_same=is_same,
        notes=tuple(_notes(chance, (len(earlier), len(later)), clocks)),
        cautions=tuple(_cautions(wall, clocks)),
        chance=chance,
        wall=wall,
        causes=causes,
        paths=paths,
        kernels=_aligned(
            ((row.name, row.time_ns, row.calls) for row in before.kernels),
            ((row.name, row.time_ns, row.calls) for row in after.kernels),
        ),
        operators=operators,
        clocks=clocks,
    )


def shortened(comparison: Comparison) -> Comparison:
    """Keep what a report can carry: the largest changes."""
    return msgspec.structs.replace(
        comparison,
        paths=comparison.paths[:_MOST_ROWS],
        kernels=comparison.kernels[:_MOST_ROWS],
        operators=comparison.operators[:_MOST_ROWS],
    )


def clocks_of(spans: Iterable[DeviceSpan], devices: Sequence[str]) -> Clocks | None:
    """Find the slowest of some GPUs in a span; None where nothing was read of them."""
    chosen = [span for span in spans if span.device in devices]
    mhz = _means(chosen, "sm_clock_mhz")
    celsius = _means(chosen, "temperature_celsius")
    if not mhz and not celsius:
        return None
    reasons = [condition for span in chosen for condition in span.conditions]
    return Clocks(
        min(mhz, default=None),
        max(celsius, default=None),
        tuple(sorted({reason.name for reason in reasons})),
        any(reason.severity != "normal" for reason in reasons),
    )


def _means(spans: Iterable[DeviceSpan], metric: str) -> list[float]:
    means = [span.metrics[metric].mean for span in spans if metric in span.metrics]
    return [mean for mean in means if mean is not None]


def _bare(profile: CellProfile) -> tuple[int, ...]:
    return profile.repeats.bare_ns if profile.repeats else ()


def _profiled(before: CellProfile, after: CellProfile) -> Pair:
    """Compare the profiled runs; what the profiler took of them is nobody's change."""
    was, now = before.metrics, after.metrics
    if was is None or now is None:
        return Pair("Time with the profiler", before.wall_ns, after.wall_ns)
    return Pair(
        "Time, less the profiler's own",
        was.window_ns - was.idle.profiler_ns,
        now.window_ns - now.idle.profiler_ns,
    )


def _chance(before: Sequence[float], after: Sequence[float]) -> float:
    """Shuffle who is who, and count how often the mean ranks are as far apart."""
    # the magics need the records above, and must not wait for NumPy
    import numpy as np

    times = np.array([*before, *after])
    _, group, counts = np.unique(times, return_inverse=True, return_counts=True)
    # equal times share the mean of their ranks
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[group].astype(np.float32)
    cut = len(before)

    # the same two profiles always give the same answer
    generator = np.random.default_rng(0)
    orders = generator.permuted(np.tile(ranks, (_PERMUTATIONS, 1)), axis=1)
    # the first row is what was seen
    orders = np.concatenate([ranks[None], orders])
    apart = np.abs(orders[:, :cut].mean(1) - orders[:, cut:].mean(1))
    as_far = int((apart[1:] >= apart[0] - 1e-3).sum())
    return (as_far + 1) / (_PERMUTATIONS + 1)


_BUSY = "GPU busy"
_IDLE = {
    "GPU idle: after a host synchronization": "host_synchronize_ns",
    "GPU idle: the host launched": "host_launching_ns",
    "GPU idle: the host was in operators": "host_operator_ns",
    "GPU idle: the host was in CUDA calls": "host_api_ns",
    "GPU idle: the host was in Python": "host_python_ns",
    "GPU idle: between kernels": "kernel_wait_ns",
}


def _causes(before: CellProfile, after: CellProfile) -> Iterator[Pair]:
    was, now = before.metrics, after.metrics
    if was is None or now is None:
        return
    yield Pair(_BUSY, was.gpu_busy_ns, now.gpu_busy_ns)
    for name, field in _IDLE.items():
        was_ns, now_ns = getattr(was.idle, field), getattr(now.idle, field)
        if was_ns or now_ns:
            yield Pair(name, was_ns, now_ns)
    was_ns = was.idle.other_ns - was.idle.profiler_ns
    now_ns = now.idle.other_ns - now.idle.profiler_ns
    if was_ns or now_ns:
        yield Pair("GPU idle: other", was_ns, now_ns)


_Rows = Iterable[tuple[str, int, int]]


def _aligned(before_rows: _Rows, after_rows: _Rows) -> tuple[Pair, ...]:
    nothing = (None, None)
    before, after = _by_name(before_rows), _by_name(after_rows)
    changes = []
    for name in {**before, **after}:
        was, now = before.get(name, nothing), after.get(name, nothing)
        changes.append(Pair(name, was[0], now[0], was[1], now[1]))
    return _sorted(changes)


def _by_name(rows: _Rows) -> dict[str, tuple[int, int]]:
    # the rest that a profile adds up is so many in one and so many in the other
    return {
        _REST.sub("(others)", name): (time_ns, calls) for name, time_ns, calls in rows
    }


def _sorted(changes: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(sorted(changes, key=lambda change: -abs(change.change_ns)))


def _is_same(wall: Pair, chance: float | None) -> bool:
    if chance is not None:
        return chance >= _CHANCE
    return abs(wall.change_ns) <= _SAME_SHARE * (wall.before_ns or 0)


def _is_close(before: Sequence[float], after: Sequence[float]) -> bool:
    """Tell whether the difference is small even at the ends of its interval.

    The interval is that of Hodges and Lehmann, at 95 %: it fits the test by ranks.
    """
    apart = shift(before, after)
    furthest = max(-apart.low, apart.high)
    return bool(furthest <= _SAME_SHARE * statistics.median(before))


def _times(wall: Pair) -> str:
    was, now = wall.before_ns or 0, wall.after_ns or 0
    return f"{units.duration_ns(now)} instead of {units.duration_ns(was)}"


def _untold(wall: Pair, is_close: bool) -> str:
    """Say that no change was shown, which is not that there is none."""
    said = "About the same" if is_close else "Can't be told from chance"
    return f"{said}: {_times(wall)}."


def _sentence(wall: Pair, parts: Sequence[Pair]) -> str:
    was, now = wall.before_ns or 0, wall.after_ns or 0
    share = f"{units.share(abs(now - was) / was)} " if was else ""
    word = "more" if now > was else "less"
    alike = [part for part in parts if part.change_ns * wall.change_ns > 0]
    most = max(alike, key=lambda row: abs(row.change_ns), default=None)
    where = ""
    # small changes of parts explain nothing of a large one
    if most is not None and abs(most.change_ns) >= _MOST_SHARE * abs(wall.change_ns):
        where = f" Most of it: {most.name} ({signed(most.change_ns)})."
    return f"{share}{word} time: {_times(wall)}.{where}"


def signed(nanoseconds: float) -> str:
    """Write a change of time."""
    sign = "-" if nanoseconds < 0 else "+"
    return f"{sign}{units.duration_ns(abs(nanoseconds))}"


def _notes(
    chance: float | None,
    runs: tuple[int, int],
    clocks: tuple[Clocks | None, Clocks | None],
) -> Iterator[str]:
    if chance is not None:
        verdict = "is more than chance" if chance < _CHANCE else "may be chance"
        yield (
            f"{runs[0]:,} runs against {runs[1]:,}: the difference {verdict} (chance "
            f"alone gives as much in {units.share(chance)} of cases)."
        )
    else:
        yield (
            "Too few runs to tell a change from chance: repeat both with -r "
            f"{LEAST_RUNS + 1}."
        )
    was, now = clocks
    if was is None or now is None:
        yield (
            "Clocks and temperature of both runs are not known: the server read the "
            "GPUs in neither, or in one only."
        )
        return
    parts = []
    if was.temperature_celsius is not None and now.temperature_celsius is not None:
        parts.append(f"{now.temperature_celsius:.0f} °C, {was.temperature_celsius:.0f}")
    if was.sm_clock_mhz and now.sm_clock_mhz:
        parts.append(f"SM clock {now.sm_clock_mhz:,.0f} MHz, {was.sm_clock_mhz:,.0f}")
    slowed = ", ".join(now.slowed_by) or "nothing"
    slowed_before = ", ".join(was.slowed_by) or "nothing"
    yield (
        f"Now and before: {'; '.join(parts)}; slowed by {slowed}, by {slowed_before}."
    )


def _cautions(wall: Pair, clocks: tuple[Clocks | None, Clocks | None]) -> Iterator[str]:
    was, now = clocks
    if was is None or now is None:
        return
    share = 0.0
    if was.sm_clock_mhz and now.sm_clock_mhz:
        share = now.sm_clock_mhz / was.sm_clock_mhz - 1
    fell = share < -_CLOCK_SHARE or now.is_throttled > was.is_throttled
    rose = share > _CLOCK_SHARE or was.is_throttled > now.is_throttled
    if wall.change_ns > 0 and fell:
        yield f"The GPU itself ran slower ({_clock(was, now)}): the code need not have."
    elif wall.change_ns < 0 and rose:
        yield f"The GPU itself ran faster ({_clock(was, now)}): the code need not have."


def _clock(was: Clocks, now: Clocks) -> str:
    if now.is_throttled != was.is_throttled:
        slow = now if now.is_throttled else was
        return ", ".join(slow.slowed_by)
    return f"SM clock {now.sm_clock_mhz:,.0f} instead of {was.sm_clock_mhz:,.0f} MHz"
