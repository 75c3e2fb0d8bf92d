"""A real Ray cluster: a head and nodes with GPUs that are not there, on one machine.

As root each node is in a network namespace of its own, so that its link can be cut;
else all nodes have this machine's network.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.programs import ROOT, free_port, python_path, wait_for
from warpbook_hub.grader.cluster.settings import WORKER_PORTS

#: names the private networks of this process
_NETWORK = os.getpid() % 200 + 20
BRIDGE = f"wb{_NETWORK}"
_SUBNET = f"10.99.{_NETWORK}"
_COMMAND = (sys.executable, "-m", "warpbook_hub.grader.cluster")


def head_port() -> int:
    """Give a free port that Ray does not keep for its workers."""
    while (port := free_port()) in WORKER_PORTS:
        pass
    return port


@dataclass
class Cluster:
    """A cluster, what it was started with, and what it is made of."""

    folder: Path
    has_networks: bool
    port: int = field(default_factory=head_port)
    programs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    #: a process whose mounts, and so whose accounts, all that is started has
    accounts_of: int | None = None

    @property
    def address(self) -> str:
        host = f"{_SUBNET}.1" if self.has_networks else _own_address()
        return f"{host}:{self.port}"

    @property
    def token_file(self) -> Path:
        return self.folder / "ray_token"

    def start_head(self, uid: int = 0) -> None:
        """Start the head, as an account of `accounts_of` if a user id is given."""
        self._start("head", ["--head"], uid=uid)
        host, _, port = self.address.rpartition(":")

        def answers() -> bool | None:
            with contextlib.suppress(OSError):
                with socket.create_connection((host, int(port)), timeout=1):
                    return True
            return None

        wait_for("Ray's head", answers, 60)

    def processes_of(self, name: str) -> list[psutil.Process]:
        """Give what runs below one that was started by name."""
        return psutil.Process(self.programs[name].pid).children(recursive=True)

    def node_of(self, program: str) -> str:
        """Give the name of the node that runs a program; empty if none does."""
        return next((name for name in self.programs if self.runs(name, program)), "")

    def runs(self, name: str, program: str) -> bool:
        """Whether a node runs a program."""
        for process in self.processes_of(name):
            with contextlib.suppress(psutil.Error):
                if any(program in word for word in process.cmdline()):
                    return True
        return False

    def start_node(
        self,
        number: int,
        slots: int,
        gpus: tuple[str, ...] = (),
        user: str = "",
        has_gpus: bool = False,
    ) -> None:
        """Start a node with simulated GPUs, or with this machine's own."""
        options = ["--cpu-slots", str(slots), "--user", user]
        options += [] if has_gpus else ["--no-gpu"]
        for uuid in gpus:
            options += ["--simulated-gpu", uuid]
        if self.has_networks:
            address = f"{_SUBNET}.{10 + number}"
            _add_namespace(number, address)
            options += ["--node-ip", address]
        self._start(f"node{number}", options, _namespace(number))

    def kill(self, name: str, program: str) -> list[int]:
        """Kill Ray's processes of a name below one that was started by name."""
        pids = []
        for process in self.processes_of(name):
            with contextlib.suppress(psutil.Error):
                if program in " ".join(process.cmdline()[:2]):
                    process.send_signal(signal.SIGKILL)
                    pids.append(process.pid)
        return pids

    def cut(self, number: int) -> None:
        """Take a node's link away."""
        _ip("link", "set", f"{BRIDGE}p{number}", "down")

    def heal(self, number: int) -> None:
        """Give a node its link back."""
        _ip("link", "set", f"{BRIDGE}p{number}", "up")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _start(
        self, name: str, options: list[str], within: str = "", uid: int = 0
    ) -> None:
        command = [*_COMMAND, self.address, "--token-file", str(self.token_file)]
        if self.accounts_of is not None:
            own = ["--mount", "--target", str(self.accounts_of)]
            own += ["--setuid", str(uid), "--setgid", str(uid)]
            # the folder of whoever runs the test is not there
            command = ["nsenter", *own, "env", "--chdir=/", "HOME=/tmp", *command]
        if within and self.has_networks:
            command = ["ip", "netns", "exec", within, *command]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.programs[name] = subprocess.Popen(
                [*command, *options],
                env=clean_environment(),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def end(self) -> None:
        for process in self.programs.values():
            process.terminate()
        for process in self.programs.values():
            process.wait(60)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Give a cluster of which nothing has started."""
    has_networks = may_have_networks()
    begun = Cluster(folder, has_networks)
    begun.token_file.write_text(secrets.token_hex(16))
    begun.token_file.chmod(0o600)
    if has_networks:
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{_SUBNET}.1/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
    try:
        yield begun
    finally:
        begun.end()
        if has_networks:
            for number in range(10):
                # a namespace's goes later, and the next cluster has one of its name
                _quietly("link", "delete", f"{BRIDGE}p{number}")
                _quietly("netns", "delete", _namespace(number))
            _quietly("link", "delete", BRIDGE)


def may_have_networks() -> bool:
    """Whether this process may make networks."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"{BRIDGE}try"
    made = _quietly("netns", "add", name) and _quietly(
        "link", "add", BRIDGE, "type", "bridge"
    )
    _quietly("link", "delete", BRIDGE)
    _quietly("netns", "delete", name)
    return made


def _add_namespace(number: int, address: str) -> None:
    name, port = _namespace(number), f"{BRIDGE}p{number}"
    _ip("netns", "add", name)
    _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", port, "master", BRIDGE, "up")
    _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
    _ip("-n", name, "link", "set", "eth0", "up")
    _ip("-n", name, "link", "set", "lo", "up")


def _namespace(number: int) -> str:
    return f"{BRIDGE}n{number}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _quietly(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True).returncode == 0


def clean_environment() -> dict[str, str]:
    """Give an environment without what a driver in this process has set."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("RAY_")
    }
    return {**kept, "PYTHONPATH": python_path()}


def _own_address() -> str:
    """Give the address of this machine's network; Ray takes no loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # nothing is sent
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
        address = str(probe.getsockname()[0])
    if address != "0.0.0.0":
        return address
    # no route leads out of a machine that is by itself
    addresses = [
        entry.address
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family is socket.AF_INET and not entry.address.startswith("127.")
    ]
    return addresses[0] if addresses else "127.0.0.1"
