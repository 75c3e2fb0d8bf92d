"""Writes a catalogue for learners, and apart from it what they need not see."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import GIVEN, LoadedLab
from warpbook_labs.lab.loader import load_all
from warpbook_labs.lab.shown_cases import shown_numbers
from warpbook_labs.lab.texts import figures
from warpbook_labs.lab.vault import SHOWN


def part(learners: Path, vault: Path, catalogue: Path = CATALOGUE) -> list[str]:
    """Part every lab; give their ids.

    Args:
        learners: is made: text, starter, hints, and the cases that labs show.
        vault: is made: references, solutions and generators of cases.
        catalogue: labs that are whole.

    Raises:
        BadLab: one can't be used.
        FileExistsError: one of the folders is there already.
        OSError: one can't be written.
    """
    labs = load_all(catalogue)
    for folder in (learners, vault):
        folder.mkdir(parents=True)
    for loaded in labs.values():
        at = Path(loaded.folder.parent.name) / loaded.folder.name
        _part(loaded, learners / at, vault / at)
    return list(labs)


def _part(loaded: LoadedLab, learners: Path, vault: Path) -> None:
    if loaded.private is None:
        raise FileNotFoundError(f"{loaded.folder}: what is private of it is not here.")
    shown = {
        "lab.toml",
        "text.md",
        "hints.md",
        f"starter{language_of(loaded.lab).suffix}",
    }
    shown |= set(figures(loaded.text)) | ({GIVEN} if loaded.given else set())
    learners.mkdir(parents=True)
    for name in shown:
        shutil.copyfile(loaded.folder / name, learners / name)
    # whatever else is there, its own Python may want
    vault.mkdir(parents=True)
    for path in loaded.private.iterdir():
        if path.is_dir() and path.name != "__pycache__":
            nothing = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, vault / path.name, ignore=nothing)
        elif path.is_file() and path.name not in shown:
            shutil.copyfile(path, vault / path.name)
    numbers: dict[str, Any] = dict(shown_numbers(loaded.lab, loaded.cases))
    np.savez_compressed(learners / SHOWN, **numbers)
