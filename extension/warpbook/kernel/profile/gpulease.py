"""`%gpulease`: takes, extends and gives back a GPU of the class hub."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import os
import sys
from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from warpbook import gpu_lease
from warpbook.hub_client import HubProblem
from warpbook.hub_protocol import OwnLease
from warpbook.kernel.runs.profile import Notice

_VARIABLE = "CUDA_VISIBLE_DEVICES"


@magic_arguments()
@argument("action", nargs="?", choices=gpu_lease.ACTIONS, default="status")
@argument("--minutes", type=int, default=20, help="10 to 30")
@argument("--gpu", default="", metavar="NAME", help="any if left out")
@argument("--course", default="", metavar="ID", help="if you are of several")
@argument("--wait", action="store_true", help="until it is there, however long")
def gpulease(line: str) -> None:
    """Take, extend or return a GPU of the class hub, or say how it stands."""
    options = parse_argstring(gpulease, line)
    try:
        lease = gpu_lease.do(options)
    except HubProblem as problem:
        display(Notice(str(problem)))
        return
    display(Notice(f"{gpu_lease.words(lease)}{_shown(lease)}"))


def _shown(lease: OwnLease) -> str:
    """Have this kernel's CUDA see the leased GPU alone; say where it is too late."""
    before = os.environ.get(_VARIABLE)
    if lease.state != "held" or before == lease.gpu:
        return ""
    os.environ[_VARIABLE] = lease.gpu
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return " CUDA has begun in this kernel without it: restart the kernel."
    return ""
