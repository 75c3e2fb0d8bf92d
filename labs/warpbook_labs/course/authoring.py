"""Writes a catalogue for learners, and apart from it what they need not see.

Begins a lab: a small one that is complete, to be changed piece by piece.

`template/` has what labs of all languages begin with, and a folder for each language.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.catalogues import folder_of
from warpbook_labs.lab.files import CATALOGUE, SHOWN, TEMPLATE
from warpbook_labs.lab.languages.table import LANGUAGES, language_of
from warpbook_labs.lab.loaded import GIVEN, LoadedLab
from warpbook_labs.lab.loader import load_all
from warpbook_labs.lab.shown_cases import shown_numbers
from warpbook_labs.lab.texts import figures

_ID = re.compile(r"[a-z][a-z0-9-]{2,40}")


def new_lab(name: str, folder: Path, language: str = "cuda") -> Path:
    """Write a lab that `validate` accepts; give its folder.

    Raises:
        BadLab: the id is none, the catalogue has it, or the folder is there.
    """
    if not _ID.fullmatch(name):
        raise BadLab(
            f"`{name}` is no id: small letters, digits and hyphens, a letter first, 3 "
            "to 41 of them."
        )
    place = folder / name.replace("-", "_")
    if folder_of(name) is not None:
        raise BadLab(f"The catalogue has a lab `{name}`: choose another id.")
    others = shutil.ignore_patterns("__pycache__", *LANGUAGES)
    try:
        shutil.copytree(TEMPLATE, place, ignore=others)
    except FileExistsError:
        raise BadLab(f"{place} is there already, and stays as it is.") from None
    shutil.copytree(TEMPLATE / language, place, ignore=others, dirs_exist_ok=True)
    specification = place / "lab.toml"
    text = specification.read_text(encoding="utf-8")
    specification.write_text(text.replace("LAB-ID", name), encoding="utf-8")
    return place


def part(learners: Path, vault: Path, catalogue: Path = CATALOGUE) -> list[str]:
    """Part every lab; give their ids.

    Args:
        learners: is made: text, starter, hints, and the cases that labs show.
        vault: is made: references, solutions and generators of cases.

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
