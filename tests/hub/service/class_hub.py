"""A hub as `warpbook hub` starts it, and people who ask it over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import requests

from tests.programs import ROOT, environment, free_port, program, running, wait_for
from warpbook_hub.database import settings
from warpbook_hub.database.hub_database import HubDatabase

COURSE = "gpu101"
SUBMIT = "custom:warpbook:submit"
TEACH = "custom:warpbook:teach"
#: a name that a page must show, and never run
HOSTILE = "<script>alert(1)</script>"
ROSTER = f"""username,first_name,last_name,section,team
ada,Ada,{HOSTILE},monday,
bob,Bob,Noyce,tuesday,
"""
GOOD = ROOT / "labs/catalogue/kernels/vector_add/solutions/correct/one_element_each.cu"
HOUR_MS = 3_600_000


class Visitor:
    """Somebody with a browser's cookies, a token, or neither."""

    def __init__(self, hub: ClassHub, name: str = "", token: str = "") -> None:
        self.hub, self.name = hub, name
        self.session = requests.Session()
        # a proxy in the environment is not for us
        self.session.trust_env = False
        self._xsrf = ""
        hub.sessions.append(self.session)
        if token:
            self.session.headers["Authorization"] = f"token {token}"

    def log_in(self, is_staff: bool = False, password: str = "") -> Visitor:
        if not password:
            role = "staff" if is_staff or self.name == "grace" else "learners"
            password = self.hub.passwords()[role]
        self.session.get(f"{self.hub.url}hub/login", timeout=60)
        xsrf = self.session.cookies.get("_xsrf", path=f"{self.hub.base_url}hub/")
        form = {"username": self.name, "password": password, "_xsrf": xsrf}
        answer = self.session.post(
            f"{self.hub.url}hub/login?next={self.hub.base_url}hub/home",
            data=form,
            timeout=60,
        )
        answer.raise_for_status()
        # through the log-in of the service
        self.page("").raise_for_status()
        return self

    def page(self, path: str, **headers: str) -> requests.Response:
        """Open a page, as a link does."""
        mode = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin"}
        answer = self.session.get(
            self.hub.service_url + path,
            headers={**mode, **headers},
            timeout=60,
            # the log-in is only followed where there are cookies for it
            allow_redirects=bool(self.name),
        )
        match = re.search(r'<meta name="xsrf" content="([^"]+)">', answer.text)
        self._xsrf = match[1] if match else self._xsrf
        return answer

    def get(self, path: str, **headers: str) -> requests.Response:
        """Ask the API, as a page's own script does."""
        return self._ask("GET", path, None, headers)

    def post(self, path: str, body: Any = None, **headers: str) -> requests.Response:
        """The same, to change something."""
        return self._ask("POST", path, body, headers)

    def done(self, path: str, body: Any = None) -> Any:
        """Change something that must be possible; give what is answered."""
        answer = self.post(path, body)
        assert answer.ok, (path, answer.status_code, answer.text)
        return answer.json()

    def token(self, *scopes: str) -> str:
        """Ask the hub for a token with some scopes."""
        self.session.get(f"{self.hub.url}hub/home", timeout=60)
        xsrf = self.session.cookies.get("_xsrf", path=f"{self.hub.base_url}hub/")
        answer = self.session.post(
            f"{self.hub.url}hub/api/users/{self.name}/tokens",
            json={"scopes": list(scopes)},
            headers={"X-XSRFToken": xsrf, "Sec-Fetch-Mode": "cors"},
            timeout=60,
        )
        answer.raise_for_status()
        return str(answer.json()["token"])

    def start_server(self, name: str) -> None:
        """Have a named server started."""
        xsrf = self.session.cookies.get("_xsrf", path=f"{self.hub.base_url}hub/")
        answer = self.session.post(
            f"{self.hub.url}hub/api/users/{self.name}/servers/{name}",
            headers={"X-XSRFToken": xsrf, "Sec-Fetch-Mode": "cors"},
            timeout=120,
        )
        answer.raise_for_status()

    def _ask(
        self, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> requests.Response:
        own = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}
        if self._xsrf:
            own["X-XSRFToken"] = self._xsrf
        merged = {name: v for name, v in {**own, **headers}.items() if v}
        return self.session.request(
            method,
            f"{self.hub.service_url}api/v1/{path}",
            json=body,
            headers=merged,
            timeout=60,
            allow_redirects=False,
        )


