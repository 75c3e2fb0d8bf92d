"""Static HTML in a notebook: tables, and keys.

The first column of a table stays readable in a narrow place.

It is as wide as its longest name, or 24 letters where there is no room. Both ends of a
longer name are shown; the whole is in its title, in a copy, and there with the focus.
"""

from __future__ import annotations

from html import escape

#: letters of a name that are sure to have room, and those at its end: `ch` below
_LEAST, _END = 24, 10
# said twice, the class counts for more than a notebook's own rules for tables
TABLE_STYLE = """
.warpbook-table { margin: 0.6em 0; overflow-x: auto; }
.warpbook-table > table { border-collapse: collapse; color: inherit;
  font-size: inherit; margin: 0; table-layout: auto; }
.warpbook-table.warpbook-table tr > :first-child { max-width: 24ch;
  overflow: hidden; text-align: left; text-overflow: ellipsis; white-space: pre; }
.warpbook-table .warpbook-begin { display: inline-block; overflow: hidden;
  max-width: calc(100% - 10ch); text-overflow: ellipsis;
  vertical-align: bottom; }
.warpbook-table.warpbook-table tr > :focus { overflow-wrap: anywhere;
  white-space: pre-wrap; }
.warpbook-table :focus .warpbook-begin { display: inline; }
"""


#: of a place whose keys are not the notebook's, too: there Enter begins to edit
OWN_KEYS = 'data-lm-suppress-shortcuts="true"'


def table_html(table: str) -> str:
    """Let a table scroll in its place, so that the page does not."""
    return f'<div class="warpbook-table">{table}</div>'


def name_cell(name: str, inside: str = "{}", *, is_code: bool = False) -> str:
    """Write a cell of the first column.

    Args:
        name: of the row.
        inside: what its text stands in.
        is_code: it is known by its beginning; its end may be cut.
    """
    if len(name) <= _LEAST:
        return f"<td>{inside.format(escape(name))}</td>"
    whole = escape(name)
    begin, end = escape(name[:-_END]), escape(name[-_END:])
    ends = f'<span class="warpbook-begin">{begin}</span>{end}'
    shown = inside.format(whole if is_code else ends)
    return f'<td tabindex="0" title="{whole}" aria-label="{whole}">{shown}</td>'
