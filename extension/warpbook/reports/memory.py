"""A model's memory as text and as static HTML with a stacked bar, from one view."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html import escape

from warpbook.colours import HELD, PLAIN
from warpbook.reports.style import STYLE
from warpbook_monitors.html_table import OWN_KEYS, table_html
from warpbook_monitors.model_memory.view import MemoryView

#: of a bar in characters; with its ends it fits 80
_COLUMNS = 76
_WIDTH, _HEIGHT, _MARGIN = 640, 38, 6
_STYLE = """
.warpbook-report .warpbook-held img { width: 100%; max-width: 46em; }
.warpbook-report .warpbook-held { margin: 0.6em 0; }
.warpbook-report .warpbook-swatch { display: inline-block; height: 0.8em;
  margin-right: 0.5em; width: 0.8em; }
"""


def bar_lines(view: MemoryView) -> Iterator[str]:
    """Draw the bar with a letter for each kind, and name them below."""
    yield view.bar_title
    letters, end_bytes = "", 0
    for segment in view.segments:
        end_bytes += segment.size_bytes
        end = round(_COLUMNS * end_bytes / view.scale_bytes)
        letters += segment.letter * (end - len(letters))
    is_full = view.peak_bytes > (view.capacity_bytes or view.peak_bytes)
    if is_full:
        at = round(_COLUMNS * (view.capacity_bytes or 0) / view.scale_bytes)
        letters = f"{letters[:at]}|{letters[at + 1 :]}"
    yield f"  [{letters.ljust(_COLUMNS, '.')}]"
    width = max((len(segment.label) for segment in view.segments), default=0)
    for segment in view.segments:
        yield (
            f"  {segment.letter}  {segment.label.ljust(width)}  "
            f"{segment.text.rjust(9)}  {segment.share.rjust(7)}"
        )
    if is_full:
        yield "  |  where the GPU is full"


def memory_html(view: MemoryView) -> str:
    """Write title, bar, the values of the bar, and whether it fits."""
    where = f"<p>{escape(view.where)}</p>" if view.where else ""
    answer, *changes = view.fit or ("",)
    fit = f'<p class="warpbook-verdict">{escape(answer)}</p>' if answer else ""
    words = "".join(f"<p>{escape(line.strip())}</p>" for line in changes)
    held = (
        (
            f'<span class="warpbook-swatch" aria-hidden="true" '
            f'style="background:{HELD[segment.letter]}"></span>'
            f"{escape(segment.label)}",
            escape(segment.text),
            escape(segment.share),
        )
        for segment in view.segments
    )
    rows = (
        ("&emsp;" * row.is_part + escape(row.label), escape(row.text))
        for row in view.rows
    )
    return (
        f'<div class="warpbook-report" {OWN_KEYS} role="region" '
        'aria-label="Memory of a model">'
        f"<style>{STYLE}{_STYLE}</style><p>{escape(view.title)}</p>{where}{fit}{words}"
        f"{_figure(view)}{_table(('Held at the peak', 'Size', 'Share'), held)}"
        "<details><summary>All that is needed, though not at the same time</summary>"
        f"{_table(('Of a step', 'Size'), rows)}</details></div>"
    )


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Write a table of cells that are escaped already."""
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows
    )
    return table_html(
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _figure(view: MemoryView) -> str:
    """Draw the bar as an image, which JupyterLab leaves in a notebook it opens."""
    words = ", ".join(f"{segment.label} {segment.text}" for segment in view.segments)
    description = escape(f"{view.bar_title}: {words}")
    mark = "" if view.capacity_bytes is None else " The mark is where the GPU is full."
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f"{''.join(_shapes(view))}</svg>"
    )
    image = b64encode(svg.encode()).decode()
    return (
        f'<figure class="warpbook-held"><img src="data:image/svg+xml;base64,{image}" '
        f'alt="{description}"><figcaption>{escape(view.bar_title)}.{mark}</figcaption>'
        "</figure>"
    )


def _shapes(view: MemoryView) -> Iterator[str]:
    def pixels(size_bytes: int) -> float:
        return round(_WIDTH * size_bytes / view.scale_bytes, 1)

    height, start_bytes = _HEIGHT - 2 * _MARGIN, 0
    for segment in view.segments:
        width = max(pixels(segment.size_bytes) - 1, 0.5)
        yield (
            f'<rect x="{pixels(start_bytes)}" y="{_MARGIN}" height="{height}" '
            f'width="{width}" fill="{HELD[segment.letter]}"/>'
        )
        start_bytes += segment.size_bytes
    yield (
        f'<rect x="0.5" y="{_MARGIN}" width="{_WIDTH - 1}" height="{height}" '
        f'fill="none" stroke="{PLAIN}"/>'
    )
    if view.capacity_bytes is not None:
        mark = (
            f'<path d="M{min(pixels(view.capacity_bytes), _WIDTH - 3.0)} 0V{_HEIGHT}"'
        )
        yield f'{mark} stroke="white" stroke-width="6"/>'
        yield f'{mark} stroke="black" stroke-width="2"/>'
