"""What is started where: written down for JupyterHub's configuration and the doctor.

Nothing in it is secret: everybody of the machine may read it.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from warpbook_hub.lti.platform import LtiPlatform
from warpbook_hub.scopes import SERVICE
from warpbook_monitors.data_folder import data_folder

#: names the file with the plan
PLAN = "WARPBOOK_HUB_PLAN"
#: names a backup that is put in place first
RESTORE = "WARPBOOK_HUB_RESTORE"
FILE = "hub.json"
#: "shared": all learners have the account that started the hub; "system": their own
Users = Literal["shared", "system"]


class StartReport(Struct, frozen=True):
    """What the supervisor needs of a prepared database: names and keys."""

    #: about who runs the course, for who starts it
    people: str
    #: of this machine's grader
    token: str
    #: of the keeper of leased GPUs
    keeper_token: str


class HubPlan(Struct, frozen=True):
    """A hub on one machine."""

    folder: str
    users: Users
    ip: str
    port: int
    base_url: str
    course: str
    title: str
    #: whom this start adds to the course, where it does not know them
    instructors: tuple[str, ...]
    #: Node's own binary, and the program that it runs
    proxy: tuple[str, str]
    #: of the hub
    operators: tuple[str, ...] = ()
    #: accounts; empty: that which started the hub
    service_user: str = ""
    grader_user: str = ""
    #: 0: no grader is started here
    cpu_slots: int = 1
    use_gpu: bool = True
    ssl_key: str = ""
    ssl_cert: str = ""
    #: the graders', which no learner reads
    vault: str = ""
    #: such as https://hub.example.org; then each server has a host below it
    subdomain_host: str = ""
    #: else those that grade are hidden from notebooks
    notebooks_use_gpu: bool = False
    #: nodes of GPUs that people lease for their notebooks
    lease_gpus: tuple[str, ...] = ()
    #: a lease ends after so many minutes without work; 0: never for that
    lease_idle_min: int = 10
    #: HOST:PORT of a Ray cluster's head; empty: grading is done on this machine
    ray_address: str = ""
    #: with the cluster's token, which only the grader's account reads
    ray_token_file: str = ""
    #: whose launches are the log-in, in place of passwords
    platform: LtiPlatform | None = None
    #: names the mail server, with its password; empty: nothing is mailed
    mail_file: str = ""

    @property
    def place(self) -> Path:
        return Path(self.folder)

    @property
    def hub_folder(self) -> Path:
        """Give the folder of JupyterHub: its database, cookie secret and passwords."""
        return self.place / "hub"

    @property
    def course_folder(self) -> Path:
        """Give the folder of the course service: its database and backups."""
        return self.place / "course"

    @property
    def token_file(self) -> Path:
        """Give the file with the token that the service has at the hub."""
        return self.hub_folder / "service_token"

    @property
    def keeper_token_file(self) -> Path:
        """Give the file with the token of what leases GPUs, which only root reads."""
        return self.hub_folder / "keeper_token"

    @property
    def homes(self) -> Path:
        """Give the folder with learners' folders, where they have no accounts."""
        return self.place / "homes"

    @property
    def hub_port(self) -> int:
        """Give the port of JupyterHub itself, behind the proxy."""
        return self.port + 1

    @property
    def proxy_port(self) -> int:
        """Give the port at which the proxy is told what to do."""
        return self.port + 2

    @property
    def service_port(self) -> int:
        return self.port + 3

    @property
    def prefix(self) -> str:
        """Give the path of the course service, with a slash at both ends."""
        return f"{self.base_url}services/{SERVICE}/"

    @property
    def service_url(self) -> str:
        """Give where programs of this machine reach the course service."""
        return f"http://127.0.0.1:{self.service_port}{self.prefix}"

    @property
    def proxy_url(self) -> str:
        """Give where the proxy is reached on this machine, without a slash."""
        is_any = self.ip in ("", "0.0.0.0", "::", "localhost")
        scheme = "https" if self.ssl_cert else "http"
        return f"{scheme}://{'127.0.0.1' if is_any else self.ip}:{self.port}"

    @property
    def url(self) -> str:
        if self.subdomain_host:
            return f"{self.subdomain_host}{self.base_url}"
        scheme = "https" if self.ssl_cert else "http"
        host = self.ip if self.ip not in ("", "0.0.0.0", "::") else "localhost"
        return f"{scheme}://{host}:{self.port}{self.base_url}"

    @property
    def pages_url(self) -> str:
        """Give where people reach the course service."""
        if not self.subdomain_host:
            return f"{self.url}services/{SERVICE}/"
        scheme, host = self.subdomain_host.split("://")
        # as JupyterHub names the host of a service
        return f"{scheme}://{SERVICE}--service.{host}{self.prefix}"

    def user_id(self, name: str) -> int:
        """Give the user id of an account; ours where it has no name."""
        return pwd.getpwnam(name).pw_uid if name else os.getuid()


def default_folder() -> Path:
    """Give the folder of this person's hub, where they name none."""
    return data_folder() / "hub"


def write_plan(plan: HubPlan) -> Path:
    file = plan.place / FILE
    unfinished = file.with_suffix(".new")
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(plan)))
    unfinished.chmod(0o644)
    unfinished.replace(file)
    return file


def read_plan(file: Path) -> HubPlan:
    """Read a plan.

    Raises:
        OSError: it can't be read.
        msgspec.MsgspecError: it is none.
    """
    return msgspec.json.decode(file.read_bytes(), type=HubPlan)
