"""Which folders of labs the person trusts: those of others are asked about once.

A lab's own Python runs in the jail whoever wrote it. Its text, pictures and notebook
are put beside the person's own, and its kernels run on their GPU.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from warpbook_monitors.data_folder import data_folder

_FILE_NAME = "trusted_labs.json"
_MOST_BYTES = 1 << 20
_decode = msgspec.json.Decoder(tuple[str, ...]).decode


def is_trusted(folder: Path) -> bool:
    """Whether the person has said that they trust a lab in this folder."""
    return str(folder.resolve()) in _trusted()


def trust(folder: Path) -> None:
    """Note that the person trusts what is in a folder.

    Raises:
        OSError: it can't be written.
    """
    file = data_folder() / _FILE_NAME
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders = sorted({*_trusted(), str(folder.resolve())})
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_bytes(msgspec.json.encode(folders))
    new.chmod(0o600)
    os.replace(new, file)


def _trusted() -> tuple[str, ...]:
    try:
        with (data_folder() / _FILE_NAME).open("rb") as file:
            return _decode(file.read(_MOST_BYTES))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        # what can't be read trusts nobody
        return ()
