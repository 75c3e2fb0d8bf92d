"""A real systemd in namespaces of its own, for units that a hub starts."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.programs import wait_for

_SCRIPT = Path(__file__).with_name("systemd_machine.sh")
_CGROUPS = Path("/sys/fs/cgroup")
#: what a unit that is started now needs of a machine
_EMPTY = "[Unit]\nDescription={name}\nDefaultDependencies=no\n"
_BUS_SOCKET = "[Socket]\nListenStream=/run/dbus/system_bus_socket\n"
_BUS = """Requires=dbus.socket
[Service]
Type=notify
NotifyAccess=main
ExecStart={program} --system --address=systemd: --nofork --nopidfile
"""


class NoSystemd(AssertionError):
    """systemd can't be started here; the message says what is missing."""


@dataclass(frozen=True)
class Machine:
    """A systemd, by the process that it is outside of its namespaces."""

    pid: int

    @property
    def within(self) -> tuple[str, ...]:
        """Give what runs a command beside it; the network is this machine's."""
        return ("nsenter", "-t", str(self.pid), "-a", "--")

    def said(self, *words: str) -> str:
        """Run a command there, and give what it wrote."""
        command = [*self.within, *words]
        return subprocess.run(command, capture_output=True, text=True).stdout


@contextlib.contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """Start it; all that runs there ends with it.

    Raises:
        NoSystemd: this is not root, or a program is missing.
    """
    bus = shutil.which("dbus-daemon")
    programs = (bus, shutil.which("nsenter"), shutil.which("unshare"))
    if os.geteuid() != 0 or not all(programs):
        raise NoSystemd("This takes root, systemd, dbus-daemon, nsenter and unshare.")
    if not Path("/lib/systemd/systemd").exists():
        raise NoSystemd("There is no systemd: apt-get install systemd dbus")
    units = folder / "units"
    units.mkdir()
    for name in ("sysinit.target", "basic.target", "shutdown.target"):
        (units / name).write_text(_EMPTY.format(name=name))
    for name, more in (
        ("machine.target", "Requires=dbus.socket\n"),
        ("dbus.socket", _BUS_SOCKET),
        ("dbus.service", _BUS.format(program=bus)),
    ):
        (units / name).write_text(_EMPTY.format(name=name) + more)
    log = folder / "systemd.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", str(_SCRIPT), str(units)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        pid = wait_for("systemd", lambda: _first_process(process.pid), 30)
        begun = Machine(pid)

        def answers() -> bool | None:
            assert process.poll() is None, log.read_text()
            return "running" in begun.said("systemctl", "show", "dbus.service") or None

        wait_for("its bus", answers, 30)
        yield begun
    finally:
        # the namespace's first process takes all others with it
        process.kill()
        process.wait()
        _remove_cgroups()


def _first_process(pid: int) -> int | None:
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children():
            if child.name() == "systemd":
                return int(child.pid)
    return None


def _remove_cgroups() -> None:
    for part in ("", "devices", "pids", "systemd", "unified"):
        ours = _CGROUPS / part / "warpbook-test"

        def is_gone(ours: Path = ours) -> bool | None:
            for folder, _, _ in os.walk(ours, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            return not ours.exists() or None

        wait_for(f"the end of {ours}", is_gone, 30)
