"""Reads labs from their folders, and refuses a bad one with file and key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from warpbook_labs.errors import BadLab, KeptApart
from warpbook_labs.lab.catalogues import (
    is_installed,
    lab_files,
    read_lab,
    read_text,
    root_of,
)
from warpbook_labs.lab.edits import BadEdit, read_edited
from warpbook_labs.lab.files import CATALOGUE, HINT, VAULT, private_folder
from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.loaded import GIVEN, Cases, LoadedLab
from warpbook_labs.lab.python.own_python import (
    BadPython,
    imported_cases,
    jailed_cases,
)
from warpbook_labs.lab.spec import Lab
from warpbook_labs.lab.texts import figures


def cycles(after: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Give the ids of labs that none can begin: each waits for one of the others.

    Args:
        after: of each lab's id, the ids of labs to have done before.
    """
    waiting = {lab: set(needed) & set(after) for lab, needed in after.items()}
    while ready := {lab for lab, needed in waiting.items() if not needed}:
        waiting = {
            lab: needed - ready for lab, needed in waiting.items() if lab not in ready
        }
    return tuple(waiting)


def load_all(catalogue: Path = CATALOGUE) -> dict[str, LoadedLab]:
    """Load every lab, by id, in the order of their numbers.

    Raises:
        BadLab: one can't be used, two have the same id or number, or labs wait for
            one another.
    """
    labs: dict[str, LoadedLab] = {}
    numbers: dict[int, str] = {}
    for file in sorted(catalogue.glob("*/*/lab.toml")):
        loaded = load(file.parent)
        lab = loaded.lab
        if lab.id in labs or lab.number in numbers:
            other = lab.id if lab.id in labs else numbers[lab.number]
            raise BadLab(f"{file}: id and number must be its own; `{other}` has them.")
        labs[lab.id], numbers[lab.number] = loaded, lab.id
    waiting = cycles({name: loaded.lab.after for name, loaded in labs.items()})
    if waiting:
        file = labs[waiting[0]].folder / "lab.toml"
        names = ", ".join(waiting)
        raise BadLab(f"{file}: after: these labs wait for one another: {names}.")
    return dict(sorted(labs.items(), key=lambda pair: pair[1].lab.number))


def refuse_taken(
    loaded: LoadedLab,
    catalogue: Path | None = None,
    keys: Sequence[str] = ("id", "number"),
) -> None:
    """Refuse a lab whose id or number one of the catalogue has.

    Raises:
        BadLab: it does; what is handed in for both would be mixed up.
    """
    file = loaded.folder / "lab.toml"
    home = catalogue or root_of(loaded.folder) or CATALOGUE
    for other in lab_files(catalogue).files:
        if other.resolve() == file.resolve():
            continue
        # a number is an order, of which each catalogue has its own
        is_of_home = other.is_relative_to(home)
        try:
            lab = read_lab(other)
        except BadLab:
            if is_of_home:
                raise
            # a bad lab of another package is named where labs are listed
            continue
        for key in keys if is_of_home else ("id",):
            if getattr(lab, key) == getattr(loaded.lab, key):
                words = f"`{lab.id}` of the catalogue has it. Choose another."
                raise BadLab(f"{file}: {key}: {words}")


def load(folder: Path) -> LoadedLab:
    """Load one lab.

    Raises:
        BadLab: it can't be used.
    """
    lab = read_lab(folder / "lab.toml")
    suffix = language_of(lab).suffix
    private = private_folder(folder)
    if private is None:
        cases = _shown(folder, lab)
    else:
        cases = _cases(folder, private, lab)
    starter = read_text(folder / f"starter{suffix}")
    reference = ""
    correct: dict[str, str] = {}
    wrong: dict[str, str] = {}
    if private is not None:
        reference = read_text(private / f"reference{suffix}")
        correct = _solutions(private, "correct", suffix, {"": reference})
        bases = {Path(name).stem: text for name, text in correct.items()}
        wrong = _solutions(private, "wrong", suffix, {**bases, "": reference})
    loaded = LoadedLab(
        folder,
        lab,
        cases,
        read_text(folder / "text.md"),
        starter,
        read_text(folder / GIVEN) if (folder / GIVEN).is_file() else "",
        reference,
        "" if private is None else _baseline(folder / "lab.toml", lab, private),
        tuple(part.strip() for part in read_text(folder / "hints.md").split(HINT)),
        correct,
        wrong,
        private,
    )
    _check(loaded)
    return replace(loaded, digest=_digest(loaded))


