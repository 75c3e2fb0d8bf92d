"""A real IPython shell with warpbook loaded, and a server for it to talk to."""

import atexit
import gc
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from traitlets.config import Config

from warpbook.protocol import (
    ENV_INGEST_SECRET,
    ENV_INGEST_URL,
    PROTOCOL_VERSION,
    CellReport,
    CellRun,
    DeviceReceipt,
    Receipt,
    StateNow,
)
from warpbook.server.cells.receipt_view import view_of_receipt


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
    # it looks for garbage, which takes long among all that torch has loaded
    gc.freeze()
    shell.atexit_operations()
    gc.unfreeze()
    history.db.close()
    InteractiveShell.clear_instance()


TIMEOUT_S = 120
#: a busy machine answers later than a kernel waits in earnest
PATIENT = """\
from warpbook.kernel.link import server_link as _link
_link._TIMEOUT_S = _link._RECEIPT_TIMEOUT_S = 60.0"""


@dataclass
class Ingest:
    """Stands for the server's ingest: answers as told, remembers what came."""

    reports: list[CellReport] = field(default_factory=list)
    #: all events of reports, by id
    timelines: dict[str, bytes] = field(default_factory=dict)
    runs: list[CellRun] = field(default_factory=list)
    #: whether each kernel wanted receipts when it last said so
    watching: dict[str, bool] = field(default_factory=dict)
    #: what a receipt says; its devices are those that the test wants
    line: str = "the receipt"
    devices: tuple[DeviceReceipt, ...] = ()
    previous: Receipt | None = None
    #: receipts and timelines wait for it
    may_answer: threading.Event = field(default_factory=threading.Event)
    authorization: list[str | None] = field(default_factory=list)
    status: int = 204
    message: str = ""
    state: bytes = b"{}"
    #: gives the body for a request about a span
    answer_span: Callable[[str], bytes] | None = None
    url: str = ""

    def answer_state(self, state: StateNow) -> None:
        self.state = msgspec.json.encode(state)


