"""The agent as a process, a hub that keeps what it is sent, and holders of GPUs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from tests.programs import environment, free_port, running
from tests.stub_nvml import StubNvml
from warpbook_monitors.holders.node_protocol import Intervals
from warpbook_monitors.python_path import own_path

TOKEN = "ab" * 32


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
        ["sleep", "600"],
        env={"PATH": os.defpath, **variables},
        **own,
    )
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def token_file(folder: Path, token: str = TOKEN) -> Path:
    """Put a token into a file that nobody else reads."""
    path = folder / "token"
    path.touch(mode=0o600)
    path.write_text(token)
    return path


class Receiver:
    """A hub's address that keeps messages, and answers as a test says."""

    def __init__(self) -> None:
        self.messages: list[Intervals] = []
        self.newest_body = b""
        self.status = 200
        #: keep a message, and close the connection in place of an answer
        self.loses_answers = False
        #: an older hub says nothing of it
        self.wants_pids: bool | None = None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Authorization"] == f"Bearer {TOKEN}"
                message = msgspec.json.decode(body, type=Intervals)
                receiver.newest_body = body
                if receiver.status == 200:
                    receiver.messages.append(message)
                if receiver.loses_answers:
                    return
                self.send_response(receiver.status)
                self.end_headers()
                wants = receiver.wants_pids
                more = {} if wants is None else {"wants_pids": wants}
                self.wfile.write(msgspec.json.encode({"refused": 0, **more}))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def numbers(self) -> list[tuple[str, int]]:
        """Give stream and number of all intervals, as they came."""
        return [(i.stream, i.number) for m in self.messages for i in m.intervals]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
