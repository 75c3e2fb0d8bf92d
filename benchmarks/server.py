"""A Jupyter server in a process of its own, for one measurement."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType

_START_TIMEOUT_S = 60


class Server:
    """Starts `jupyter server` of an environment; ends it with the context."""

    def __init__(
        self,
        python: Path,
        folder: Path,
        env: dict[str, str],
        options: tuple[str, ...] = (),
    ) -> None:
        """Start it with a fresh home in `folder`, and wait until it answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.token = secrets.token_hex(16)
        self.url = f"http://127.0.0.1:{self.port}/bench/"
        home = folder / "home"
        home.mkdir()
        self._process = subprocess.Popen(
            [
                python,
                *("-m", "jupyter_server", "--no-browser", "--allow-root"),
                f"--port={self.port}",
                "--ServerApp.base_url=/bench/",
                f"--IdentityProvider.token={self.token}",
                f"--ServerApp.root_dir={home}",
                "--ServerApp.log_level=ERROR",
                *options,
            ],
            env={**os.environ, **env, "HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid
        self._wait()

    def __enter__(self) -> Server:
        """Give the server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill it: there is nothing to keep."""
        self._process.kill()
        self._process.wait()

    def _wait(self) -> None:
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            try:
                urllib.request.urlopen(f"{self.url}api", timeout=1).close()
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        raise TimeoutError("The server does not answer.")
