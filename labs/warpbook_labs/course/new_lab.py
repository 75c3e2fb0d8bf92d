"""Begins a lab: a small one that is complete, to be changed piece by piece.

`template/` has what labs of all languages begin with, and a folder for each language.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.catalogues import folder_of
from warpbook_labs.lab.files import TEMPLATE
from warpbook_labs.lab.languages.table import LANGUAGES

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
