"""A lab that the browser tests serve, with notebooks that they write."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.programs import environment, free_port, running, wait_for

BASE_URL = "/lab/x/"
TOUR = "warpbook-tour.ipynb"

#: a cell that blocks the kernel, all its threads included, from when there is a file
#: `hold`, which it takes away, until there is a file `let_go`
HOLD_THE_GIL = """\
import ctypes, pathlib, time
while not pathlib.Path("hold").exists(): time.sleep(0.1)
ctypes.PyDLL(None).system(
    b"rm hold; while [ ! -e let_go ]; do sleep 0.1; done; rm let_go")
print("held")"""

# JupyterLab asks people about news at its first start, on top of everything
_NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}
_NOTIFICATIONS = (
    ".jupyter/lab/user-settings/@jupyterlab/apputils-extension/"
    "notification.jupyterlab-settings"
)
_NO_BUILD = {"page_config_data": {"buildAvailable": False, "buildCheck": False}}


@cache
def _shared_port() -> int:
    return free_port()


class Lab:
    """`warpbook up` for a home of its own.

    One such lab runs beside the package's `lab` at a time: all have one port, where the
    browser has their scripts already.
    """

    def __init__(self, folder: Path, port: int | None = None, **env: str) -> None:
        self.notebooks = folder / "notebooks"
        self.home = folder / "home"
        self._log = folder / "lab.log"
        self._port = port or _shared_port()
        self._env = environment(HOME=str(self.home), **env)
        settings = self.home / _NOTIFICATIONS
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(_NO_NEWS))

    @contextlib.contextmanager
    def serve(self) -> Iterator[str]:
        """Run the server; give the URL that it tells the person."""
        command = [
            *(Path(sys.executable).with_name("warpbook"), "up", "--no-browser"),
            *("--port", str(self._port), "--notebooks", str(self.notebooks), "--"),
            f"--ServerApp.base_url={BASE_URL}",
            "--expose-app-in-browser",
            "--JupyterNotebookApp.expose_app_in_browser=True",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            # no build of JupyterLab is offered: asking yarn takes a while
            f"--ServerApp.tornado_settings={_NO_BUILD}",
        ]
        told_before = self._log.stat().st_size if self._log.exists() else 0
        with running(command, self._env, self._log) as server:

            def told_url() -> str | None:
                decoded = self._log.read_bytes()[told_before:].decode()
                assert server.poll() is None, f"the lab ended:\n{decoded}"
                match = re.search(r"^  Open  (http\S+)", decoded, re.MULTILINE)
                return match[1] if match else None

            yield wait_for(f"the lab, see {self._log}", told_url, 120)

    def log(self) -> str:
        """What the server has logged."""
        return self._log.read_text()

    def write_notebook(self, name: str, cells: Sequence[str]) -> str:
        """Put a notebook where the lab finds it; give its name."""
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        notebook = {
            "cells": [
                {**code, "id": f"c{index}", "metadata": {}, "source": source}
                for index, source in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        self.notebooks.mkdir(parents=True, exist_ok=True)
        (self.notebooks / name).write_text(json.dumps(notebook))
        return name
