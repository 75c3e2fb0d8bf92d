"""Where processes of ours find their modules: never in the folder of somebody's work.

`python -m` looks in the folder that it is started in first, and a `random.py` or a
`numpy.py` that lies there would be run in place of the library, outside any sandbox.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: a folder to start in that holds no module of anybody's
NOWHERE = os.path.abspath(os.sep)
_OURS = Path(__file__).resolve().parents[1]


def own_path() -> str:
    """Give PYTHONPATH for a process that is started in `NOWHERE`.

    It has what this process imports from, so what is not installed is found, too; but
    not the folder that this one happens to be in, unless this package lies there.
    """
    try:
        here = Path.cwd().resolve()
    except FileNotFoundError:
        here = None
    places = [Path(folder).resolve() for folder in sys.path if folder]
    return os.pathsep.join(
        str(place) for place in places if place != here or place == _OURS
    )
