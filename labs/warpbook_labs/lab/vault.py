"""Labs whose reference, solutions and generator of cases are kept apart from learners.

Such a lab has the numbers of the cases that it shows in `public.npz` in their place.
"""

from __future__ import annotations

import os
from pathlib import Path

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
