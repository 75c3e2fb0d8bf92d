"""Starts JupyterHub and the grader, keeps them running, and ends them together."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import pwd
import secrets
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from warpbook.hub_protocol import REFUSED_STATUS
from warpbook_hub.lti.platform import PLATFORM
from warpbook_hub.running.accounts import as_user
from warpbook_hub.running.plan import PLAN, RESTORE, HubPlan, StartReport
from warpbook_hub.scopes import SERVICE

_CONFIG = Path(__file__).with_name("jupyterhub_config.py")
_PR_SET_PDEATHSIG = 1
_START_S = 120.0
_POLL_S = 0.2
_END_S = 20.0
#: what ends sooner than this is started anew only after a while
_STEADY_S = 30.0
_MOST_WAIT_S = 30.0
#: of the grader, and of what it grades with
_GRADER_ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "LANG",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "WARPBOOK_LABS_VAULT",
    "WARPBOOK_HUB_LABS",
    "TMPDIR",
)
_KEEPER_ENVIRONMENT = ("PATH", "PYTHONPATH", "LANG", "LD_LIBRARY_PATH")


class CantRun(Exception):
    """The hub can't be started; the message says why and what to do."""


class Supervisor:
    """One hub with its service and grader."""

    def __init__(
        self, plan: HubPlan, plan_file: Path, say: Callable[[str], None]
    ) -> None:
        self._plan, self._say = plan, say
        self._environment = {**os.environ, PLAN: str(plan_file)}
        self._is_stopping = False
        self._token = ""
        self._service_token = secrets.token_hex(32)

    def run(self, restore: Path | None = None) -> None:
        """Start everything, and stay until a signal asks to end.

        Raises:
            CantRun: it can't be started.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        begun = self._begin(restore)
        self._say(begun.people)
        self._token = begun.token
        _write_secret(self._plan.token_file, self._service_token)
        _write_secret(self._plan.keeper_token_file, begun.keeper_token)
        service = _Daemon("The course service", self._start_service, self._say)
        hub = _Daemon("JupyterHub", self._start_hub, self._say)
        grader = _Daemon("The grader", self._start_grader, self._say, REFUSED_STATUS)
        keeper = _Daemon("The keeper of GPUs", self._start_keeper, self._say)
        kept = [service, hub]
        kept += [grader] if self._plan.cpu_slots else []
        kept += [keeper] if self._plan.lease_gpus else []
        try:
            service.start()
            hub.start()
            self._wait_until_up(service, hub)
            if not self._is_stopping:
                for process in (grader, keeper):
                    if process in kept:
                        process.start()
                kept_on = "; people's servers go on, for the next start"
                stop = f"Ctrl-C{kept_on if self._plan.users == 'system' else ''}"
                self._say(f"\n  Open  {self._plan.url}\n  Stop  {stop}\n")
            while not self._is_stopping:
                for process in kept:
                    process.look()
                time.sleep(_POLL_S)
        finally:
            # what it grades is given back while the service still takes it
            grader.end()
            keeper.end()
            hub.end()
            service.end()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _begin(self, restore: Path | None) -> StartReport:
        """Bring the database to the plan, as the service's account."""
        environment = dict(self._environment)
        if restore is not None:
            environment[RESTORE] = str(restore.absolute())
        done = subprocess.run(
            [sys.executable, "-m", "warpbook_hub.running.begin"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **as_user(self._plan.service_user),
        )
        if done.returncode != 0:
            raise CantRun(
                done.stderr.strip()[-2_000:] or "The database can't be begun."
            )
        return msgspec.json.decode(done.stdout, type=StartReport)

    def _start_hub(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "jupyterhub", "-f", str(_CONFIG)]
        log = self._plan.hub_folder / "hub.log"
        with _log(log) as output:
            return _started(command, self._environment, output, self._plan.hub_folder)

    def _start_service(self) -> subprocess.Popen[bytes]:
        plan = self._plan
        environment = {
            name: os.environ[name]
            for name in ("PATH", "PYTHONPATH", "LANG", "WARPBOOK_HUB_LABS")
            if name in os.environ
        }
        environment |= {
            "HOME": self._home(plan.service_user),
            "WARPBOOK_HUB_DATA": str(plan.course_folder),
            "JUPYTERHUB_SERVICE_NAME": SERVICE,
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{plan.service_port}",
            "JUPYTERHUB_SERVICE_PREFIX": plan.prefix,
            "JUPYTERHUB_BASE_URL": plan.base_url,
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{plan.hub_port}"
            f"{plan.base_url}hub/api",
            "JUPYTERHUB_API_TOKEN": self._service_token,
            "JUPYTERHUB_CLIENT_ID": f"service-{SERVICE}",
            "JUPYTERHUB_HOST": plan.subdomain_host,
            "WARPBOOK_HUB_PROXY": plan.proxy_url,
            "WARPBOOK_HUB_PAGES": plan.pages_url,
        }
        if plan.platform is not None:
            environment[PLATFORM] = msgspec.json.encode(plan.platform).decode()
        if plan.mail_file:
            # it brings the database's libraries, which nothing else here needs
            from warpbook_hub.notices.smtp import MAIL, read_mail_server

            # its password is in no plan, which everybody may read
            server = read_mail_server(Path(plan.mail_file))
            environment[MAIL] = msgspec.json.encode(server).decode()
        if plan.subdomain_host:
            callback = f"{plan.pages_url}oauth_callback"
            environment["JUPYTERHUB_OAUTH_CALLBACK_URL"] = callback
        command = [sys.executable, "-m", "warpbook_hub.service"]
        with _log(plan.hub_folder / "service.log") as output:
            return _started(command, environment, output, Path("/"), plan.service_user)

    def _start_grader(self) -> subprocess.Popen[bytes]:
        plan = self._plan
        command = [sys.executable, "-m", "warpbook_hub.grader", plan.service_url]
        command += [*_engine_options(plan), "--stay"]
        environment = {
            name: os.environ[name] for name in _GRADER_ENVIRONMENT if name in os.environ
        }
        environment["HOME"] = self._home(plan.grader_user)
        with _log(plan.hub_folder / "grader.log") as output:
            grader = _started(
                command,
                environment,
                output,
                Path("/"),
                plan.grader_user,
                stdin=subprocess.PIPE,
            )
        assert grader.stdin is not None
        # never an argument: all of the machine see those
        with contextlib.suppress(BrokenPipeError), grader.stdin:
            grader.stdin.write(f"{self._token}\n".encode())
        return grader

    def _start_keeper(self) -> subprocess.Popen[bytes]:
        plan = self._plan
        command = [sys.executable, "-m", "warpbook_hub.keeper", plan.service_url]
        command += [*plan.lease_gpus, "--idle-end-s", str(60 * plan.lease_idle_min)]
        for account in (plan.service_user, plan.grader_user):
            command += ["--spare", account] if account else []
        environment = {
            name: os.environ[name] for name in _KEEPER_ENVIRONMENT if name in os.environ
        }
        with _log(plan.hub_folder / "keeper.log") as output:
            keeper = _started(
                command, environment, output, Path("/"), stdin=subprocess.PIPE
            )
        assert keeper.stdin is not None
        with contextlib.suppress(BrokenPipeError), keeper.stdin:
            keeper.stdin.write(plan.keeper_token_file.read_bytes())
        return keeper

    def _home(self, user: str) -> str:
        return pwd.getpwnam(user).pw_dir if user else os.environ.get("HOME", "/")

    def _wait_until_up(self, service: _Daemon, hub: _Daemon) -> None:
        end_s = time.monotonic() + _START_S
        # through the proxy, as people do
        places = (f"{self._plan.url}hub/health", f"{self._plan.pages_url}health")
        while not self._is_stopping:
            if all(_answers(place, self._plan) for place in places):
                return
            if service.has_ended:
                log = self._plan.hub_folder / "service.log"
                raise CantRun(f"The course service ended:\n{_last_lines(log)}")
            if hub.has_ended or time.monotonic() > end_s:
                log = self._plan.hub_folder / "hub.log"
                raise CantRun(f"JupyterHub did not start:\n{_last_lines(log)}")
            time.sleep(_POLL_S)


def _engine_options(plan: HubPlan) -> list[str]:
    """Say to a grader what it runs jobs on."""
    if plan.ray_address:
        address = ["--ray-address", plan.ray_address]
        return ["--engine", "ray", *address, "--ray-token-file", plan.ray_token_file]
    slots = ["--cpu-slots", str(plan.cpu_slots)]
    return slots if plan.use_gpu else [*slots, "--no-gpu"]


class _Daemon:
    """A process that is started anew when it ends."""

    def __init__(
        self,
        name: str,
        start: Callable[[], subprocess.Popen[bytes]],
        say: Callable[[str], None],
        final_status: int | None = None,
    ) -> None:
        self._name, self._start, self._say = name, start, say
        self._final_status = final_status
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = 0.0
        self._wait_s = 0.0
        self._again_s = 0.0

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def start(self) -> None:
        self._process = self._start()
        self._started_s = time.monotonic()

    def look(self) -> None:
        """Start it anew if it has ended, soon at first and later after a while."""
        now_s = time.monotonic()
        if self._process is None:
            if now_s >= self._again_s:
                self.start()
            return
        if self._process.poll() is None:
            return
        is_steady = now_s - self._started_s >= _STEADY_S
        self._wait_s = 0.0 if is_steady else min(2 * self._wait_s + 1, _MOST_WAIT_S)
        self._again_s = now_s + self._wait_s
        status = self._process.returncode
        self._process = None
        if status == self._final_status:
            self._say(f"{self._name} was retired. Restart the hub to have it again.")
            self._again_s = math.inf
            return
        self._say(f"{self._name} ended with status {status}. It is started anew.")

    def end(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _started(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: Any,
    folder: Path,
    user: str = "",
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None)

    def end_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    # a session of its own: Ctrl-C reaches only us, and each is asked once
    return subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=folder,
        start_new_session=True,
        # no thread of ours could hold a lock in the child
        preexec_fn=end_with_parent,
        **as_user(user),
    )


def _write_secret(path: Path, secret: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "w") as file:
        file.write(secret)


@contextlib.contextmanager
def _log(path: Path) -> Any:
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    with open(descriptor, "ab") as output:
        yield output


def _answers(url: str, plan: HubPlan) -> bool:
    # names of hosts need not be known to this machine
    parts = urlsplit(url)
    request = urllib.request.Request(
        f"{plan.proxy_url}{parts.path}", headers={"Host": parts.netloc}
    )
    # nothing is told to it, and a certificate is not for this name
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(request, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _last_lines(log: Path, most: int = 15) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-most:])
