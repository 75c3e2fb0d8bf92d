"""`warpbook labs` in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from msgspec import Struct

from warpbook_labs.errors import LabError


class Ended(Struct, frozen=True):
    """What the command printed, and its exit code."""

    code: int | None
    stdout: bytes
    stderr: bytes

    @property
    def last_words(self) -> str:
        """The last line of its errors."""
        return self.stderr.decode(errors="replace").strip().rpartition("\n")[2]


async def run_command(cwd: Path, longest_s: float, *arguments: str) -> Ended:
    """Run `warpbook labs` with these arguments.

    Raises:
        LabError: it took longer than `longest_s` seconds.
    """
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "warpbook.cli.main", "labs"),
        *arguments,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        stdout, stderr = await asyncio.wait_for(child.communicate(), longest_s)
    except asyncio.TimeoutError:
        raise LabError(f"It took more than {longest_s:.0f} s.") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    return Ended(child.returncode, stdout, stderr)
