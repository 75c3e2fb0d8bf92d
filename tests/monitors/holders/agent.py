"""The agent as a process, and holders of GPUs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.programs import environment, free_port, running
from tests.stub_nvml import StubNvml
from warpbook_monitors.python_path import own_path


@contextlib.contextmanager
def agent(
    folder: Path, stub: StubNvml, *options: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run `warpbook agent`; give the process and the address of its metrics."""
    port = free_port()
    command = [sys.executable, "-m", "warpbook.cli.main", "agent", f"--port={port}"]
    env = environment(**stub.env, PYTHONPATH=own_path(), HOME=str(folder))
    with running([*command, *options], env, folder / "agent.log") as process:
        yield process, f"http://127.0.0.1:{port}/metrics"


@contextlib.contextmanager
def process_of(user: str | None, **variables: str) -> Iterator[int]:
    """Run something as an account of this machine, with variables of its own."""
    own: dict[str, Any] = {}
    if user is not None:
        own = {"user": user, "group": user, "extra_groups": []}
    child = subprocess.Popen(
        ["sleep", "600"], env={"PATH": os.defpath, **variables}, **own
    )
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()
