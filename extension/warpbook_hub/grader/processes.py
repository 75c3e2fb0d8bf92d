"""Processes that grade: how they are started and ended, and the next ones, waiting."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Sequence

import psutil

from warpbook_hub.running.accounts import as_user
from warpbook_monitors.python_path import NOWHERE, own_path

#: what a process that grades may know of ours; no token is among it
_KEPT_NAMES = ("PATH", "LANG", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONMALLOC")
_KEPT_PREFIXES = ("LC_", "XDG_", "NVIDIA_", "WARPBOOK_LABS_", "WARPBOOK_HUB_LABS")


class Spares:
    """For each GPU one process that has started, and waits for its job.

    Python, the labs and the compiler take seconds to start, in which a GPU would idle
    between two jobs. Each process still does one job, and sees one GPU.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Take what grades a job; it is given the lab to get ready for."""
        self._command = tuple(command)
        self._waiting: dict[str, subprocess.Popen[bytes]] = {}

    def take(self, device: str) -> subprocess.Popen[bytes] | None:
        """Give the process that waits for a job on a GPU; None if none does."""
        spare = self._waiting.pop(device, None)
        if spare is not None and spare.poll() is not None:
            _discard(spare)
            return None
        return spare

    def prepare(self, device: str, lab: str) -> None:
        """Start one for the next job on a GPU, which is likely of the same lab.

        It ends with the thread that calls this, which is to be the grader's main one.
        """
        if not device or device in self._waiting:
            return
        with contextlib.suppress(OSError):
            self._waiting[device] = started((*self._command, lab), device)

    def close(self) -> None:
        while self._waiting:
            _, spare = self._waiting.popitem()
            _discard(spare)


def _discard(spare: subprocess.Popen[bytes]) -> None:
    with spare:
        end_tree(spare)


def started(
    command: Sequence[str], device: str, user: str = ""
) -> subprocess.Popen[bytes]:
    """Start a process that reads an order on stdin.

    Args:
        command: the program.
        device: UUIDs of the GPUs that it may use, with commas; empty for none.
        user: the account that it has; ours if empty.

    Raises:
        OSError: it can't be started, or not as that account.
        LookupError: there is no such account.
    """
    home = {"HOME": pwd.getpwnam(user).pw_dir} if user else {}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=NOWHERE,
        env=environment(device) | home,
        start_new_session=True,
        **as_user(user),
    )


def environment(device: str) -> dict[str, str]:
    """Give a process that grades what it needs to know of ours.

    Args:
        device: UUIDs of the GPUs that it may use, with commas; empty for none.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT_NAMES or name.startswith(_KEPT_PREFIXES)
    }
    return {**kept, "CUDA_VISIBLE_DEVICES": device, "PYTHONPATH": own_path()}


def end_tree(child: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, in whatever session."""
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(child.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        for process in below:
            with contextlib.suppress(psutil.Error):
                process.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
