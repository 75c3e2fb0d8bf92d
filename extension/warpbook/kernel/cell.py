"""What is known of one run of a cell from the shell that ran it."""

from __future__ import annotations

from typing import Any, Literal

_MAX_TITLE_LENGTH = 200


def cell_title(lines: list[str]) -> str:
    """Give the first line that says anything."""
    first = next((line.strip() for line in lines if line.strip()), "")
    return first[:_MAX_TITLE_LENGTH]


def cell_status(result: Any) -> Literal["ok", "error", "interrupted"]:
    """Say how it ended; after an interrupt there may be no result at all."""
    if result is None or isinstance(result.error_in_exec, KeyboardInterrupt):
        return "interrupted"
    return "ok" if result.error_in_exec is None else "error"
