"""A notebook as JSON, without outputs and without Jupyter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Cell = dict[str, Any]


def notebook_json(cells: Sequence[Cell], name: str) -> str:
    """Write a notebook.

    Args:
        cells: from `words_cell` and `code_cell`.
        name: ids of cells begin with it.
    """
    numbered = [
        {**cell, "id": f"{name[:40]}-{number:02}"} for number, cell in enumerate(cells)
    ]
    content = {
        "cells": numbered,
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def words_cell(text: str) -> Cell:
    """Make a cell of Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def code_cell(text: str) -> Cell:
    """Make a cell of code that has not run."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _lines(text),
    }


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines(keepends=True)
