"""Which labs are here: warpbook's own, and those that installed packages bring.

A package names itself by an entry point, "package" or "package.folder", and has labs
there as ours are: `TRACK/LAB/lab.toml`. Nothing of it is imported to list them. What
they compute is trusted, as anything is that was installed; what a lab's folder
holds is read with the bounds that hold for anybody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.files import CATALOGUE, UnfitFile, read_file
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.spec import Lab
from warpbook_monitors import toml_text
from warpbook_monitors.plain_text import bounded

GROUP = "warpbook.catalogues"


class Catalogues(NamedTuple):
    """Folders of labs, warpbook's own first, and what is wrong with others."""

    folders: tuple[Path, ...]
    problems: tuple[str, ...]


class LabFiles(NamedTuple):
    """The `lab.toml` of every lab that has a name of its own, and who has none."""

    files: tuple[Path, ...]
    problems: tuple[str, ...]


@cache
def catalogues() -> Catalogues:
    """Return the folders, as they were when this process first asked."""
    folders, problems = [CATALOGUE], []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            folders.append(_folder(point))
        except (ImportError, ValueError, AttributeError, OSError) as problem:
            name = bounded(f"{point.name} = {point.value}", 100)
            problems.append(f"A package brings no labs ({name}): {problem}")
    return Catalogues(tuple(folders), tuple(problems))


def _folder(point: EntryPoint) -> Path:
    package, *folders = point.module.split(".")
    # of a package that is in no other, this imports nothing
    spec = find_spec(package)
    if spec is None:
        raise ValueError(f"there is no package `{bounded(package, 60)}`.")
    for place in spec.submodule_search_locations or ():
        folder = Path(place, *folders).resolve()
        if any(folder.glob("*/*/lab.toml")):
            return folder
    raise ValueError("there is no TRACK/LAB/lab.toml in it.")


def root_of(folder: Path) -> Path | None:
    """Return the catalogue that a lab is in; None of one that was not installed."""
    place, roots = folder.resolve(), catalogues().folders
    return next((root for root in roots if place.is_relative_to(root)), None)


def is_installed(folder: Path) -> bool:
    """Return whether a lab is warpbook's own, or of a package that was installed."""
    return root_of(folder) is not None


def lab_files(catalogue: Path | None = None) -> LabFiles:
    """Return every lab, of one folder or of all; who comes first keeps a name.

    So a package can't put a lab in the place of one of warpbook's.
    """
    known = catalogues()
    folders = known.folders if catalogue is None else (catalogue,)
    files: dict[str, Path] = {}
    problems = list(known.problems) if catalogue is None else []
    for file in (file for folder in folders for file in _files(folder)):
        other = files.setdefault(file.parent.name, file)
        if other is not file:
            words = f"{other.parent} has this name, and is the one that is used"
            problems.append(f"{file.parent}: {words}.")
    return LabFiles(tuple(files.values()), tuple(problems))


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("*/*/lab.toml"))


def folder_of(lab: str, catalogue: Path | None = None) -> Path | None:
    """Find a lab's folder by its id, without loading it."""
    wanted = lab.replace("-", "_")
    files = lab_files(catalogue).files
    return next((file.parent for file in files if file.parent.name == wanted), None)


def read_text(file: Path) -> str:
    """Read one of a lab's files.

    Raises:
        BadLab: it can't be read, or it is empty.
    """
    try:
        text = read_file(file)
    except UnfitFile as problem:
        raise BadLab(str(problem)) from None
    if not text.strip():
        raise BadLab(f"{file}: this file is empty.")
    return text


def read_lab(file: Path) -> Lab:
    """Read a `lab.toml`; no Python of the lab runs.

    Raises:
        BadLab: it is invalid, its folder has another name, or its language is not here.
    """
    try:
        lab = toml_text.decode(read_text(file), Lab)
    except msgspec.DecodeError as problem:
        # it names the key: "... - at `$.public[0].sizes`"
        raise BadLab(f"{file}: {problem}") from None
    if lab.folder_name != file.parent.name:
        raise BadLab(f"{file}: id: the folder must be called {lab.folder_name}.")
    try:
        language_of(lab)
    except BadLab as problem:
        raise BadLab(f"{file}: language: {problem}") from None
    return lab