class ClassHub:
    """A hub that runs."""

    def __init__(self, folder: Path, port: int, base_url: str) -> None:
        self.folder, self.port, self.base_url = folder, port, base_url
        self.url = f"http://127.0.0.1:{port}{base_url}"
        self.service_url = f"{self.url}services/warpbook/"
        #: not through the proxy
        self.inner_url = f"http://127.0.0.1:{port + 3}{base_url}services/warpbook/"
        self.supervisor: Any = None
        #: closed with the hub
        self.sessions: list[requests.Session] = []

    def passwords(self) -> dict[str, str]:
        read: dict[str, str] = json.loads(
            (self.folder / "hub" / "passwords.json").read_text()
        )
        return read

    def process(self, *words: str) -> psutil.Process | None:
        """Find a process that the supervisor's command has started."""
        return next(self.processes(*words), None)

    def processes(self, *words: str) -> Iterator[psutil.Process]:
        for child in psutil.Process(self.supervisor.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                command = child.cmdline()
                if all(word in command for word in words):
                    yield child

    def kill(self, *words: str) -> None:
        """End a process as a crash does."""
        process = wait_for(f"a process with {words}", lambda: self.process(*words))
        process.send_signal(signal.SIGKILL)

    def wait_for_note(self, after_ms: int) -> None:
        """Wait until the hub has noted that it answered all that came until then."""
        database = HubDatabase(self.folder / "course" / "hub.db")

        def is_noted() -> bool | None:
            with database.read() as connection:
                noted_ms = int(settings.get(connection, "answered_ms") or 0)
            return noted_ms > after_ms or None

        wait_for("a later note", is_noted)
        database.close()

    def logs(self) -> str:
        logs = sorted(self.folder.glob("hub/*.log")) + [self.folder / "command.log"]
        return "\n".join(log.read_text()[-3000:] for log in logs if log.exists())


def prepare(path: Path) -> None:
    """Do nothing: the database is the file. Tests on PostgreSQL replace it."""


@contextlib.contextmanager
def class_hub(
    folder: Path,
    *options: str,
    base_url: str = "/",
    own_hosts: bool = False,
    asks_driver: bool = False,
    operator: str = "grace",
    instructors: Sequence[str] = ("grace",),
    extension: Path = ROOT / "extension",
    within: Sequence[str | Path] = (),
    port: int = 0,
    keeps_servers: bool = False,
) -> Iterator[ClassHub]:
    """Run `warpbook hub` for a while; each server may have a host of its own.

    It uses no GPU: it is told so, or it asks the driver, and none is visible. `within`
    is a command that runs the hub's own. People's servers end with it, unless they are
    kept.
    """
    hub = ClassHub(folder / "data", port or free_port(4), base_url)
    if not hub.folder.exists():
        prepare(hub.folder / "course" / "hub.db")
    command = [
        *within,
        *(sys.executable, "-m", "warpbook.cli.main", "hub"),
        *("--folder", str(hub.folder), "--port", str(hub.port)),
        *("--course", COURSE, "--operator", operator, "--base-url", base_url),
        *(word for name in instructors for word in ("--instructor", name)),
    ]
    if "--engine" not in options:
        command += ["--cpu-slots", "1", *([] if asks_driver else ["--no-gpu"])]
    command += options
    if own_hosts:
        command += ["--subdomain-host", f"http://hub.localhost:{hub.port}"]
    folders = [str(extension), *(str(ROOT / name) for name in ("labs", "monitors"))]
    env = environment(HOME=str(folder), PYTHONPATH=os.pathsep.join(folders))
    if asks_driver:
        env["CUDA_VISIBLE_DEVICES"] = ""
    env["PATH"] += f"{os.pathsep}{program('configurable-http-proxy').parent}"
    log = folder / "command.log"
    # of a hub that ran in this folder before
    before = len(log.read_text()) if log.exists() else 0
    with running(command, env, log) as supervisor:
        hub.supervisor = supervisor

        def is_up() -> bool | None:
            assert supervisor.poll() is None, log.read_text() + hub.logs()
            return "Open" in log.read_text()[before:] or None

        wait_for("the hub", is_up, 120)
        try:
            yield hub
        finally:
            for session in hub.sessions:
                session.close()
            servers: list[psutil.Process] = []
            with contextlib.suppress(psutil.NoSuchProcess):
                servers += hub.processes("jupyterhub.singleuser")
    for server in () if keeps_servers else servers:
        with contextlib.suppress(psutil.NoSuchProcess):
            server.kill()


def publish(
    grace: Visitor, now_ms: int, lab: str = "vector-add", is_team_work: bool = False
) -> str:
    """Publish a lab that is open for two hours."""
    body = {
        "lab": lab,
        "title": "Vector add",
        "windows": [
            {
                "opens_ms": now_ms - HOUR_MS,
                "due_ms": now_ms + HOUR_MS,
                "closes_ms": now_ms + 2 * HOUR_MS,
            }
        ],
        "thresholds": [{"measure": "right", "least": 1, "points": 10}],
        "is_team_work": is_team_work,
    }
    published: dict[str, str] = grace.done(f"courses/{COURSE}/labs", body)
    return published["lab"]
