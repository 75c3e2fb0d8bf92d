"""Where Ray keeps its sockets and logs: a folder that only its account enters.

Ray makes its own folders open to all accounts of a machine, and a learner there could
put another socket in place of one that a grader connects to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

#: short: the name of a socket has 107 bytes at most, and Ray's own part has 70
_PLACE = Path("/tmp")


def private_folder(place: Path = _PLACE) -> Path:
    """Give the folder of this account, made if it is not there.

    Raises:
        PermissionError: another account has taken its name.
        OSError: it can't be made.
    """
    folder = place / f"warpbook-ray-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        known = folder.lstat()
        is_ours = stat.S_ISDIR(known.st_mode) and known.st_uid == os.geteuid()
        if not is_ours:
            raise PermissionError(
                f"{folder} is another account's. Look for whose, and remove it."
            ) from None
    folder.chmod(0o700)
    return folder / "ray"
