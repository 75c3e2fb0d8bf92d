"""Models by name, and of anybody's files, which are bounded and checked here."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from warpbook_monitors import toml_text
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.hugging_face import model_of_config
from warpbook_monitors.plain_file import NotAPlainFile, check_plain
from warpbook_monitors.plain_text import bounded

_MOST_BYTES = 4 << 20


class ModelError(MonitorError):
    """A model is not known, or its file can't be used; the message says what to do."""


@cache
def _known() -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name("models.toml").read_text()
    return toml_text.decode(text, dict[str, dict[str, Any]])


def known_names() -> list[str]:
    return sorted(_known())


def read_model(name: str) -> Model:
    """Return a known model, or the one that a file describes.

    Args:
        name: of a known model, or a path that ends in .toml or .json.

    Raises:
        ModelError: it is neither, or the file is malformed.
    """
    if name in _known():
        return _model(_known()[name])
    path = Path(name)
    if path.suffix not in (".toml", ".json"):
        raise ModelError(
            f"{bounded(name)} is not a known model: choose one of "
            f"{', '.join(known_names())}, or a file .toml or .json"
        )
    shown = bounded(name)
    try:
        check_plain(path)
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except NotAPlainFile:
        raise ModelError(f"{shown} is not a regular file; copy it to one") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "this is not a possible path"
        words = f"{shown} can't be read: {reason}; give the path of a file"
        raise ModelError(words) from None
    if len(content) > _MOST_BYTES:
        raise ModelError(f"{shown} has more than 4 MiB: a description has a few KiB")
    try:
        if path.suffix == ".toml":
            return toml_text.decode(content, Model)
        return _model(msgspec.json.decode(content))
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        is_deep = isinstance(problem, RecursionError)
        what = "it is nested too deeply" if is_deep else bounded(str(problem), 300)
        words = "(docs/how-to/compute-memory.md has the form)"
        raise ModelError(f"{shown} describes no model: {what} {words}") from None


def _model(fields: Any) -> Model:
    if isinstance(fields, dict) and "blocks" not in fields:
        return model_of_config(fields)
    return msgspec.convert(fields, Model)
