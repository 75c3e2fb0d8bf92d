"""The roofline and memory over time as inline SVG: no script, nothing fetched.

Colours are those of any theme: what is not a colour of its own is the text's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from warpbook.colours import DTYPES, PLAIN, SERIES
from warpbook_monitors import units
from warpbook_profiler.model.ceilings import DTYPE_LABELS
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.picture_words import (
    allocator_words,
    basis_words,
    peak_words,
)
from warpbook_profiler.model.pictures import MemoryCurve, Roof, RooflinePoint

WIDTH, _HEIGHT = 640, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 12, 34
#: of memory over time: what is between is the most of each step
_STEPS = 240
_ROOM = 3.0


def roofline_svg(profile: CellProfile) -> str:
    """Draw a roofline for each kind of GPU; empty where there is no point."""
    gpus = dict.fromkeys(point.gpu for point in profile.roofline)
    return "".join(_roofline(profile, gpu) for gpu in gpus)


def memory_svg(profile: CellProfile) -> str:
    """Draw what torch's allocator held on each GPU; empty if it was not recorded."""
    uses = {use.device: use for use in profile.memory}
    drawings = []
    for curve in profile.memory_curves:
        said = f"{peak_words(curve)}; {allocator_words(curve, uses.get(curve.device))}"
        drawings.append(svg_figure(said, _memory_parts(curve)))
    return "".join(drawings)


def svg_figure(said: str, parts: Iterable[str], height: int = _HEIGHT) -> str:
    """Put a picture above what it says; parts are escaped already."""
    return (
        f'<figure class="warpbook-picture"><svg viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{escape(said)}" fill="none" stroke-width="1.5">'
        f"{''.join(parts)}</svg><figcaption>{escape(said)}</figcaption></figure>"
    )


class _Axis:
    """Turns values into pixels."""

    def __init__(
        self, least: float, most: float, pixels: tuple[float, float], is_log: bool
    ) -> None:
        self._turn = math.log10 if is_log else float
        self._least, self._most = self._turn(least), self._turn(most)
        self._pixels = pixels

    def at(self, value: float) -> float:
        span = (self._turn(value) - self._least) / (self._most - self._least)
        begin, end = self._pixels
        return round(begin + span * (end - begin), 1)


def _axes(
    x: tuple[float, float], y: tuple[float, float], is_log: bool
) -> tuple[_Axis, _Axis]:
    return (
        _Axis(*x, (_LEFT, WIDTH - _RIGHT), is_log),
        _Axis(*y, (_HEIGHT - _BOTTOM, _TOP), is_log),
    )


def _frame(x_label: str) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, WIDTH - _RIGHT
    yield (
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" stroke="currentColor" '
        'opacity="0.5"/>'
    )
    yield svg_text((_LEFT + right) / 2, _HEIGHT - 4, x_label, "middle")


def svg_text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11" '
        f'fill="currentColor">{escape(text)}</text>'
    )


def _roofline(profile: CellProfile, gpu: str) -> str:
    points = [
        point
        for point in profile.roofline
        if point.gpu == gpu and point.flops_per_byte and point.flops_per_s
    ]
    if not points:
        return ""
    roofs = [roof for roof in profile.roofs if roof.gpu == gpu]
    return svg_figure(
        f"Roofline, {gpu}. {basis_words(roofs)}", _roofline_parts(points, roofs)
    )


def _roofline_parts(
    points: Sequence[RooflinePoint], roofs: Sequence[Roof]
) -> Iterator[str]:
    used = {point.dtype for point in points}
    lines = [
        (roof, dtype, peak)
        for roof in roofs
        for dtype, peak in roof.flops_per_s.items()
        if dtype in used
    ]
    at = [(point.flops_per_byte or 1.0, point.flops_per_s or 1.0) for point in points]
    xs = [x for x, _ in at] + [peak / r.memory_bytes_per_s for r, _, peak in lines]
    ys = [y for _, y in at] + [peak for _, _, peak in lines]
    reach = (min(xs) / _ROOM, max(xs) * _ROOM)
    floor = min(ys) / _ROOM
    x, y = _axes(reach, (floor, max(ys) * _ROOM), is_log=True)
    yield from _frame("FLOP for each byte that must be moved")
    for power in _powers(*reach):
        yield svg_text(x.at(power), _HEIGHT - _BOTTOM + 13, f"{power:g}", "middle")
    for power in _powers(floor, max(ys) * _ROOM):
        yield svg_text(_LEFT - 5, y.at(power) + 4, f"{power / 1e12:g} T", "end")
    for roof, dtype, peak in lines:
        # the slope begins where it comes into the picture
        begin = max(reach[0], floor / roof.memory_bytes_per_s)
        bend = peak / roof.memory_bytes_per_s
        label = DTYPE_LABELS.get(dtype, dtype)
        dash = "" if roof.basis == "measured" else ' stroke-dasharray="5 4"'
        yield (
            f'<path d="M{x.at(begin)} {y.at(begin * roof.memory_bytes_per_s)}'
            f'L{x.at(bend)} {y.at(peak)}H{x.at(reach[1])}" '
            f'stroke="{DTYPES.get(label, PLAIN)}"{dash}>'
            f"<title>{escape(_roof_words(roof, label, peak))}</title></path>"
        )
        said = f"{label} {units.rate(peak, 'FLOP')}"
        yield svg_text(x.at(reach[1]), y.at(peak) - 4, said, "end")
    for point, (intensity, rate) in zip(points, at, strict=True):
        label = DTYPE_LABELS.get(point.dtype or "", "")
        yield (
            f'<circle cx="{x.at(intensity)}" cy="{y.at(rate)}" '
            f'r="{3 + 9 * point.share_ratio**0.5:.1f}" '
            f'fill="{DTYPES.get(label, PLAIN)}" fill-opacity="0.6">'
            f"<title>{escape(_point_words(point))}</title></circle>"
        )


