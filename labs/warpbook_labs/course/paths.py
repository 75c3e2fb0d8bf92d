"""Learning paths: labs in an order, for an afternoon, a week or a term.

A path is a file in `labs/paths/`. The person may choose one, which is kept in a file
of their own; the next lab follows it then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from warpbook_labs.errors import BadPath, NoPath
from warpbook_labs.lab.entries import LabEntry, PathEntry, PathPart
from warpbook_labs.lab.files import PATHS, UnfitFile, read_file
from warpbook_labs.lab.spec import Text
from warpbook_monitors.data_folder import data_folder

_CHOSEN = "chosen_path.json"
_MOST_BYTES = 1_000


class LabPath(Struct, frozen=True, forbid_unknown_fields=True):
    """Labs in the order in which they are done."""

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z-]{0,40}$")]
    #: its place among the paths
    number: Annotated[int, Meta(ge=1, le=999)]
    title: Text
    about: Text
    parts: Annotated[tuple[PathPart, ...], Meta(min_length=1, max_length=100)]

    @property
    def labs(self) -> tuple[str, ...]:
        """Give the ids of its labs, in order."""
        return tuple(lab for part in self.parts for lab in part.labs)


def read_paths(folder: Path = PATHS) -> tuple[LabPath, ...]:
    """Read all paths, in the order of their numbers.

    Raises:
        BadPath: one can't be used; the message names file and key.
    """
    paths = []
    for file in sorted(folder.glob("*.toml")):
        try:
            path = msgspec.toml.decode(read_file(file), type=LabPath)
        except UnfitFile as problem:
            raise BadPath(str(problem)) from None
        except msgspec.DecodeError as problem:
            raise BadPath(f"{file}: {problem}") from None
        if path.id != file.stem:
            raise BadPath(f"{file}: id: the file must be called {path.id}.toml.")
        paths.append(path)
    return tuple(sorted(paths, key=lambda path: path.number))


def path_mistakes(
    path: LabPath, labs: Sequence[LabEntry], texts: Sequence[str]
) -> Iterator[str]:
    """Name what is not there, and labs that are twice there or before what they need.

    Args:
        path: to look through.
        labs: all that are here.
        texts: ids of all texts.
    """
    by_id = {lab.id: lab for lab in labs}
    before: set[str] = set()
    for name in path.labs:
        lab = by_id.get(name)
        if lab is None:
            yield f"{path.id}: there is no lab `{name}`"
            continue
        if name in before:
            yield f"{path.id}: `{name}` is there twice"
        for needed in lab.after:
            if needed not in before:
                yield f"{path.id}: `{name}` needs `{needed}` before it"
        before.add(name)
    for name in (text for part in path.parts for text in part.texts):
        if name not in texts:
            yield f"{path.id}: there is no text `{name}`"


def find_path(name: str, folder: Path = PATHS) -> LabPath:
    """Give a path by its id.

    Raises:
        NoPath: there is none.
        BadPath: one can't be used.
    """
    paths = read_paths(folder)
    for path in paths:
        if path.id == name:
            return path
    names = ", ".join(path.id for path in paths)
    raise NoPath(f"There is no path `{name[:80]}`. There are: {names}.")


def choose_path(name: str) -> None:
    """Note which path the person follows.

    Args:
        name: its id, or "" for none.

    Raises:
        NoPath: there is none.
        OSError: it can't be written.
    """
    file = data_folder() / _CHOSEN
    if not name:
        file.unlink(missing_ok=True)
        return
    chosen = find_path(name).id
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_bytes(msgspec.json.encode(chosen))
    new.chmod(0o600)
    os.replace(new, file)


def chosen_path() -> LabPath | None:
    """Give the path that the person follows; None if they chose none that is there."""
    try:
        with (data_folder() / _CHOSEN).open("rb") as file:
            return find_path(msgspec.json.decode(file.read(_MOST_BYTES), type=str))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, NoPath, BadPath):
        return None


def along(path: LabPath | None, labs: Sequence[LabEntry]) -> tuple[LabEntry, ...]:
    """Give all labs in the order in which they are done: those of a path first.

    Args:
        path: None for the reading order.
        labs: in reading order.
    """
    places = {} if path is None else {name: at for at, name in enumerate(path.labs)}
    return tuple(sorted(labs, key=lambda lab: places.get(lab.id, len(places))))


def unmet(lab: LabEntry, labs: Sequence[LabEntry]) -> tuple[str, ...]:
    """Give the ids of labs to have done before this one that are not passed yet."""
    passed = {
        other.id
        for other in labs
        if other.progress and other.progress.state == "passed"
    }
    return tuple(name for name in lab.after if name not in passed)


def path_entry(path: LabPath, labs: Sequence[LabEntry]) -> PathEntry:
    """Say how long a path is, and how far the person is on it.

    Args:
        path: whose labs may be missing here.
        labs: all that are here.
    """
    by_id = {lab.id: lab for lab in labs}
    here = [by_id[name] for name in path.labs if name in by_id]
    states = [lab.progress.state for lab in here if lab.progress is not None]
    is_known = len(states) == len(here)
    left = [lab for lab in here if lab.progress and lab.progress.state != "passed"]
    return PathEntry(
        path.id,
        path.title,
        path.about,
        sum(lab.minutes for lab in here),
        sum(lab.minutes for lab in left) if is_known else None,
        states.count("passed") if is_known else None,
        path.parts,
    )
