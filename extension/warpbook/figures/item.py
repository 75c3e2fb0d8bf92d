"""A figure as the JSON that BokehJS embeds."""

from __future__ import annotations

import json

from bokeh.embed import json_item
from bokeh.model import Model
from bokeh.models import Div
from bokeh.themes import built_in_themes


def figure_item(figure: Model, theme: str) -> str:
    """Serialise a figure for `Bokeh.embed.embed_item`; theme is "dark" or "light"."""
    look = built_in_themes["dark_minimal" if theme == "dark" else "light_minimal"]
    return json.dumps(json_item(figure, theme=look))


def without_math(text: str) -> str:
    """Bokeh takes $$...$$ for TeX and would fetch MathJax to draw it."""
    return text.replace("$$", "$ $").replace("\\[", "[").replace("\\(", "(")


def words(text: str) -> Model:
    """Say why there is nothing to draw; the text is never taken for markup."""
    return Div(
        text=text, render_as_text=True, disable_math=True, sizing_mode="stretch_width"
    )
