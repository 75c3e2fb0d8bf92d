"""A real Slurm of one node, with two GPUs that are device nodes and nothing more.

It needs Debian's slurmctld, slurmd, slurm-client and munge, and root; systemd has no
part in it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.programs import environment, free_port, running, wait_for

_CONF = """
ClusterName=warpbook
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctl_port}
SlurmdPort={node_port}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
GresTypes=gpu
NodeName=localhost CPUs={cores} RealMemory=4000 Gres=gpu:h100:1,gpu:1g.10gb:1
PartitionName=debug Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""
_GRES = """
NodeName=localhost Name=gpu Type=h100 File={folder}/gpu0
NodeName=localhost Name=gpu Type=1g.10gb File={folder}/gpu1
"""


class Slurm:
    """A Slurm that runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.conf = folder, folder / "slurm.conf"

    def said(self, *command: str) -> str:
        """Give what a command of Slurm's prints."""
        env = environment(SLURM_CONF=str(self.conf))
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        return done.stdout.strip()

    def jobs(self, column: str) -> list[str]:
        """Give a column of squeue, for each job."""
        return self.said("squeue", "-h", "-o", column).splitlines()


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[Slurm]:
    """Run munge, the controller and one node for a while."""
    assert os.geteuid() == 0, "Slurm's node starts jobs as others: run it as root"
    # munge asks that nobody else could have put its files there
    folder.chmod(0o755)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    for name in ("gpu0", "gpu1"):
        # as /dev/null is
        os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    started = Slurm(folder)
    values = {"folder": folder, "host": socket.gethostname(), "cores": os.cpu_count()}
    ports = {"ctl_port": free_port(), "node_port": free_port()}
    started.conf.write_text(_CONF.format(**values, **ports))
    (folder / "gres.conf").write_text(_GRES.format(folder=folder))
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("pid", "log", "seed")]
    munge = ["munged", "-F", "--force", f"--key-file={key}", *files]
    munge_socket = folder / "munge.socket"
    munge += [f"--socket={munge_socket}"]
    conf = str(started.conf)
    programs = {
        "munge": munge,
        "slurmctld": ["slurmctld", "-D", "-f", conf],
        "slurmd": ["slurmd", "-D", "-f", conf, "-N", "localhost"],
    }
    env = environment(SLURM_CONF=conf)
    env["PATH"] += ":/usr/sbin"
    with contextlib.ExitStack() as stack:
        for name, command in programs.items():
            log = folder / f"{name}.output"
            stack.enter_context(running(command, env, log))
            if name == "munge":
                wait_for("munge", lambda: munge_socket.exists() or None, 10)
        wait_for(
            f"the node, see {folder}",
            lambda: "idle" in started.said("sinfo", "-h", "-o", "%T") or None,
        )
        yield started
