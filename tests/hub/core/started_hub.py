"""A course's service and grader as processes, and what they said if they fell."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.hub.core.course import Classroom
from tests.hub.core.kills import LEASE_S, STUB, service_command
from tests.programs import ROOT, python_path, wait_for
from warpbook_hub.queue import graders
from warpbook_hub.work.results import Standing, standing

_LAST_LINES = 15
_SERVICE, _GRADER = "the service", "a grader"

Program = contextlib.AbstractContextManager[subprocess.Popen[bytes]]


@dataclass
class Hub:
    """A course, its service, and where that is."""

    room: Classroom
    port: int
    folder: Path
    #: what was started and not yet ended by us; any of it that has ended, fell
    programs: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def service_log(self) -> Path:
        return self.folder / "service.log"

    @property
    def grader_log(self) -> Path:
        return self.folder / "grader.log"

    @contextlib.contextmanager
    def service(self, lease_s: float = LEASE_S) -> Iterator[subprocess.Popen[bytes]]:
        command = service_command(self.room, self.port, lease_s)
        with self._noted(_SERVICE, started(command, self.service_log)) as process:
            yield process

    @contextlib.contextmanager
    def grader(
        self, *options: str, stub: bool = True, use_gpu: bool = False
    ) -> Iterator[subprocess.Popen[bytes]]:
        with self.room.database.write() as connection:
            token = graders.register(connection, self.room.now_ms, "hub", "one")
        command = [sys.executable, "-m", "warpbook_hub.grader", self.url]
        command += ["--cpu-slots", "1", *options]
        command += [] if use_gpu else ["--no-gpu"]
        if stub:
            command += ["--command", sys.executable, str(STUB)]
        with self._noted(_GRADER, started(command, self.grader_log, token)) as process:
            yield process

    def wait(self, submission: str, state: str, seconds: float = 120) -> Standing:
        def reached() -> Standing | None:
            with self.room.database.read() as connection:
                now = standing(connection, submission)
            if now.state == state:
                return now
            assert not self.fallen(), "\n".join(self.last_words())
            return None

        return wait_for(f"{submission} {state}", reached, seconds)

    def fallen(self) -> list[str]:
        """Say which of the programs have ended, and how."""
        return [
            f"{name} has ended with status {process.returncode}"
            for name, process in self.programs
            if process.poll() is not None
        ]

    def last_words(self) -> list[str]:
        """Give what has ended, and the last lines of what each program wrote."""
        lines = [f"{name}." for name in self.fallen()]
        for log in (self.service_log, self.grader_log):
            if log.exists():
                written = log.read_text(errors="replace").splitlines()
                lines += [f"{log.name}:", *(f"  {it}" for it in written[-_LAST_LINES:])]
        return lines

    @contextlib.contextmanager
    def _noted(self, name: str, program: Program) -> Iterator[subprocess.Popen[bytes]]:
        with program as process:
            noted = (name, process)
            self.programs.append(noted)
            try:
                yield process
            finally:
                self.programs.remove(noted)


@contextlib.contextmanager
def started(
    command: list[str], log: Path, token: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": python_path()},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=ROOT,
        )
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(f"{token}\n".encode())
    try:
        yield process
    finally:
        process.kill()
        process.wait()
