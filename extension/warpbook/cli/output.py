"""How a command ends and what it prints."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import msgspec


class CommandError(Exception):
    """The command can't do what was asked; the message says what to do."""


def print_json(value: Any) -> None:
    """Print a value as JSON, whatever the terminal's encoding is."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")


def terminal_width() -> int | None:
    """Give its width in characters; None where the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
