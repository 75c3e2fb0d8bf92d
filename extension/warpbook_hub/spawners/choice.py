"""Which GPU a server begins with: what the form offers, and what it takes."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

#: of the form, and of the options of a server that a program starts
FIELD = "gpu"


class NotGiven(Exception):
    """The GPU can't be given; JupyterHub shows the message on the page."""

    def __init__(self, words: str) -> None:
        """Say it to JupyterHub, too."""
        super().__init__(words)
        self.jupyterhub_message = words


def form(names: Sequence[str], holders: Mapping[str, str]) -> str:
    """Offer no GPU and each of some.

    Args:
        names: of the GPUs.
        holders: of those that can't be chosen now, who has them.
    """
    options = ['<option value="">none</option>']
    for name in names:
        value = html.escape(name)
        state = ""
        if name in holders:
            state = f" disabled>{value}: {html.escape(holders[name])} has it"
        options.append(f'<option value="{value}"{state or f">{value}"}</option>')
    return (
        f'<label for="{FIELD}">A GPU, for as long as the server runs</label>\n'
        f'<select class="form-control" name="{FIELD}" id="{FIELD}">\n'
        f"{chr(10).join(options)}\n</select>"
    )


def from_form(data: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {FIELD: data.get(FIELD, [""])[0]}


def chosen(options: Mapping[str, Any], names: Sequence[str]) -> str:
    """Give the GPU that a server is to have; empty for none.

    A program's request need not come from the form, so anything may be in it.

    Raises:
        NotGiven: the GPU is none of those.
    """
    name = options.get(FIELD) or ""
    if name and name not in names:
        offered = ", ".join(names)
        raise NotGiven(f"There is no such GPU to choose. Choose none, or: {offered}.")
    return str(name)
