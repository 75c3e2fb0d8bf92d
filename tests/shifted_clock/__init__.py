"""Sets the clocks of a process that a test starts, and of nobody else."""

from __future__ import annotations

import mmap
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("shiftedclock.c")


class ShiftedClock:
    """What a process started with `env` takes for the time; compiled here."""

    def __init__(self, folder: Path) -> None:
        library, shifts = folder / "shiftedclock.so", folder / "shifts"
        subprocess.run(
            [
                *("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
                *("-o", library, SOURCE, "-ldl"),
            ],
            check=True,
        )
        shifts.write_bytes(bytes(16))
        with shifts.open("r+b") as file:
            self._shifts = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")
        #: what a process needs to run on this clock
        self.env = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(shifts)}

    def set(self, seconds: int) -> None:
        """Set the wall clock ahead of its true time, or behind it."""
        self._shifts[0] = seconds

    def sleep(self, seconds: int) -> None:
        """Have the machine sleep for so long, at once."""
        self._shifts[1] += seconds
