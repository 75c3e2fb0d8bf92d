"""`%gpulease`: takes, extends and gives back a GPU of the class hub."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentError
from typing import Any

from IPython.display import display

from warpbook import gpu_lease
from warpbook.class_hub import HubLease, HubProblem
from warpbook.kernel.profile import Notice

_VARIABLE = "CUDA_VISIBLE_DEVICES"


def gpulease(line: str) -> None:
    """Take (`%gpulease take`), extend or return a GPU of the hub, or look."""
    try:
        options = gpu_lease.parser("%gpulease").parse_args(shlex.split(line))
        lease = gpu_lease.do(options)
    except (ArgumentError, HubProblem, ValueError) as problem:
        display(Notice(str(problem)))
        return
    except SystemExit:
        # `--help` and what argparse refuses were told by it
        return
    display(Notice(f"{gpu_lease.words(lease)}{_shown(lease)}"))


def _shown(lease: HubLease) -> str:
    """Have this kernel's CUDA see the leased GPU alone; say where it is too late."""
    before = os.environ.get(_VARIABLE)
    if lease.state != "held" or before == lease.gpu:
        return ""
    os.environ[_VARIABLE] = lease.gpu
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return " CUDA has begun in this kernel without it: restart the kernel."
    return ""
