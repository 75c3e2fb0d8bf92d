"""The real command, in a home of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

#: the installed command, beside the Python that runs the tests
COMMAND = str(Path(sys.executable).parent / "warpbook")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a person without Jupyter settings and without a GPU."""
    # found before a real one, and no library: so it is on machines with a GPU too
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libnvidia-ml.so.1").touch()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "WARPBOOK", "STUB_NVML"))
    }
    return {
        **kept,
        "HOME": str(home),
        "LD_LIBRARY_PATH": str(tmp_path / "lib"),
        "PYTHONUNBUFFERED": "1",
    }


Warpbook = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def warpbook(environment: dict[str, str], tmp_path: Path) -> Warpbook:
    """Run the command to its end, in an empty folder."""

    def run(
        *arguments: str, stdin: str | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments],
            env={**environment, **env},
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., object]:
    """Start the command, and see to it that it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [COMMAND, *arguments],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        # waits for it, and closes the pipe
        with process:
            if process.poll() is None:
                process.terminate()
