"""Opens a lab: puts its text, its pictures, a starter and a notebook into a folder."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from warpbook_labs.course.notebook import notebook, task_words
from warpbook_labs.errors import BadLab, BadSource
from warpbook_labs.lab.cell_source import without_cell_line
from warpbook_labs.lab.files import UnfitFile, read_file
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import GIVEN, LoadedLab
from warpbook_labs.lab.sources import read_source
from warpbook_labs.lab.texts import figures


@dataclass(frozen=True)
class Opened:
    """Where the learner's files of a lab are."""

    source: Path
    notebook: Path


def open_lab(loaded: LoadedLab, place: Path) -> Opened:
    """Put what a learner needs into a folder; what is there already stays as it is."""
    place.mkdir(parents=True, exist_ok=True)
    source = place / language_of(loaded.lab).source_name
    _put(source, loaded.starter)
    # on a terminal there is no notebook that has it
    _put(place / "text.md", f"{loaded.text.rstrip()}\n\n{task_words(loaded)}\n")
    if loaded.given:
        _put(place / GIVEN, loaded.given)
    for name in figures(loaded.text):
        _put(place / name, _figure(loaded.folder / name))
    # who has begun on a terminal goes on with the same source
    held = loaded.starter
    with contextlib.suppress(BadSource):
        held = without_cell_line(read_source(source))
    written = place / f"{loaded.lab.id}.ipynb"
    _put(written, notebook(loaded, held))
    return Opened(source, written)


def _figure(file: Path) -> str:
    try:
        return read_file(file)
    except UnfitFile as problem:
        raise BadLab(str(problem)) from None


def _put(file: Path, text: str) -> None:
    with contextlib.suppress(FileExistsError), file.open("x", encoding="utf-8") as kept:
        kept.write(text)
