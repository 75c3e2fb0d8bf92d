"""BokehJS out of the installed bokeh package; bokeh itself is not imported here."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path


def bokeh_version() -> str | None:
    """Version of the installed bokeh, or None."""
    try:
        return importlib.metadata.version("bokeh")
    except importlib.metadata.PackageNotFoundError:
        return None


def bokehjs_folder() -> Path | None:
    """The folder with `bokeh.min.js`, or None where bokeh is not installed."""
    spec = importlib.util.find_spec("bokeh")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "server" / "static" / "js"