def _digest(loaded: LoadedLab) -> str:
    """Compute what tells this lab from another of its id."""
    parts = [read_text(loaded.folder / "lab.toml"), loaded.given, loaded.reference]
    parts.append(loaded.baseline)
    if loaded.private is not None:
        parts.append(read_text(loaded.private / "cases.py"))
    return sha256(json.dumps(parts).encode()).hexdigest()


def _solutions(
    private: Path,
    kind: Literal["correct", "wrong"],
    suffix: str,
    bases: dict[str, str],
) -> dict[str, str]:
    """Read the solutions of a kind: files, and those told by how they differ."""
    sources = {}
    for file in (private / "solutions" / kind).glob("*"):
        # what an editor or Python leaves there is no solution
        if not file.is_file() or file.name.startswith("."):
            continue
        if file.suffix != suffix:
            words = f"in this language a solution's name ends in {suffix}"
            raise BadLab(f"{file}: {words}. Rename it, or put it elsewhere.")
        sources[file.name] = read_text(file)
    file = private / "solutions" / f"{kind}.toml"
    if file.exists():
        try:
            edited = read_edited(read_text(file), kind, bases)
        except BadEdit as problem:
            raise BadLab(f"{file}: {problem}") from None
        for name, source in edited.items():
            if f"{name}{suffix}" in sources:
                raise BadLab(f"{file}: {name}: there is a file of this name, too.")
            sources[f"{name}{suffix}"] = source
    return dict(sorted(sources.items()))


def _baseline(file: Path, lab: Lab, private: Path) -> str:
    name = lab.speed.baseline if lab.speed is not None else ""
    if name and not (private / name).is_file():
        raise BadLab(f"{file}: speed.baseline: `{name}` is not in the folder.")
    return read_text(private / name) if name else ""


def _cases(folder: Path, private: Path, lab: Lab) -> Cases:
    """Give the lab's own Python: only what is installed, or a grader's, is imported."""
    is_own = is_installed(folder) or private != folder
    cases = imported_cases if is_own else jailed_cases
    try:
        return cases(private / "cases.py", language_of(lab).functions)
    except BadPython as problem:
        raise BadLab(str(problem)) from None


def _shown(folder: Path, lab: Lab) -> Cases:
    """Give the cases that the lab shows, where the generator is kept apart."""

    def absent(*_: Any) -> Any:
        raise KeptApart(
            f"{lab.id}: its questions are kept apart from this machine, and {VAULT} "
            "names no folder that has them."
        )

    # the server loads this file, and no NumPy
    from warpbook_labs.lab.shown_cases import shown_functions

    try:
        functions = shown_functions(folder, lab)
    except (OSError, ValueError) as problem:
        raise BadLab(f"{folder}: the cases that it shows: {problem}") from None
    return Cases(**functions, questions=absent, judge=absent, advance=absent)


def _check(loaded: LoadedLab) -> None:
    lab, file = loaded.lab, loaded.folder / "lab.toml"
    for name in figures(loaded.text):
        if "/" in name or not (loaded.folder / name).is_file():
            raise BadLab(f"{loaded.folder}/text.md: `{name}` is not in the folder.")
    for kind in ("correct", "wrong"):
        if loaded.private is not None and not getattr(loaded, kind):
            raise BadLab(f"{loaded.private}/solutions/{kind}: there is none.")
    language = language_of(lab)
    for section in ("plan", "host"):
        if (getattr(lab, section) is not None) != (language.section == section):
            words = f"it goes with the language `{section}`, and only there"
            raise BadLab(f"{file}: {section}: {words}.")
    language.refuse_unfit(loaded)
