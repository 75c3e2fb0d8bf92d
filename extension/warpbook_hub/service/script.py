"""The script of the pages: built from TypeScript, so a clone begins without it."""

from __future__ import annotations

from pathlib import Path

SCRIPT = Path(__file__).with_name("static") / "hub.js"


def has_script() -> bool:
    """Whether the script is there now; it may be built while the service runs."""
    return SCRIPT.is_file()
