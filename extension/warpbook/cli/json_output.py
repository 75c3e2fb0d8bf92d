"""What `--json` prints: one object in one line."""

from __future__ import annotations

import sys
from typing import Any

import msgspec


def print_json(value: Any) -> None:
    """Print a value as JSON, whatever the terminal's encoding is."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
