"""What a command prints, drawn as a terminal in SVG: text that stays text."""

from __future__ import annotations

import textwrap
from html import escape

_COLUMNS, _CHARACTER_PX, _LINE_PX, _MARGIN_PX = 110, 8.4, 19, 16
_BOLD = ' font-weight="bold"'
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def terminal_svg(command: str, printed: str, most_lines: int = 32) -> str:
    """Draw a command and the first lines of what it printed.

    Args:
        command: as it was typed.
        printed: its output, without escape sequences.
        most_lines: lines beyond these are left out, and that is said.
    """
    lines = [f"$ {command}"]
    for line in printed.rstrip().splitlines():
        lines += _wrapped(line)
    if len(lines) > most_lines:
        lines = [
            *lines[: most_lines - 1],
            f"… {len(lines) - most_lines + 1} more lines",
        ]
    width = _COLUMNS * _CHARACTER_PX + 2 * _MARGIN_PX
    height = len(lines) * _LINE_PX + 2 * _MARGIN_PX
    rows = "\n".join(
        f'<text x="{_MARGIN_PX}" y="{_MARGIN_PX + (number + 0.75) * _LINE_PX:.1f}"'
        f"{'' if number else _BOLD}>{_kept(line)}</text>"
        for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-family="{escape(_FONT)}" '
        'font-size="14" fill="#1f2328">\n'
        '<rect width="100%" height="100%" rx="6" fill="#f6f8fa" stroke="#d0d7de"/>\n'
        f"{rows}\n</svg>\n"
    )


def _kept(line: str) -> str:
    """Escape a line; SVG would draw several spaces as one."""
    return escape(line).replace(" ", "\N{NO-BREAK SPACE}")


def _wrapped(line: str) -> list[str]:
    """Break a line where the terminal ends, below its first word."""
    if len(line) <= _COLUMNS:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, _COLUMNS, subsequent_indent=indent)
