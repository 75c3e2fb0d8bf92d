"""Viewers in a process of their own, which count what they are sent."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path


@contextlib.contextmanager
def counting(
    program: str, order: Mapping[str, object]
) -> Iterator[Callable[..., tuple[int, float]]]:
    """Run `load.py` or `crowd.py`; give a way to ask for count and time.

    What it is called with is the line that the program is given.

    Raises:
        RuntimeError: the viewers could not connect.
    """
    load = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(program)), json.dumps(order)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(said: str = "") -> tuple[int, float]:
        assert load.stdin is not None and load.stdout is not None
        load.stdin.write(f"{said}\n")
        load.stdin.flush()
        return int(load.stdout.readline()), time.monotonic()

    try:
        assert load.stdout is not None
        if load.stdout.readline() != "0\n":
            raise RuntimeError("The viewers did not connect; see their error above.")
        yield ask
    finally:
        load.kill()
        load.communicate()
