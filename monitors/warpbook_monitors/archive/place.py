"""Where a person's archives are: a folder for each machine, in their data folder."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from warpbook_monitors.data_folder import data_folder

FOLDER_NAME = "archive"


def archives_folder() -> Path:
    """Name the folder that holds one for each machine."""
    return data_folder() / FOLDER_NAME


def default_folder() -> Path:
    """Name the folder of this machine, which need not be there yet.

    Homes are often shared by machines, and SQLite's log can't be.
    """
    return archives_folder() / machine_name(platform.node())


def machine_name(host: str) -> str:
    """Make a host's name safe as a folder's."""
    safe = re.sub(r"[^A-Za-z0-9-]+", "-", host.partition(".")[0]).strip("-")
    return safe[:64] or "machine"
