"""Where a lab's files are, seen from a notebook."""

from __future__ import annotations

import os
from pathlib import Path


def place_of(lab: str, folder: str | None = None) -> Path:
    """Give the lab's folder below another one, which may be it already."""
    here = Path(os.getcwd() if folder is None else folder)
    return here if here.resolve().name == lab else here / lab