@pytest.fixture
def ingest(monkeypatch: pytest.MonkeyPatch, shell: Any) -> Iterator[Ingest]:
    remembered = Ingest()
    remembered.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            remembered.authorization.append(self.headers["Authorization"])
            if remembered.status != 204:
                message = json.dumps({"message": remembered.message}).encode()
                self.answer(remembered.status, message)
            elif self.path == "/v1/watch":
                request = json.loads(body)
                assert request["protocol"] == PROTOCOL_VERSION
                remembered.watching[request["kernel_id"]] = request["on"]
                self.answer(204, b"")
            elif self.path == "/v1/cells":
                run = msgspec.json.decode(body, type=CellRun)
                remembered.runs.append(run)
                remembered.may_answer.wait(TIMEOUT_S)
                receipt = Receipt(
                    run,
                    run.ended_ms - run.started_ms,
                    remembered.devices,
                    remembered.line,
                    remembered.previous,
                )
                view = view_of_receipt(receipt, [])
                receipt = msgspec.structs.replace(receipt, view=view)
                self.answer(200, msgspec.json.encode(receipt))
            elif self.path.endswith("/timeline"):
                # it may be of a report of the test before
                remembered.may_answer.wait(TIMEOUT_S)
                remembered.timelines[self.path.split("/")[3]] = body
                self.answer(204, b"")
            else:
                report = msgspec.json.decode(body, type=CellReport)
                remembered.reports.append(report)
                self.answer(204, b"")

        def do_GET(self) -> None:
            if self.path.startswith("/v1/span") and remembered.answer_span:
                self.answer(200, remembered.answer_span(self.path))
            else:
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
    remembered.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Kernel:
    """A kernel with warpbook loaded."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client
        #: id of the message that asked for the newest cell
        self.newest = ""
        #: outputs that were changed later, in order: the cell's id, and the text
        self.changes: list[tuple[str, str]] = []
        #: ids of the widgets that were made
        self.widgets: list[str] = []
        #: where the kernel says that it is: the comm's id, and the machine
        self.offers: list[tuple[str, dict[str, str]]] = []
        #: what widgets, and the kernel's machine, said to their views
        self.telemetry: list[dict[str, Any]] = []

    def start(self, code: str) -> str:
        """Have a cell run and don't wait; give its id."""
        client = self.client
        message = client.session.msg(
            "execute_request",
            {
                "code": code,
                "silent": False,
                "store_history": True,
                # the next cell runs although this one fails
                "stop_on_error": False,
            },
            metadata={"cellId": "cell-1"},
        )
        client.shell_channel.send(message)
        self.newest = message["header"]["msg_id"]
        return self.newest

    def hear(self) -> dict[str, Any]:
        """Give the next message that is for everybody."""
        came: dict[str, Any] = self.client.get_iopub_msg(timeout=TIMEOUT_S)
        if came["msg_type"] == "update_display_data":
            data = came["content"]["data"]
            change = (came["parent_header"]["msg_id"], data["text/plain"])
            self.changes.append(change)
        elif came["msg_type"] == "comm_open":
            comm, data = came["content"]["comm_id"], came["content"]["data"]
            if "machine" in data:
                self.offers.append((comm, data["machine"]))
            elif "_esm" in data["state"]:
                self.widgets.append(comm)
        elif came["msg_type"] == "comm_msg":
            data = came["content"]["data"]
            content = data.get("content", data)
            if "machine" in content:
                self.offers.append((came["content"]["comm_id"], content["machine"]))
            if "telemetry" in content:
                self.telemetry.append(json.loads(content["telemetry"]))
        return came

    def say(self, widget: str, content: object) -> None:
        """Speak as a view of a widget."""
        self.say_over(widget, {"method": "custom", "content": content})

    def say_over(self, comm: str, data: object) -> None:
        """Say something over a comm."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.shell_channel.send(message)

    def next_message(self, kind: str) -> dict[str, Any]:
        """Wait for a widget's next message of this kind."""
        while True:
            while self.telemetry:
                message = self.telemetry.pop(0)
                if message["type"] == kind:
                    return message
            self.hear()

    def changed(self, cell: str) -> str:
        """Wait until a cell's output was changed; give the text."""
        while True:
            for changed, text in self.changes:
                if changed == cell:
                    return text
            self.hear()

    def run(
        self, code: str, on_output: Callable[[str], None] | None = None
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Run a cell; give its reply and its outputs."""
        client = self.client
        wanted = self.start(code)
        outputs = []
        while True:
            came = self.hear()
            if came["parent_header"].get("msg_id") != wanted:
                continue
            content = came["content"]
            if came["msg_type"] == "status" and content["execution_state"] == "idle":
                break
            if came["msg_type"] in ("stream", "display_data", "execute_result"):
                outputs.append(content)
            if came["msg_type"] == "stream" and on_output is not None:
                on_output(content["text"])
        while True:
            reply = client.get_shell_msg(timeout=TIMEOUT_S)
            if reply["parent_header"].get("msg_id") == wanted:
                return reply["content"], outputs

    def interrupt(self, text: str) -> None:
        if "go" in text:
            self.manager.interrupt_kernel()


@pytest.fixture
def kernel(ingest: Any, tmp_path: Path) -> Iterator[Kernel]:
    # as a Jupyter server names the file
    with started(tmp_path / "kernel-0a1b-2c.json") as mine:
        yield mine


@pytest.fixture
def other_kernel(ingest: Any, tmp_path: Path) -> Iterator[Kernel]:
    with started(tmp_path / "kernel-3d4e-5f.json") as mine:
        yield mine


@contextmanager
def started(connection_file: Path) -> Iterator[Kernel]:
    for left in (2, 1, 0):
        manager = KernelManager(connection_file=str(connection_file))
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=TIMEOUT_S)
            break
        except RuntimeError:
            # its ports were free before it began, and somebody else has one now
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            manager.cleanup_resources()
            if not left:
                raise
    mine = Kernel(manager, client)
    mine.run(f"%load_ext warpbook\n{PATIENT}")
    yield mine
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()
