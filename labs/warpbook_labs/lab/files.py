"""The files of a lab's folder, which may be anybody's: bounded, plain, and its own.

Labs whose reference, solutions and generator of cases are kept apart from learners.

Such a lab has the numbers of the cases that it shows in `public.npz` in their place.
"""

from __future__ import annotations

import os
from pathlib import Path

from warpbook_monitors.plain_file import NotAPlainFile, check_plain

#: names the folder that has what was kept apart, as `warpbook labs part` writes it
VAULT = "WARPBOOK_LABS_VAULT"
#: the numbers of the cases shown; also the mark of a lab that was parted
SHOWN = "public.npz"


def private_folder(folder: Path) -> Path | None:
    """Find a lab's reference, cases and solutions; None where they are not.

    Args:
        folder: of the lab, in a folder of its track.
    """
    if not (folder / SHOWN).is_file():
        return folder
    vault = os.environ.get(VAULT)
    if not vault:
        return None
    private = Path(vault) / folder.parent.name / folder.name
    return private if (private / "cases.py").is_file() else None


_PACKAGE = Path(__file__).resolve().parents[1]
#: labs are data: beside the package in a checkout, within it where it is installed
_DATA = _PACKAGE if (_PACKAGE / "catalogue").is_dir() else _PACKAGE.parent
CATALOGUE, TEMPLATE, TOUR, QUIZZES, TEXTS = (
    _DATA / name for name in ("catalogue", "template", "tour", "quiz", "texts")
)
#: between the hints of a lab's `hints.md`
HINT = "\n---\n"
#: more than any text, source or picture of a lab needs
MOST_BYTES = 4 << 20


class UnfitFile(ValueError):
    """It can't be read as a part of a lab; the message says why, and names the file."""


def read_file(file: Path) -> str:
    """Read a text of a lab.

    Raises:
        UnfitFile: it is missing, no plain file, a link out of the lab's folder, too
            large, or no text.
    """
    try:
        check_plain(file)
        if not file.resolve().is_relative_to(file.parent.resolve()):
            raise UnfitFile(f"{file}: it links to a file outside of the lab.")
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise UnfitFile(f"{file}: this file is missing.") from None
    except NotAPlainFile:
        raise UnfitFile(f"{file}: this is not a regular file.") from None
    except OSError as problem:
        raise UnfitFile(f"{file}: {problem.strerror}.") from None
    if len(content) > MOST_BYTES:
        raise UnfitFile(f"{file}: it has more than {MOST_BYTES >> 20} MiB.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UnfitFile(f"{file}: this is no text in UTF-8.") from None
