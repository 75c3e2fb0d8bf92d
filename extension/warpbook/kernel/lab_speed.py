"""Of a lab's card: how fast the submission was, and what this GPU can reach."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any

from warpbook_monitors import units
from warpbook_monitors.plain_text import bounded

Plain = Mapping[str, Any]
#: what a figure's name ends with, and how it is told
_UNITS: dict[str, Callable[[float], str]] = {
    "_bytes_per_s": lambda value: f"{value / 1e9:,.1f} GB/s",
    "_flops_per_s": lambda value: f"{value / 1e12:,.2f} TFLOP/s",
    "_flops": lambda value: f"{value / 1e12:,.2f} TFLOP/s",
    "_ns": lambda value: units.duration(value / 1e6),
    "_mhz": lambda value: f"{value:,.0f} MHz",
    "_watts": lambda value: f"{value:,.0f} W",
}


def speed_html(device: Plain) -> str:
    """Write speed and the limit card; empty if there is none."""
    speed: Plain | None = device.get("speed")
    limits: Plain | None = device.get("limit_card")
    told = ""
    if speed is not None:
        words = f"Speed: {speed['status']}. {speed['message']}"
        told = f"<h4>{_shown(words, 600)}</h4>{_rows(_figures(speed))}"
        unknown = (speed.get("conditions") or {}).get("unknown") or ()
        told += "".join(f"<p>{_shown(each, 400)}</p>" for each in unknown)
    if limits is not None:
        told += (
            "<details><summary>What this GPU was measured to reach</summary>"
            f"{_rows(_limits(limits))}</details>"
        )
    return told


def _figures(speed: Plain) -> Iterator[tuple[str, str]]:
    sizes: Mapping[str, int] = speed.get("sizes") or {}
    if sizes:
        yield "timed with", ", ".join(f"{name} = {n:,}" for name, n in sizes.items())
    for name, words in (
        ("of_baseline", "times as fast as the baseline"),
        ("of_limit", "of what this GPU was measured to reach"),
    ):
        ratio: Plain | None = speed.get(name)
        if ratio is None:
            continue
        asked = speed.get(f"wanted_{name}")
        wanted = "" if asked is None else f"; {asked:.2f} is asked"
        yield (
            words,
            f"{ratio['median']:.3f} (95 %: {ratio['low']:.3f} to {ratio['high']:.3f}, "
            f"{ratio['pairs']:,} pairs){wanted}",
        )
    for name, words in (
        ("learner_ns", "a call took"),
        ("baseline_ns", "the baseline took"),
        ("limit_ns", "at the limit"),
    ):
        if speed.get(name) is not None:
            yield words, units.duration(speed[name] / 1e6)
    if speed.get("calls"):
        yield "timed calls, all checked", f"{speed['calls']:,}"


def _limits(limits: Plain, before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in limits.items():
        words = (before + name).replace("_", " ")
        if name == "measured_ms":
            yield "measured", time.strftime("%F %H:%M", time.localtime(value / 1e3))
        elif value == "":
            continue
        elif isinstance(value, Mapping):
            yield from _limits(value, f"{name} ")
        elif value is None:
            yield words, "not known"
        elif isinstance(value, bool):
            yield words.removeprefix("has "), "yes" if value else "no"
        elif isinstance(value, (int, float)):
            yield _told(before + name, value)
        else:
            yield words, str(value)


def _told(name: str, value: float) -> tuple[str, str]:
    for end, words in _UNITS.items():
        # of FLOP/s by data type the group's name tells the unit
        if name.endswith(end) or f"{end.strip('_')} " in name:
            return name.removesuffix(end).replace("_", " "), words(value)
    return name.replace("_", " "), f"{value:,.6g}"


def _rows(rows: Iterator[tuple[str, str]]) -> str:
    inner = "".join(
        f"<dt>{_shown(name)}</dt><dd>{_shown(value, 400)}</dd>" for name, value in rows
    )
    return f"<dl>{inner}</dl>"


def _shown(text: object, most: int = 160) -> str:
    return escape(bounded(str(text), most))
