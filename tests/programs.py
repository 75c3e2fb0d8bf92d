"""Programs that tests start: found, awaited with a deadline, never left behind."""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import psutil
import requests

from warpbook_monitors.python_path import own_path

ROOT = Path(__file__).resolve().parent.parent
#: in the environment of all that a test starts, and of what that starts in turn
MARK = "WARPBOOK_TEST_RUN"

T = TypeVar("T")


def program(name: str) -> Path:
    """Find one of the programs that `make setup-test` puts at a known place."""
    file = ROOT / ".cache" / "bin" / name
    assert file.exists(), f"there is no {file}: run `make setup-test`"
    return file


def free_port(count: int = 1) -> int:
    """Give a TCP port that nobody listens on now, the first of `count` in a row.

    No other test gets it while this process lives. It lies below those that Linux gives
    to whoever asks for any port, or somebody would have been given it before it is
    listened on.
    """
    given = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    below = max(int(given.split()[0]), 12_000) - count
    while True:
        first = random.SystemRandom().randrange(10_000, below)
        with contextlib.ExitStack() as claims, contextlib.suppress(OSError):
            for port in range(first, first + count):
                # an abstract name: it goes with its process
                claim = claims.enter_context(socket.socket(socket.AF_UNIX))
                claim.bind(f"\0warpbook-test-port-{port}")
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", port))
            atexit.register(claims.pop_all().close)
            return first


def wait_for(what: str, attempt: Callable[[], T | None], seconds: float = 120) -> T:
    """Try until it gives something; say what never came."""
    deadline = time.monotonic() + seconds
    while (given := attempt()) is None:
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.1)
    return given


def answers(url: str) -> bool | None:
    """Whether something answers well there; None to ask again."""
    with contextlib.suppress(requests.RequestException), requests.Session() as session:
        # a proxy in the environment is not for us
        session.trust_env = False
        return session.get(url, timeout=5).ok or None
    return None


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], env: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for a while; at the end it and all that it started are gone."""
    mark = secrets.token_hex(8)
    with log.open("ab") as output:
        server = subprocess.Popen(
            command,
            env={**env, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield server
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(60)
        _kill_marked(mark)
        server.wait()


def environment(**more: str) -> dict[str, str]:
    """Give an environment without the settings of whoever runs the tests."""
    ours = ("JUPYTER", "WARPBOOK", "STUB_NVML", "PYTHONPATH", "IPYTHON", "BOKEH")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return {**kept, "PATH": path, **more}


def python_path() -> str:
    """Give PYTHONPATH for a module that is run with `-m`, of the tests or of ours.

    What this process imports from is in it: packages may lie in a folder that only its
    own PYTHONPATH names, as on a machine where nothing can be installed.
    """
    return os.pathsep.join([str(ROOT), own_path()])


def _kill_marked(mark: str) -> None:
    """Kill by the mark, not by parent: a child outlives a parent that died."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.environ().get(MARK) == mark:
                process.kill()
