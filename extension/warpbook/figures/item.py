"""A figure as the JSON that BokehJS embeds."""

from __future__ import annotations

import json

from bokeh.embed import json_item
from bokeh.model import Model
from bokeh.themes import built_in_themes


def figure_item(figure: Model, theme: str) -> str:
    """Serialise a figure for `Bokeh.embed.embed_item`; theme is "dark" or "light"."""
    look = built_in_themes["dark_minimal" if theme == "dark" else "light_minimal"]
    return json.dumps(json_item(figure, theme=look))
