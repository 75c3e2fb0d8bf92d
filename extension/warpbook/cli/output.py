"""How a command ends and what it prints."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from warpbook_profiler.model.progress import heard_by


class CommandError(Exception):
    """The command can't do what was asked; the message says what to do."""


def print_json(value: Any) -> None:
    """Print a value as JSON, whatever the terminal's encoding is."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")


def terminal_width() -> int | None:
    """Give its width in characters; None where the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextmanager
def progress_line() -> Iterator[None]:
    """Show on a terminal's stderr how far an analysis is, and take it away after it."""
    if not sys.stderr.isatty():
        yield
        return

    def show(words: str) -> None:
        sys.stderr.write(f"\r\x1b[K{words}")
        sys.stderr.flush()

    with heard_by(lambda now: show(now.words)):
        try:
            yield
        finally:
            show("")
