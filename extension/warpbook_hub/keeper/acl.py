"""The access list of a device node: which accounts may open it beside its owner.

It is read and written as the kernel keeps it, in the attribute
`system.posix_acl_access`: no program such as `setfacl` need be there.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import NamedTuple

_ATTRIBUTE = "system.posix_acl_access"
_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_NO_ID = 0xFFFFFFFF
_OWNER, _USER, _OWN_GROUP, _GROUP, _MASK, _OTHERS = 1, 2, 4, 8, 16, 32
_READ_WRITE = 6
#: what the mask bounds
_MASKED = (_USER, _OWN_GROUP, _GROUP)


class _Entry(NamedTuple):
    tag: int
    permissions: int
    id: int


def users(path: str) -> set[int]:
    """Give the accounts that the list names, whether its mask lets them in or not.

    Raises:
        OSError: the node is not there, or has no lists.
    """
    return {entry.id for entry in _read(path) if entry.tag == _USER}


def let_in(path: str, uid: int) -> None:
    """Let an account read and write.

    Raises:
        OSError: the node is not there, or takes no list.
    """
    entries = [entry for entry in _read(path) if entry[::2] != (_USER, uid)]
    _write(path, [*entries, _Entry(_USER, _READ_WRITE, uid)])


def is_let_in(path: str, uid: int) -> bool:
    """Whether an account may read and write, after what `chmod` did to the mask.

    Raises:
        OSError: the node is not there.
    """
    entries = _read(path)
    masks = [entry.permissions for entry in entries if entry.tag == _MASK]
    mask = masks[0] if masks else _READ_WRITE
    return any(
        entry.permissions & mask & _READ_WRITE == _READ_WRITE
        for entry in entries
        if entry.tag == _USER and entry.id == uid
    )


def shut_out(path: str, uid: int) -> None:
    """Take an account off the list.

    Raises:
        OSError: the node is not there.
    """
    entries = [entry for entry in _read(path) if entry[::2] != (_USER, uid)]
    _write(path, entries)


def _read(path: str) -> list[_Entry]:
    try:
        packed = os.getxattr(path, _ATTRIBUTE)
    except OSError as problem:
        if problem.errno != errno.ENODATA:
            raise
        # without a list the mode says it all
        mode = stat.S_IMODE(os.stat(path).st_mode)
        return [
            _Entry(_OWNER, mode >> 6 & 7, _NO_ID),
            _Entry(_OWN_GROUP, mode >> 3 & 7, _NO_ID),
            _Entry(_OTHERS, mode & 7, _NO_ID),
        ]
    return [_Entry(*entry) for entry in _ENTRY.iter_unpack(packed[_VERSION.size :])]


def _write(path: str, entries: list[_Entry]) -> None:
    kept = [entry for entry in entries if entry.tag != _MASK]
    if any(entry.tag in (_USER, _GROUP) for entry in kept):
        # as `setfacl` does: the mask lets through what the entries give
        mask = 0
        for entry in kept:
            mask |= entry.permissions if entry.tag in _MASKED else 0
        kept.append(_Entry(_MASK, mask, _NO_ID))
    # the kernel takes them in this order only
    kept.sort(key=lambda entry: (entry.tag, entry.id))
    packed = b"".join(_ENTRY.pack(*entry) for entry in kept)
    os.setxattr(path, _ATTRIBUTE, _VERSION.pack(2) + packed)
