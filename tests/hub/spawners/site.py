"""A site's own JupyterHub, which takes the files of `warpbook hub config`."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import requests
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from tests.hub.service.class_hub import ClassHub, Visitor
from tests.programs import answers, environment, free_port, program, running, wait_for
from warpbook.cli.main import main
from warpbook_hub.spawners.site_files import CONFIG, PORT

HUB_URL = "https://hub.example.org/j/"
COMMON = ("--hub-url", HUB_URL, "--course", "gpu101")
COMMON += ("--instructor", "grace", "--operator", "grace")
KUBE = ("--spawner", "kube", "--image", "r.example/gpu:1", "--namespace", "jhub")
SLURM = ("--spawner", "slurm", "--partition", "debug", "--time-limit", "0:30:00")
SLURM = (*SLURM, "--memory-gib", "1", "--cpus", "1")
_SITE = """
import os
c.JupyterHub.bind_url = {url!r}
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret = os.urandom(32)
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
load_subconfig({config!r})
"""


def written(folder: Path, *options: str) -> Path:
    """Write the files into a folder."""
    assert main(["hub", "config", *COMMON, *options, "--output", str(folder)]) == 0
    return folder


def config_of(folder: Path) -> Config:
    """Read the configuration as JupyterHub does."""
    return PyFileConfigLoader(CONFIG, path=str(folder)).load_config()


class SiteHub(ClassHub):
    """A JupyterHub whose log-in takes any password."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, free_port(), "/j/")
        self.hub_port, self.service_port = free_port(), free_port()

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.hub_port}/j/hub/api"

    def passwords(self) -> dict[str, str]:
        return {"staff": "any", "learners": "any"}

    def logs(self) -> str:
        return (self.folder / "hub.log").read_text()[-6000:]


class Learner:
    """Somebody who asks for servers, as the hub's page does."""

    def __init__(self, hub: SiteHub, name: str) -> None:
        """Log in."""
        self._hub, self._name = hub, name
        self._session = Visitor(hub, name).log_in().session

    def start(self, gpu: str) -> requests.Response:
        """Ask for a server with a GPU, or with none."""
        return self._ask("POST", {"gpu": gpu})

    def ask_for_end(self) -> None:
        self._ask("DELETE", None)

    def servers(self) -> dict[str, Any]:
        """Give what the hub says of this person's servers, by name."""
        answer = self._session.get(self._url, timeout=60)
        servers: dict[str, Any] = answer.json()["servers"]
        return servers

    def wait_for_server(self) -> None:
        """Wait until the server is ready."""
        wait_for("the server", lambda: self.servers().get("", {}).get("ready") or None)

    @property
    def _url(self) -> str:
        return f"{self._hub.url}hub/api/users/{self._name}"

    def _ask(self, method: str, body: object) -> requests.Response:
        xsrf = self._session.cookies.get("_xsrf", path=f"{self._hub.base_url}hub/")
        return self._session.request(
            method,
            f"{self._url}/server",
            json=body,
            headers={"X-XSRFToken": xsrf, "Sec-Fetch-Mode": "cors"},
            timeout=120,
        )


@contextlib.contextmanager
def site_hub(
    folder: Path,
    options: tuple[str, ...],
    more: str = "",
    beside: Callable[[SiteHub], contextlib.AbstractContextManager] | None = None,
    within: tuple[str, ...] = (),
    **env: str,
) -> Iterator[SiteHub]:
    """Run the hub with the files as they are, but for addresses of the service.

    Args:
        folder: of hub and files.
        options: of `warpbook hub config`.
        more: what the site's configuration has below.
        beside: runs what the hub looks for as it starts.
        within: what the hub's command is run by.
        env: of the hub.
    """
    hub = SiteHub(folder)
    config = written(folder, "--hub-url", hub.url, *options) / CONFIG
    here = config.read_text().replace("http://warpbook-course:", "http://127.0.0.1:")
    config.write_text(here.replace(str(PORT), str(hub.service_port)))
    site = folder / "jupyterhub_config.py"
    ports = {"hub_port": hub.hub_port, "proxy_port": free_port()}
    proxy = str(program("configurable-http-proxy"))
    values = {"url": hub.url, "folder": folder, "proxy": proxy, "config": str(config)}
    site.write_text(_SITE.format(**ports, **values) + more)
    given = environment(
        HOME=str(folder), PYTHONPATH=":".join(filter(None, sys.path)), **env
    )
    command = [*within, sys.executable, "-m", "jupyterhub", "-f", str(site)]
    with contextlib.ExitStack() as stack:
        if beside is not None:
            stack.enter_context(beside(hub))
        process = stack.enter_context(running(command, given, folder / "hub.log"))

        def is_up() -> bool | None:
            assert process.poll() is None, hub.logs()
            return answers(f"{hub.url}hub/health")

        wait_for("the site's hub", is_up)
        try:
            yield hub
        finally:
            for session in hub.sessions:
                session.close()


def environment_of(container: Mapping, token: str) -> dict[str, str]:
    """Give a container's environment, with a token in the place of its Secret's."""
    return {one["name"]: one.get("value", token) for one in container["env"]}


def draw_token() -> str:
    return secrets.token_hex(32)
