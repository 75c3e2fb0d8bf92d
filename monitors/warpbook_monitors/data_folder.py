"""Where warpbook keeps what belongs to a person: measured limits, progress in labs."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """Name the folder, which need not be there yet."""
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data, "warpbook")
