"""What a backup of this version holds: nothing else is packed, or taken from one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from warpbook.backup.databases import renew_archive, renew_labs
from warpbook.backup.manifest import MAX_NAME, BackupError
from warpbook_labs.course.progress import FILE_NAME as LABS_FILE
from warpbook_monitors import toml_text
from warpbook_monitors.alerts.rules import FILE_NAME as RULES_FILE
from warpbook_monitors.alerts.rules import read_rules
from warpbook_monitors.archive.database import FILE_NAME as ARCHIVE_FILE
from warpbook_monitors.archive.place import FOLDER_NAME
from warpbook_monitors.errors import RulesError

_DATA, _CONFIG = "data/", "config/"
#: what stands for `*`: a folder's name as one of ours can be
_PART = "[A-Za-z0-9][A-Za-z0-9._+@=,-]{0,79}"
_MAX_DATABASE_BYTES = 2**40


class Content(NamedTuple):
    """A kind of member."""

    #: "data/" is the data folder, "config/" Jupyter's settings; `*` is one folder
    name: str
    is_database: bool
    max_bytes: int
    #: opens a file as what it is; a database is made anew of its rows
    check: Callable[[Path], None]


class Places(NamedTuple):
    """Where a person's things are."""

    data: Path
    rules: Path

    def path(self, name: str) -> Path:
        """Say where a member belongs."""
        is_rules = name.startswith(_CONFIG)
        return self.rules if is_rules else self.data / name.removeprefix(_DATA)

    def names(self, known: Content) -> list[str]:
        """Give the names that files of a kind have in a backup."""
        if not known.name.startswith(_DATA):
            return [known.name] if self.rules.is_file() else []
        paths = self.data.glob(known.name.removeprefix(_DATA))
        return sorted(
            f"{_DATA}{path.relative_to(self.data).as_posix()}"
            for path in paths
            if path.is_file()
        )


def _check_rules(path: Path) -> None:
    try:
        read_rules(path)
    except RulesError as error:
        raise BackupError(f"it is refused: {error.reason}") from None


KNOWN = (
    Content(f"{_CONFIG}{RULES_FILE}", False, toml_text.MOST_BYTES, _check_rules),
    Content(f"{_DATA}{LABS_FILE}", True, _MAX_DATABASE_BYTES, renew_labs),
    Content(
        f"{_DATA}{FOLDER_NAME}/*/{ARCHIVE_FILE}",
        True,
        _MAX_DATABASE_BYTES,
        renew_archive,
    ),
)

#: by the first part of its name: what the data folder has besides, and how it comes
MADE_ANEW = {
    "trusted_labs.json": "you are asked again whether you trust a lab",
    "limits": "`warpbook limits` measures them again",
    "limit_cards": "the next timed submission measures them again",
    "programs": "kernels are compiled again",
    "hub": "passwords, keys and programs of a class are made by `warpbook hub`; its "
    "course has backups of its own, on its page Data",
}


def known_of(name: str) -> Content | None:
    """Give the kind of a member; None where this version knows none."""
    for known in KNOWN:
        pattern = _PART.join(map(re.escape, known.name.split("*")))
        if len(name) <= MAX_NAME and re.fullmatch(pattern, name, re.ASCII):
            return known
    return None


def left_out(name: str) -> str:
    """Say in a line why a member of no known kind is not taken."""
    first = name.removeprefix(_DATA).partition("/")[0]
    if name.startswith(_DATA) and first in MADE_ANEW:
        return f"{_DATA}{first}: {MADE_ANEW[first]}"
    return f"{name!r}, which is not ours"
