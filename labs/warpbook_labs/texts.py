"""What a lab's text refers to."""

from __future__ import annotations

import re

_FIGURE = re.compile(r"!\[[^\]\n]*\]\(([^)\s]+)\)")


def figures(text: str) -> tuple[str, ...]:
    """Name the files of a text's pictures, each once."""
    return tuple(dict.fromkeys(_FIGURE.findall(text)))
