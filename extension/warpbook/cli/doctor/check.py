"""What the doctor tells of one thing that it looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    what: str
    #: "absent" is listed and is no failure
    state: Literal["ok", "absent", "broken"]
    message: str
    #: what to do; empty where nothing needs to be done
    remedy: str = ""


def shown(path: str) -> str:
    """Shorten a path below the person's home."""
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
