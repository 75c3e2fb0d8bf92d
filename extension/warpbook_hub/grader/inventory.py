"""Which labs this machine can grade, found in a process of its own.

`python -m warpbook_hub.grader.inventory` writes them as JSON: labs bring their Python,
of which nothing is loaded beside a grader's token.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from warpbook.hub_protocol import GRADER_MESSAGE_BYTES, GradableLab
from warpbook_hub.grader.processes import environment
from warpbook_labs.lab.catalogues import catalogues
from warpbook_labs.lab.files import VAULT
from warpbook_monitors.python_path import NOWHERE

#: names a folder with a course's own labs, each in a folder of its track
OWN_LABS = "WARPBOOK_HUB_LABS"
_COMMAND = (sys.executable, "-m", "warpbook_hub.grader.inventory")
_LOOK_S, _MOST_S = 10.0, 120.0
_decode = msgspec.json.Decoder(tuple[GradableLab, ...]).decode


def lab_files() -> Iterator[Path]:
    """Give the `lab.toml` of all labs, the course's own first."""
    own = os.environ.get(OWN_LABS)
    for catalogue in (*([Path(own)] if own else []), *catalogues().folders):
        yield from sorted(catalogue.glob("*/*/lab.toml"))


def _newest_change() -> tuple[int, int]:
    """Return when a file of a lab was last changed, and how many files there are."""
    folders = {file.parent for file in lab_files()}
    vault = os.environ.get(VAULT)
    if vault:
        folders |= {Path(vault, one.parent.name, one.name) for one in folders}
    times = [
        entry.stat().st_mtime_ns
        for folder in folders
        if folder.is_dir()
        for entry in os.scandir(folder)
    ]
    return max(times, default=0), len(times)


class Inventory:
    """The labs, as they are now: read anew when a file of one has changed."""

    def __init__(self) -> None:
        self._labs: tuple[GradableLab, ...] | None = None
        self._seen: object = None
        self._look_s = 0.0
        self._reader: threading.Thread | None = None

    def labs(self) -> tuple[GradableLab, ...] | None:
        """Return what was found last; None before."""
        is_reading = self._reader is not None and self._reader.is_alive()
        if not is_reading and time.monotonic() >= self._look_s:
            self._look_s = time.monotonic() + _LOOK_S
            newest = _newest_change()
            if newest != self._seen:
                self._seen = newest
                self._reader = threading.Thread(target=self._read, daemon=True)
                self._reader.start()
        return self._labs

    def _read(self) -> None:
        try:
            done = subprocess.run(
                _COMMAND,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=NOWHERE,
                env=environment(""),
                timeout=_MOST_S,
                check=True,
            )
            self._labs = _decode(done.stdout[:GRADER_MESSAGE_BYTES])
        except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
            # not known is what the hub says then
            self._labs = None


def main() -> None:
    """Write what can be graded here."""
    from warpbook_hub.grader.labs import gradable_labs

    # what a library prints is no part of the answer
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with answer:
        answer.write(msgspec.json.encode(gradable_labs()))


if __name__ == "__main__":
    main()
