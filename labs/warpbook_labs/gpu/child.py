"""A process of our own that may use one GPU, asked once and answering once."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from warpbook_monitors.python_path import NOWHERE, own_path

_MOST_WORDS = 500


class Told(NamedTuple):
    """What a process told before it ended."""

    stdout: bytes
    #: what it said last on stderr, or how it ended
    last_words: str


def run_child(
    module: str, given: bytes, uuid: str, wall_s: float, *options: str
) -> Told:
    """Run a module of ours in a process that sees one GPU.

    Args:
        module: run as `python -m`.
        given: on its stdin.
        uuid: NVML's, of the GPU.
        wall_s: after this it is killed.
        options: of the module.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *options],
            input=given,
            cwd=NOWHERE,
            env={
                **os.environ,
                "PYTHONPATH": own_path(),
                "CUDA_VISIBLE_DEVICES": uuid,
            },
            capture_output=True,
            timeout=wall_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Told(b"", f"it did not end within {wall_s:g} s.")
    words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    last = words[:_MOST_WORDS] or f"the process ended with {done.returncode}."
    return Told(done.stdout, last)
