"""Texts beside the labs, for what a lab can't run: pictures, sources and questions.

A text is a folder in `labs/texts/`: `text.toml`, `text.md`, and the pictures that it
names. It is opened as a notebook, as labs are; its blocks of Python are cells to run.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from warpbook_labs.course.notebook import (
    Cell,
    code_cell,
    notebook_json,
    words_cell,
)
from warpbook_labs.course.quiz import QuizQuestion
from warpbook_labs.errors import BadText, NoText
from warpbook_labs.lab.entries import TextEntry
from warpbook_labs.lab.files import TEXTS, UnfitFile, read_file
from warpbook_labs.lab.spec import Text
from warpbook_labs.lab.texts import figures
from warpbook_monitors import toml_text

_SPEC, _TEXT = "text.toml", "text.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


class Reading(Struct, frozen=True, forbid_unknown_fields=True):
    """What `text.toml` says of a text."""

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{2,40}$")]
    #: its place among the texts
    number: Annotated[int, Meta(ge=1, le=999)]
    title: Text
    about: Text
    minutes: Annotated[int, Meta(ge=5, le=240)]
    questions: Annotated[tuple[QuizQuestion, ...], Meta(min_length=1, max_length=50)]
    #: Python that its cells import, put beside the notebook
    files: Annotated[
        tuple[Annotated[str, Meta(pattern=r"^[a-z_]{1,40}\.py$")], ...],
        Meta(max_length=10),
    ] = ()

    @property
    def entry(self) -> TextEntry:
        """Give what a list shows of it."""
        labs = tuple(dict.fromkeys(question.lab for question in self.questions))
        return TextEntry(
            self.id, self.title, self.about, self.minutes, labs, len(self.questions)
        )


def read_texts() -> tuple[Reading, ...]:
    """Read what all texts say of themselves, in the order of their numbers.

    Raises:
        BadText: one can't be used; the message names file and key.
    """
    texts = [_spec(file.parent) for file in TEXTS.glob(f"*/{_SPEC}")]
    return tuple(sorted(texts, key=lambda text: text.number))


def text_folder(name: str) -> Path | None:
    """Find a text's folder by its id."""
    file = TEXTS / name.replace("-", "_") / _SPEC
    # an id is a plain name, and leads nowhere else
    return file.parent if file.parent.parent == TEXTS and file.is_file() else None


def find_text(name: str) -> Reading:
    """Give a text by its id.

    Raises:
        NoText: there is none.
        BadText: it can't be used.
    """
    folder = text_folder(name)
    if folder is None:
        names = ", ".join(text.id for text in read_texts())
        raise NoText(f"There is no text `{name[:80]}`. There are: {names}.")
    return _spec(folder)


def open_text(name: str, place: Path) -> Path:
    """Put a text with its pictures and a notebook into a folder.

    What is there already stays as it is.

    Returns:
        The notebook.

    Raises:
        NoText: there is none.
        BadText: it can't be used.
        OSError: it can't be written.
    """
    text = find_text(name)
    folder = TEXTS / text.id.replace("-", "_")
    try:
        words = read_file(folder / _TEXT)
        beside = (*figures(words), *text.files)
        others = {name: read_file(folder / name) for name in beside}
    except UnfitFile as problem:
        raise BadText(str(problem)) from None
    cells = [
        *_cells(words),
        words_cell(
            "## Questions\n\n*GPU Labs* in the launcher has this text, and beside it "
            "its questions. In a terminal they are "
            f"`warpbook labs quiz --text {text.id}`."
        ),
    ]
    place.mkdir(parents=True, exist_ok=True)
    notebook = place / f"{text.id}.ipynb"
    files = {_TEXT: words, **others, notebook.name: notebook_json(cells, text.id)}
    for file_name, content in files.items():
        with contextlib.suppress(FileExistsError):
            with (place / file_name).open("x", encoding="utf-8") as file:
                file.write(content)
    return notebook


def _cells(words: str) -> list[Cell]:
    """Make cells of what a text says, and of its blocks of Python."""
    # words and code take turns, words first and last
    parts = enumerate(_PYTHON.split(words))
    return [
        code_cell(part) if place % 2 else words_cell(part)
        for place, part in parts
        if part.strip()
    ]


def _spec(folder: Path) -> Reading:
    file = folder / _SPEC
    try:
        text = toml_text.decode(read_file(file), Reading)
    except UnfitFile as problem:
        raise BadText(str(problem)) from None
    except msgspec.DecodeError as problem:
        raise BadText(f"{file}: {problem}") from None
    if text.id.replace("-", "_") != folder.name:
        raise BadText(f"{file}: id: the folder's name is the id with `_` for `-`.")
    return text
