"""How long each stage of a grading took, for whoever wants to know where time went.

Times are noted while somebody has asked for them, in this process and from any of its
threads; else nothing is kept.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Literal

#: "correctness" is checked without a GPU; the rest is of the GPU, in this order
StageName = Literal[
    "correctness",
    "compile",
    "limit card",
    "quiet GPU",
    "GPU start",
    "GPU cases",
    "timed run",
    "check on the CPU",
    "sampled run",
]

_lock = threading.Lock()
_noted: dict[str, float] | None = None


@contextlib.contextmanager
def noted_stages() -> Iterator[dict[str, float]]:
    """Note the stages of what the block does; give seconds by stage."""
    global _noted
    seconds: dict[str, float] = {}
    with _lock:
        before, _noted = _noted, seconds
    try:
        yield seconds
    finally:
        with _lock:
            _noted = before


def add_stage(stage: StageName, seconds: float) -> None:
    """Add to what a stage took: it may be done more than once."""
    with _lock:
        if _noted is not None:
            _noted[stage] = _noted.get(stage, 0.0) + seconds


@contextlib.contextmanager
def stage(name: StageName) -> Iterator[None]:
    """Add what the block takes, whatever comes of it."""
    began_s = time.monotonic()
    try:
        yield
    finally:
        add_stage(name, time.monotonic() - began_s)
