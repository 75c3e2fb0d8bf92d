"""The file of a lab's source: what a cell wrote there, and which version is checked."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.sources import with_cell_line, without_cell_line


def place_of(lab: str, folder: str | None = None) -> Path:
    """Give the lab's folder below another one, which may be it already."""
    here = Path(os.getcwd() if folder is None else folder)
    return here if here.resolve().name == lab else here / lab


class _Version(NamedTuple):
    text: str
    at_s: float


class SourceLog:
    """Which version of each file a cell of this kernel wrote, and which was checked."""

    def __init__(self) -> None:
        self._written: dict[Path, _Version] = {}
        self._checked: dict[Path, _Version] = {}

    def note_written(self, file: Path, text: str) -> None:
        self._written[file.resolve()] = _Version(text, time.time())

    def note_checked(self, file: Path, text: str) -> None:
        self._checked[file.resolve()] = _Version(text, time.time())

    def is_written(self, file: Path, text: str) -> bool:
        """Tell whether a cell of this kernel wrote this version."""
        written = self._written.get(file.resolve())
        return written is not None and written.text == text

    def words(self, file: Path, text: str) -> str:
        """Say which version of a file is graded, by the time it was written.

        Args:
            file: of the source.
            text: as it was read.
        """
        written = self._written.get(file.resolve())
        if written is not None and written.text == text:
            words = f"as its cell wrote it at {_clock(written.at_s)}."
        else:
            try:
                changed = f"last changed at {_clock(file.stat().st_mtime)}"
            except OSError:
                changed = "changed at a time that is not known"
            if written is None:
                words = f"{changed}; no %%lab cell of it has run in this kernel."
            else:
                words = f"{changed}, after its cell wrote it."
        checked = self._checked.get(file.resolve())
        if checked is not None and checked.text == text:
            words += (
                f" It is unchanged since the check at {_clock(checked.at_s)}: edits in "
                "a cell count once the cell is run."
            )
        return f"Source: {file.name}, {words}"


#: of this kernel
source_log = SourceLog()


def keep_source(loaded: LoadedLab, cell: str) -> tuple[Path, str]:
    """Write a lab's source; a version that nobody else holds is put aside.

    Args:
        loaded: the lab.
        cell: what its cell holds, below the line of the magic.

    Returns:
        The file, and the name of the one with what was there before, or "".
    """
    place = place_of(loaded.lab.id)
    place.mkdir(parents=True, exist_ok=True)
    file = place / language_of(loaded.lab).source_name
    # an empty source stays one
    source = with_cell_line(loaded.lab, cell) if cell.strip() else cell
    before = None
    if file.exists():
        before = file.read_text(encoding="utf-8", errors="surrogateescape")
    aside = ""
    if before is not None and not source_log.is_written(file, before):
        if without_cell_line(before) not in (cell, loaded.starter):
            aside = _put_aside(file, before)
    file.write_text(source, encoding="utf-8")
    source_log.note_written(file, source)
    return file, aside


def _put_aside(file: Path, text: str) -> str:
    number = 1
    while True:
        other = file.with_name(f"{file.stem}.before-{number}{file.suffix}")
        try:
            with other.open("x", encoding="utf-8", errors="surrogateescape") as kept:
                kept.write(text)
            return other.name
        except FileExistsError:
            number += 1


def _clock(at_s: float) -> str:
    """Write a time of today without the date."""
    at, today = time.localtime(at_s), time.localtime()
    is_today = at[:3] == today[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", at)
