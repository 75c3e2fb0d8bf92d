"""A model's memory as text and as static HTML with a stacked bar, from one view."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape

from warpbook.reports.style import STYLE
from warpbook_monitors.model_memory.view import Bar, MemoryView

#: of a bar in characters; with its ends it fits 80
_COLUMNS = 76
_WIDTH, _HEIGHT, _MARGIN = 640, 38, 6
#: seen on light and on dark pages
_LINE = "#808080"
#: by the letter of what is held; apart in brightness, too
_COLOURS = {
    "W": "#2f6fb0",
    "G": "#d98200",
    "S": "#6fb4e0",
    "M": "#b9a15a",
    "A": "#2f9158",
    "C": "#2f9158",
    "T": "#8c5fb0",
}
_STYLE = """
.warpbook-report .warpbook-held img { width: 100%; max-width: 46em; }
.warpbook-report .warpbook-held { margin: 0.6em 0; }
.warpbook-report .warpbook-swatch { display: inline-block; height: 0.8em;
  margin-right: 0.5em; width: 0.8em; }
"""


def bar_lines(bar: Bar) -> Iterator[str]:
    """Draw the bar with a letter for each kind, and name them below."""
    yield bar.title
    letters = _letters(bar)
    if bar.capacity_bytes is not None and bar.peak_bytes > bar.capacity_bytes:
        at = round(_COLUMNS * bar.capacity_bytes / bar.scale_bytes)
        letters = f"{letters[:at]}|{letters[at + 1 :]}"
    yield f"  [{letters}]"
    width = max((len(segment.label) for segment in bar.segments), default=0)
    for segment in bar.segments:
        yield (
            f"  {segment.letter}  {segment.label.ljust(width)}  "
            f"{segment.text.rjust(9)}  {segment.share.rjust(7)}"
        )
    if bar.capacity_bytes is not None and bar.peak_bytes > bar.capacity_bytes:
        yield "  |  where the GPU is full"


def _letters(bar: Bar) -> str:
    letters, end_bytes = "", 0
    for segment in bar.segments:
        end_bytes += segment.size_bytes
        end = round(_COLUMNS * end_bytes / bar.scale_bytes)
        letters += segment.letter * (end - len(letters))
    return letters.ljust(_COLUMNS, ".")


def memory_html(view: MemoryView) -> str:
    """Write title, bar, the values of the bar, and whether it fits."""
    where = f"<p>{escape(view.where)}</p>" if view.where else ""
    answer, *changes = view.fit or ("",)
    fit = f'<p class="warpbook-verdict">{escape(answer)}</p>' if answer else ""
    words = "".join(f"<p>{escape(line.strip())}</p>" for line in changes)
    return (
        f'<div class="warpbook-report" aria-label="Memory of a model">'
        f"<style>{STYLE}{_STYLE}</style><p>{escape(view.title)}</p>{where}{fit}{words}"
        f"{_figure(view.bar)}{_held(view.bar)}{_rows(view)}</div>"
    )


def _figure(bar: Bar) -> str:
    """Draw the bar as an image, which JupyterLab leaves in a notebook it opens."""
    words = ", ".join(f"{segment.label} {segment.text}" for segment in bar.segments)
    description = escape(f"{bar.title}: {words}")
    mark = "" if bar.capacity_bytes is None else " The mark is where the GPU is full."
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"{''.join(_shapes(bar))}</svg>"
    )
    image = b64encode(svg.encode()).decode()
    return (
        f'<figure class="warpbook-held"><img src="data:image/svg+xml;base64,{image}" '
        f'alt="{description}"><figcaption>{escape(bar.title)}.{mark}</figcaption></figure>'
    )


def _shapes(bar: Bar) -> Iterator[str]:
    def pixels(size_bytes: int) -> float:
        return round(_WIDTH * size_bytes / bar.scale_bytes, 1)

    height = _HEIGHT - 2 * _MARGIN
    start_bytes = 0
    for segment in bar.segments:
        yield (
            f'<rect x="{pixels(start_bytes)}" y="{_MARGIN}" height="{height}" '
            f'width="{max(pixels(segment.size_bytes) - 1, 0.5)}" '
            f'fill="{_COLOURS[segment.letter]}"/>'
        )
        start_bytes += segment.size_bytes
    yield (
        f'<rect x="0.5" y="{_MARGIN}" width="{_WIDTH - 1}" height="{height}" '
        f'fill="none" stroke="{_LINE}"/>'
    )
    if bar.capacity_bytes is not None:
        x = min(pixels(bar.capacity_bytes), _WIDTH - 3.0)
        mark = f'<path d="M{x} 0V{_HEIGHT}"'
        yield f'{mark} stroke="white" stroke-width="6"/>'
        yield f'{mark} stroke="black" stroke-width="2"/>'


def _held(bar: Bar) -> str:
    rows = "".join(
        f'<tr><td><span class="warpbook-swatch" aria-hidden="true" '
        f'style="background:{_COLOURS[segment.letter]}"></span>'
        f"{escape(segment.label)}</td><td>{escape(segment.text)}</td>"
        f"<td>{escape(segment.share)}</td></tr>"
        for segment in bar.segments
    )
    return (
        "<table><thead><tr><th>Held at the peak</th><th>Size</th><th>Share</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _rows(view: MemoryView) -> str:
    rows = "".join(
        f"<tr><td>{'&emsp;' if row.is_part else ''}{escape(row.label)}</td>"
        f"<td>{escape(row.text)}</td></tr>"
        for row in view.rows
    )
    return (
        "<details><summary>All that is needed, not all at once</summary><table>"
        f"<thead><tr><th>Of a step</th><th>Size</th></tr></thead><tbody>{rows}</tbody>"
        "</table></details>"
    )