def _powers(least: float, most: float) -> Iterator[float]:
    first, last = math.ceil(math.log10(least)), math.floor(math.log10(most))
    step = 1 + (last - first) // 8
    for power in range(first, last + 1, step):
        yield 10.0**power


def _roof_words(roof: Roof, label: str, peak: float) -> str:
    return (
        f"{label}, {roof.basis}: {units.rate(peak, 'FLOP')} under "
        f"{units.rate(roof.memory_bytes_per_s, 'B')}"
    )


def _point_words(point: RooflinePoint) -> str:
    return (
        f"{point.name} {point.operands}: {units.rate(point.flops_per_s or 0.0, 'FLOP')}"
        f", {units.duration_ns(point.time_ns)}"
    )


def _memory_parts(curve: MemoryCurve) -> Iterator[str]:
    last_ns = max(curve.times_ns[-1], 1)
    most = max(*curve.reserved_bytes, *curve.allocated_bytes, 1)
    x, y = _axes((0.0, last_ns), (0.0, most * 1.05), is_log=False)
    yield from _frame("ms since the start of the cell")
    for share in (0.0, 0.5, 1.0):
        at_ns = last_ns * share
        yield svg_text(
            x.at(at_ns), _HEIGHT - _BOTTOM + 13, f"{at_ns / 1e6:.3g}", "middle"
        )
        yield svg_text(
            _LEFT - 5, y.at(most * share) + 4, units.size(most * share), "end"
        )
    reserved = _stairs(x, y, curve.times_ns, curve.reserved_bytes)
    yield f'<path d="M{reserved}" stroke="{PLAIN}"/>'
    allocated = _stairs(x, y, curve.times_ns, curve.allocated_bytes)
    floor = y.at(0)
    yield (
        f'<path d="M{_LEFT} {floor}L{allocated}V{floor}Z" fill="{SERIES["light"][0]}" '
        f'fill-opacity="0.35" stroke="{SERIES["light"][0]}"/>'
    )
    peak_x, peak_y = x.at(max(curve.peak_ns, 0)), y.at(curve.peak_allocated_bytes)
    yield (
        f'<circle cx="{peak_x}" cy="{peak_y}" r="4" fill="{SERIES["light"][1]}">'
        f"<title>{escape(peak_words(curve))}</title></circle>"
    )
    yield svg_text(x.at(last_ns), y.at(curve.reserved_bytes[-1]) - 4, "reserved", "end")


def _stairs(x: _Axis, y: _Axis, times_ns: Sequence[int], values: Sequence[int]) -> str:
    """Give a path of so many steps, each as high as the most in it."""
    last_ns = max(times_ns[-1], 1)
    heights = [0] * _STEPS
    place, held = 0, values[0]
    for step in range(_STEPS):
        # what held before this step holds in it until it changes
        heights[step] = held
        end_ns = last_ns * (step + 1) / _STEPS
        while place < len(values) and (times_ns[place] < end_ns or step == _STEPS - 1):
            held = values[place]
            heights[step] = max(heights[step], held)
            place += 1
    parts = [f"{x.at(0.0)} {y.at(heights[0])}"]
    for step in range(1, _STEPS):
        if heights[step] != heights[step - 1]:
            parts.append(f"H{x.at(last_ns * step / _STEPS)}V{y.at(heights[step])}")
    return "".join([*parts, f"H{x.at(last_ns)}"])
