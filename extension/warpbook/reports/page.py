"""A report as one HTML file: it needs nothing else, and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from warpbook.reports.html import comparison_html, report_html
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.compare.compare import Comparison
from warpbook_profiler.model.cell_profile import CellProfile

# nothing is fetched and nothing runs, whatever a kernel's name says
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; margin: 2em auto; max-width: 62em;
  padding: 0 1em; }
.warpbook-report.warpbook-report { max-width: none; }
p, li { overflow-wrap: anywhere; }
h1 { font-size: 1.3em; }
"""


def report_page(
    profile: CellProfile,
    checklist: Checklist,
    title: str,
    origin: str,
    notes: Sequence[str] = (),
    difference: Comparison | None = None,
) -> str:
    """Write the whole file.

    Args:
        profile: its figures.
        checklist: of the same.
        title: of the cell or the trace file.
        origin: what was profiled, and when.
        notes: what stands below the figures.
        difference: from the cell's run before, as it is shown; None without one.
    """
    report = report_html(profile, title, notes, checklist=checklist, is_open=True)
    if difference is not None:
        label = "Against the cell's run before"
        report += f"<h2>{label}</h2>{comparison_html(difference, label)}"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1><p>{escape(origin)}</p>{report}</body></html>\n"
    )
