"""A real IPython shell with warpbook loaded, and a server for it to talk to."""

import atexit
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from warpbook.protocol import (
    ENV_INGEST_SECRET,
    ENV_INGEST_URL,
    CellReport,
    StateNow,
)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv(ENV_INGEST_URL, raising=False)
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    shell.extension_manager.load_extension("warpbook")
    yield shell
    shell.extension_manager.unload_extension("warpbook")
    atexit.unregister(shell.atexit_operations)
    history = shell.history_manager
    shell.atexit_operations()
    history.db.close()
    InteractiveShell.clear_instance()


@dataclass
class Ingest:
    """Stands for the server's ingest: answers as told, remembers what came."""

    reports: list[CellReport] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)
    status: int = 204
    message: str = ""
    state: bytes = b"{}"
    url: str = ""

    def answer_state(self, state: StateNow) -> None:
        self.state = msgspec.json.encode(state)


@pytest.fixture
def ingest(monkeypatch: pytest.MonkeyPatch, shell: Any) -> Iterator[Ingest]:
    remembered = Ingest()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            remembered.authorization.append(self.headers["Authorization"])
            if remembered.status == 204:
                report = msgspec.json.decode(body, type=CellReport)
                remembered.reports.append(report)
                self.answer(204, b"")
            else:
                message = json.dumps({"message": remembered.message}).encode()
                self.answer(remembered.status, message)

        def do_GET(self) -> None:
            self.answer(200, remembered.state)

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    remembered.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv(ENV_INGEST_URL, remembered.url)
    monkeypatch.setenv(ENV_INGEST_SECRET, "secret")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield remembered
    server.shutdown()
    thread.join()
    server.server_close()
