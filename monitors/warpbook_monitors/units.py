"""Figures in the words a person reads: three digits and a unit."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: a percentage from which on it is written without a decimal
_WHOLE = 9.95


def duration(milliseconds: float) -> str:
    """Write a time with the unit that fits it; nothing is "0 ms"."""
    if not milliseconds:
        return "0 ms"
    if not math.isfinite(milliseconds):
        return f"{milliseconds} ms"
    # rounded first: 999.9 µs are 1.00 ms
    for unit, size, limit in (("µs", 1e-3, 0.9995), ("ms", 1.0, 999.5)):
        if milliseconds < limit:
            return f"{_digits(milliseconds / size)} {unit}"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{_digits(seconds)} s"
    if seconds < 3599.5:
        return "{} min {:02} s".format(*divmod(round(seconds), 60))
    if seconds < 86_370:
        return "{} h {:02} min".format(*divmod(round(seconds / 60), 60))
    return "{:,} d {} h".format(*divmod(round(seconds / 3600), 24))


def duration_ns(nanoseconds: float) -> str:
    """Write a time that is in ns, as the times of traces and profiles are."""
    return duration(nanoseconds / 1e6)


def duration_range_ns(low_ns: float, high_ns: float) -> str:
    """Write a range of times, the unit once where both have it: "1.2 to 3.4 ms"."""
    low, high = duration_ns(low_ns), duration_ns(high_ns)
    if low == high:
        return low
    number, _, unit = low.rpartition(" ")
    is_same = " " not in number and high.count(" ") == 1 and high.endswith(f" {unit}")
    return f"{number if is_same else low} to {high}"


def duration_about(seconds: float) -> str:
    """Write a long time in one unit, as one says it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 100 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"


def size(size_bytes: float, of_bytes: float | None = None) -> str:
    """Write a size with the unit that fits it, and of how much it is: "3 / 140 GiB"."""
    if of_bytes is not None:
        part, whole = size(size_bytes), size(of_bytes)
        unit = whole.rpartition(" ")[2]
        return f"{part.removesuffix(' ' + unit)} / {whole}"
    if size_bytes < 1024:
        return f"{size_bytes:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        size_bytes /= 1024
        if size_bytes < 1024:
            return f"{_digits(size_bytes)} {unit}"
    return f"{_digits(size_bytes / 1024)} TiB"


def rate(per_second: float, unit: str) -> str:
    """Write a rate of what comes in billions: "815 TFLOP/s", "55.5 GB/s"."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if per_second >= size:
            return f"{_digits(per_second / size)} {prefix}{unit}/s"
    return f"< 1 M{unit}/s"


def energy(joules: float) -> str:
    """Write an energy; a small one with a digit more, so that it is not "0 J"."""
    if 0 < joules < 0.05:
        return "< 0.1 J"
    return f"{joules:.1f} J" if 0 < joules < 9.95 else f"{joules:,.0f} J"


def share(ratio: float) -> str:
    percent = 100 * ratio
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < _WHOLE else f"{percent:.0f} %"


def parts_of_one(ratios: Sequence[float]) -> list[float]:
    """Round parts of one whole, in their order, so that what is written adds up.

    `share` writes them all; those that it writes without a decimal are rounded by the
    largest remainder: 43.5, 29.5 and 27 % are 44, 29 and 27.
    """
    rest = max(0.0, 1 - sum(ratios))
    percents = [100 * ratio for ratio in (*ratios, rest)]
    rounded = [
        # 28.999… is 29
        max(10, math.floor(percent + 1e-6)) if percent >= _WHOLE else round(percent, 1)
        for percent in percents
    ]
    missing = round(sum(percents) - sum(rounded))
    whole = [at for at, percent in enumerate(percents) if percent >= _WHOLE]
    whole.sort(key=lambda at: rounded[at] - percents[at])
    for at in whole[: max(0, missing)]:
        rounded[at] += 1
    # less than a tenth is not nothing
    return [
        ratio if 100 * ratio < 0.1 else percent / 100
        for ratio, percent in zip(ratios, rounded, strict=False)
    ]


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def counted(count: int, one: str, many: str = "") -> str:
    """Write how many there are, "1 step" or "3 steps"."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
