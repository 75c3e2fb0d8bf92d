"""A figure as the JSON that BokehJS embeds."""

from __future__ import annotations

import json
import textwrap
from typing import Literal

from bokeh.embed import json_item
from bokeh.model import Model
from bokeh.models import Plot
from bokeh.models.annotations import Title
from bokeh.models.widgets import Div
from bokeh.plotting import figure as Figure
from bokeh.themes import built_in_themes

#: a narrow part of a window has room for no more
_LEGEND_COLUMNS = 3
#: letters of a line that the narrowest drawer shows whole
_LINE = 44


def fit_narrow_place(plot: Figure) -> None:
    """Make words small and put the legend below: the drawer is narrow."""
    plot.toolbar.logo = None
    plot.axis.axis_label_text_font_size = "11px"
    plot.axis.axis_label_standoff = 4
    plot.axis.major_label_text_font_size = "10px"
    # what is explored must not lie under its legend
    plot.add_layout(plot.legend[0], "below")
    plot.legend.ncols = _LEGEND_COLUMNS
    plot.legend.click_policy = "hide"
    plot.legend.label_text_font_size = "10px"
    plot.legend.label_height = plot.legend.glyph_height = 12
    plot.legend.spacing = 6
    plot.legend.margin = 2


def add_title(plot: Figure, title: str, below: str = "") -> None:
    """Put a title above a plot, and a line of explanation below the title."""
    # what is added last stands on top
    if below:
        lines = "\n".join(textwrap.wrap(below, _LINE))
        plot.add_layout(_title(lines, "normal"), "above")
    plot.add_layout(_title(title, "bold"), "above")


def _title(text: str, style: Literal["normal", "bold"]) -> Title:
    heading = Title(text=without_math(text), text_font_style=style)
    heading.text_font_size = "11px"
    return heading


def link_time(figure: Model, report_id: str) -> None:
    """Let the page move all figures over this report's time together."""
    for plot in figure.select({"type": Plot}):
        assert isinstance(plot, Plot)
        plot.x_range.name = f"cell {report_id}"


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
