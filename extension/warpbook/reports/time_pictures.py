"""The flame graph and the timeline of a report as inline SVG: no script, all escaped.

Both are as large as a profile, which bounds its calls and its bars; what is left out is
said below. A part is as wide as its time: what can't be seen has an outline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html import escape

from warpbook.colours import BANDS
from warpbook.reports.pictures import WIDTH, svg_figure, svg_text
from warpbook_monitors import units
from warpbook_monitors.plain_text import shortened
from warpbook_profiler.model.cell_profile import CallNode, CellProfile, Lane

_ROW, _LETTER, _AXIS = 16, 7.2, 16
#: of the width: narrower calls can't be seen
_LEAST_SHARE = 0.002
_MOST_DEPTH = 60
_LABELS = 90


def flame_svg(profile: CellProfile) -> str:
    """Draw who called whom, by the time on the GPU and on the host; else empty."""
    return "".join(
        _flame(profile.call_tree, [times or 0 for times in clock], whose)
        for whose, clock in (
            ("the GPU's work", [node.gpu_ns for node in profile.call_tree]),
            ("the host's time", [node.host_ns for node in profile.call_tree]),
        )
    )


def timeline_svg(profile: CellProfile) -> str:
    """Draw the lanes over one time axis; empty where nothing was recorded."""
    lanes = [lane for lane in profile.lanes if lane.names]
    omitted = profile.completeness.lanes_omitted
    if not lanes and not omitted:
        return ""
    said = f"Timeline of {units.duration_ns(max(profile.wall_ns, 1))}."
    if omitted:
        shorter = units.counted(omitted, "shorter event" if lanes else "event")
        said += f" Not drawn: {shorter}, which the page and the saved trace have."
    height = _ROW * len(lanes) + _AXIS
    return svg_figure(said, _timeline(profile, lanes, height), height)


def _flame(nodes: tuple[CallNode, ...], times_ns: list[int], whose: str) -> str:
    children: dict[int, list[int]] = defaultdict(list)
    for at, node in enumerate(nodes):
        # a tree of somebody else's making may name any number
        children[node.parent if 0 <= node.parent < at else -1].append(at)
    whole_ns = sum(times_ns[at] for at in children[-1])
    if whole_ns <= 0:
        return ""
    boxes: list[tuple[int, int, float]] = []
    places = [(-1, -1, 0.0)]
    while places:
        caller, depth, left = places.pop()
        for at in sorted(children[caller], key=lambda at: -times_ns[at]):
            share = times_ns[at] / whole_ns
            if share >= _LEAST_SHARE and depth + 1 < _MOST_DEPTH:
                boxes.append((at, depth + 1, left))
                places.append((at, depth + 1, left))
            left += share
    said = f"Flame graph of {whose}, {units.duration_ns(whole_ns)}."
    omitted = len(nodes) - len(boxes)
    if omitted:
        said += f" Not drawn: {units.counted(omitted, 'short or deep call')}."
    height = _ROW * (1 + max((depth for _, depth, _ in boxes), default=0))
    return svg_figure(said, _boxes(nodes, times_ns, boxes, whole_ns), height)


def _boxes(
    nodes: tuple[CallNode, ...],
    times_ns: list[int],
    boxes: list[tuple[int, int, float]],
    whole_ns: int,
) -> Iterator[str]:
    for at, depth, left in boxes:
        node, share = nodes[at], times_ns[at] / whole_ns
        x, y, width = left * WIDTH, depth * _ROW, share * WIDTH
        letters = int((width - 4) / _LETTER)
        label = shortened(node.name, letters) if letters > 2 else ""
        words = (
            f"{node.name}: {units.duration_ns(times_ns[at])}, {units.share(share)}, "
            f"{units.counted(node.calls, 'call')}"
        )
        yield (
            f'<g><title>{escape(words)}</title><rect x="{x:.2f}" y="{y}" '
            f'width="{width:.2f}" height="{_ROW - 1}" fill="{_colour(node.name)}" '
            f'fill-opacity="0.4"/>{svg_text(x + 2, y + 11, label, "start")}</g>'
        )


def _timeline(profile: CellProfile, lanes: list[Lane], height: int) -> Iterator[str]:
    whole_ns = max(profile.wall_ns, 1)
    scale = (WIDTH - _LABELS) / whole_ns
    for row, lane in enumerate(lanes):
        y = row * _ROW + 1
        yield svg_text(0, y + 11, shortened(lane.label, 14), "start")
        by_name: dict[int, list[int]] = defaultdict(list)
        for at, number in enumerate(lane.names):
            by_name[number].append(at)
        for number, places in by_name.items():
            name = profile.names[number]
            time_ns = sum(lane.durations_ns[at] for at in places)
            words = f"{name}: {len(places):,} drawn, {units.duration_ns(time_ns)}"
            bars = "".join(
                f"M{_LABELS + lane.starts_ns[at] * scale:.2f} {y}"
                f"h{lane.durations_ns[at] * scale:.3f}v{_ROW - 3}"
                f"h-{lane.durations_ns[at] * scale:.3f}z"
                for at in places
            )
            colour = _colour(name)
            yield (
                f"<g><title>{escape(words)}</title>"
                f'<path d="{bars}" fill="{colour}" stroke="{colour}" '
                'stroke-width="0.3"/></g>'
            )
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        words = units.duration_ns(round(whole_ns * share))
        x = _LABELS + (WIDTH - _LABELS) * share
        yield svg_text(x, height - 3, words, anchor)


def _colour(name: str) -> str:
    """Choose one of some colours; the same name has the same one."""
    return BANDS[sum(map(ord, name)) % len(BANDS)]
