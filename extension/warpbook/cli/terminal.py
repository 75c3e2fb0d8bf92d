"""The terminal that a command writes to."""

from __future__ import annotations

import shutil
import sys


def terminal_width() -> int | None:
    """Give its width in characters; None where the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
