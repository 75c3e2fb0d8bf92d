"""A real Jupyter server in a process of its own, that a test may kill at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import psutil
import requests
import websocket

from tests.programs import ROOT, environment, free_port, running, wait_for
from tests.stub_nvml import StubNvml
from warpbook.protocol import ENV_INGEST_SECRET, ENV_INGEST_URL

TOKEN = "secret"
#: a kernel's process, which has what the ingest asks for, and takes no time to start
SLEEPER = {"argv": ["sleep", "600"], "display_name": "sleeper", "language": "python"}


class View:
    """A page's stream."""

    def __init__(self, url: str) -> None:
        self._socket = websocket.create_connection(
            f"{url}/warpbook/api/v1/stream?token={TOKEN}".replace("http", "ws", 1),
            timeout=60,
        )

    def next(self, kind: str) -> dict:
        """Wait for a message of a kind; others are passed over."""
        return self.next_of(kind)

    def next_of(self, *kinds: str) -> dict:
        """Wait for a message of one of some kinds."""
        while True:
            message = json.loads(self._socket.recv())
            if message["type"] in kinds:
                return message

    def send(self, message: dict) -> None:
        self._socket.send(json.dumps(message))

    def close(self) -> None:
        self._socket.close()


class ServerProcess:
    """A server that runs; `url` is without a slash at its end."""

    def __init__(self, process, url: str) -> None:
        self.process = process
        self.url = url
        self.kernel_id = ""
        #: the ingest's address and the secret for it
        self.secrets = ("", "")
        self._session = requests.Session()
        # a proxy in the environment is not for us
        self._session.trust_env = False
        self._views: list[View] = []
        self._threads: list[threading.Thread] = []

    def close(self) -> None:
        for view in self._views:
            view.close()
        for thread in self._threads:
            thread.join(60)
        self._session.close()

    def get(self, path: str, **parameters) -> requests.Response:
        return self._session.get(
            f"{self.url}/{path}",
            params=parameters,
            headers={"Authorization": f"token {TOKEN}"},
            timeout=60,
        )

    def post(self, path: str, body: object) -> requests.Response:
        return self._session.post(
            f"{self.url}/{path}",
            json=body,
            headers={"Authorization": f"token {TOKEN}"},
            timeout=60,
        )

    def records(self, **parameters) -> list[dict]:
        return self.get("warpbook/api/v1/records", **parameters).json()["records"]

    def record(self, kind: str, record_id: str) -> dict:
        quoted = quote(record_id, safe="")

        def kept() -> dict | None:
            # what was acknowledged is on disk a moment later
            answer = self.get(f"warpbook/api/v1/records/{kind}/{quoted}")
            if answer.status_code == 404:
                return None
            assert answer.status_code == 200, (kind, record_id, answer.text)
            return answer.json()

        return wait_for(f"the record {record_id}", kept)

    def view(self) -> View:
        view = View(self.url)
        self._views.append(view)
        return view

    def start_kernel(self) -> None:
        """Start a kernel that does nothing; take what it is given for the ingest."""
        answer = self.post("api/kernels", {"name": "sleeper"})
        assert answer.status_code == 201, answer.text
        self.kernel_id = answer.json()["id"]

        def given() -> tuple[str, str] | None:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error, KeyError):
                    env = child.environ()
                    if child.name() == "sleep":
                        return env[ENV_INGEST_URL], env[ENV_INGEST_SECRET]
            return None

        self.secrets = wait_for("the kernel", given)

    def ingest(self, path: str, body: object) -> requests.Response:
        """Hand in what a kernel would; needs `start_kernel`."""
        url, secret = self.secrets
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {secret}"}
        return self._session.post(url + path, data=data, headers=headers, timeout=60)

    def ingest_in_background(self, path: str, body: object) -> None:
        """Hand it in, and don't care for the answer: the server may be killed."""

        def hand_in() -> None:
            with (
                contextlib.suppress(requests.RequestException),
                requests.Session() as session,
            ):
                session.trust_env = False
                url, secret = self.secrets
                headers = {"Authorization": f"Bearer {secret}"}
                session.post(url + path, json=body, headers=headers, timeout=60)

        self._threads.append(threading.Thread(target=hand_in, daemon=True))
        self._threads[-1].start()

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)


@contextlib.contextmanager
def server(
    home: Path,
    stub: StubNvml | None = None,
    *options: str,
    answers: tuple[int, ...] = (200,),
    variables: Mapping[str, str] | None = None,
) -> Iterator[ServerProcess]:
    """Run a server whose user has `home`, to the block's end.

    It is given once the list of records is answered with one of the statuses `answers`.
    `variables` are added to its environment.
    """
    kernel = home / ".local" / "share" / "jupyter" / "kernels" / "sleeper"
    kernel.mkdir(parents=True, exist_ok=True)
    (kernel / "kernel.json").write_text(json.dumps(SLEEPER))
    port = free_port()
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
        f"--port={port}",
        # on another one it would not be found
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={home}",
        f"--IdentityProvider.token={TOKEN}",
        "--ServerApp.jpserver_extensions={'warpbook': True}",
        *options,
    ]
    folders = [str(ROOT / name) for name in ("extension", "labs", "monitors")]
    # without the extensions of JupyterLab and others, a third of its start
    own = {"JUPYTER_NO_CONFIG": "1", "PYTHONPATH": os.pathsep.join(folders)}
    env = environment(HOME=str(home), **own)
    env.pop("XDG_DATA_HOME", None)
    env |= {} if stub is None else stub.env
    env |= variables or {}
    log = home / "server.log"
    with running(command, env, log) as process:
        given = ServerProcess(process, f"http://127.0.0.1:{port}")

        def has_answered() -> bool | None:
            assert process.poll() is None, log.read_text()
            with contextlib.suppress(requests.RequestException):
                # reading what is kept waits for nothing else
                answer = given.get("warpbook/api/v1/records")
                return True if answer.status_code in answers else None
            return None

        try:
            try:
                wait_for("the server", has_answered)
            except AssertionError as late:
                raise AssertionError(log.read_text()) from late
            yield given
        finally:
            given.close()
