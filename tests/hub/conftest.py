"""A real JupyterHub with a real proxy, and the people who use it."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests
import websocket

from tests.hub.postgres import PostgresServer, remove
from tests.programs import (
    MARK,
    answers,
    environment,
    free_port,
    program,
    running,
    wait_for,
)
from tests.stub_nvml import StubNvml

USERS = ("alice", "bob", "carol")


class Person:
    """Somebody with a browser's cookies; without a name, somebody not logged in."""

    def __init__(self, hub_url: str, name: str | None = None) -> None:
        self.name = name
        #: what JupyterLab tells the page, once it was opened
        self.page_config: dict[str, str] = {}
        self._url = hub_url
        self._session = requests.Session()
        # a proxy in the environment is not for us
        self._session.trust_env = False

    def log_in(self) -> None:
        """Log in, and have the server started without waiting for it."""
        self._session.get(f"{self._url}/hub/login", timeout=60)
        xsrf = self._session.cookies.get("_xsrf", path="/hub/")
        form = {"username": self.name, "password": "", "_xsrf": xsrf}
        self._session.post(
            f"{self._url}/hub/login?next=/hub/home", data=form, timeout=60
        ).raise_for_status()
        self.get(f"/hub/spawn/{self.name}").raise_for_status()

    def open_lab(self) -> None:
        """Open JupyterLab, as soon as the server is up."""
        what = f"the server of {self.name}"
        self.page_config = wait_for(what, self._told_to_page, 120)

    def url_of(self, name: str) -> str:
        """Give the address of somebody's server, with a slash at its end."""
        return f"{self._url}/user/{name}/"

    def get(self, path: str) -> requests.Response:
        """Ask as a page would: with the cookies that belong to the path."""
        # which is what a browser says of a page's own requests
        headers = {"Sec-Fetch-Site": "same-origin"}
        return self._session.get(self._url + path, headers=headers, timeout=60)

    def open_notebook(self, path: str) -> int:
        """Start a notebook's kernel; give its PID."""
        answer = self._session.post(
            f"{self._url}/user/{self.name}/api/sessions",
            json={
                "path": path,
                "name": path,
                "type": "notebook",
                "kernel": {"name": "python3"},
            },
            headers={"Authorization": f"token {self.page_config['token']}"},
            timeout=60,
        )
        answer.raise_for_status()
        connection_file = f"kernel-{answer.json()['kernel']['id']}.json"
        return next(
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if any(
                word.endswith(connection_file) for word in process.info["cmdline"] or ()
            )
        )

    def connect(self, path: str, **kwargs: str) -> websocket.WebSocket:
        """Open a WebSocket as a page would: by the cookies alone."""
        request = requests.Request("GET", self._url + path)
        return websocket.create_connection(
            self._url.replace("http", "ws", 1) + path,
            cookie=self._session.prepare_request(request).headers.get("Cookie"),
            header={"Sec-Fetch-Mode": "websocket"},
            timeout=60,
            **{"origin": self._url, **kwargs},
        )

    def refused(self, path: str, **kwargs: str) -> int:
        """Give the status with which the handshake is answered."""
        with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
            self.connect(path, **kwargs)
        return refusal.value.status_code

    def close(self) -> None:
        self._session.close()

    def _told_to_page(self) -> dict[str, str] | None:
        # the page, not the API: only a page is sent through the login
        page = self.get(f"/user/{self.name}/lab").text
        match = re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.S)
        return json.loads(match[1]) if match else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server; its folder has a short path, as its socket is in it."""
    folder = Path(tempfile.mkdtemp(prefix="wb-pg-", dir="/tmp"))
    server = PostgresServer(folder)
    yield server
    remove(server, folder)


@pytest.fixture(scope="module")
def stub_gpus(
    stub_nvml_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> StubNvml:
    """The GPU that all servers of the hub see."""
    return StubNvml(
        stub_nvml_library, tmp_path_factory.mktemp("stub") / "state", "h200"
    )


@pytest.fixture(scope="module")
def hub_url(
    tmp_path_factory: pytest.TempPathFactory, stub_gpus: StubNvml
) -> Iterator[str]:
    """A hub that answers through its proxy."""
    folder = tmp_path_factory.mktemp("hub")
    url = f"http://127.0.0.1:{free_port()}"
    given = {
        "url": url,
        "hub_port": free_port(),
        "proxy_port": free_port(),
        "proxy": str(program("configurable-http-proxy")),
        "folder": str(folder),
        "users": USERS,
        "no_websocket_cookie": ["carol"],
        # of the servers; JupyterHub gives them little of its own
        "environment": ["PATH", MARK, *stub_gpus.env],
    }
    env = environment(
        WARPBOOK_TEST_HUB=json.dumps(given), HOME=str(folder), **stub_gpus.env
    )
    config = Path(__file__).with_name("jupyterhub_config.py")
    command = [sys.executable, "-m", "jupyterhub", "-f", config]
    log = folder / "hub.log"
    with running(command, env, log) as hub:

        def healthy() -> bool | None:
            assert hub.poll() is None, f"the hub ended:\n{log.read_text()[-4000:]}"
            # 404 until the proxy knows the hub
            return answers(f"{url}/hub/health")

        wait_for(f"the hub, see {log}", healthy)
        yield url


@pytest.fixture(scope="module")
def people(hub_url: str) -> Iterator[dict[str, Person]]:
    """Those who are logged in, each with a server that runs."""
    people = {name: Person(hub_url, name) for name in USERS}
    for person in people.values():
        person.log_in()
    for person in people.values():
        person.open_lab()
    yield people
    for person in people.values():
        person.close()


@pytest.fixture(scope="module")
def alice(people: dict[str, Person]) -> Person:
    return people["alice"]


@pytest.fixture(scope="module")
def bob(people: dict[str, Person]) -> Person:
    return people["bob"]


@pytest.fixture(scope="module")
def carol(people: dict[str, Person]) -> Person:
    """Her server takes no cookie on a WebSocket."""
    return people["carol"]


@pytest.fixture
def stranger(hub_url: str) -> Iterator[Person]:
    """Somebody who is not logged in."""
    stranger = Person(hub_url)
    yield stranger
    stranger.close()
