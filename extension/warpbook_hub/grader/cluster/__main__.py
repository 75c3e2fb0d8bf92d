"""`python -m warpbook_hub.grader.cluster`: keeps one machine of a Ray cluster running.

The head places jobs and runs none; each node gives its cores and GPUs. What ends, since
the head is gone or the link was cut, is started anew.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from warpbook.hub_protocol import Device
from warpbook_hub.grader.cluster.settings import (
    EXTRA,
    GPU_NAME,
    GPU_RESOURCE,
    WORKER_PORTS,
    answers,
    environment,
    is_address,
    label_of,
)
from warpbook_hub.grader.cluster.task import GRADED_USER
from warpbook_hub.grader.gpus import devices
from warpbook_monitors.cores import usable_cores
from warpbook_monitors.plain_text import printable

#: short: the name of a socket has 107 bytes at most, and Ray's own part has 70
_PLACE = Path("/tmp")


_PR_SET_PDEATHSIG = 1
_AGAIN_S = 1.0
_END_S = 15.0
_START = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block")


def private_folder(place: Path = _PLACE) -> Path:
    """Return the folder of Ray's sockets and logs, made if it is not there.

    Ray makes its own folders open to all accounts of a machine, and a learner there
    could put another socket in place of one that a grader connects to.

    Raises:
        PermissionError: another account has taken its name.
        OSError: it can't be made.
    """
    folder = place / f"warpbook-ray-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        known = folder.lstat()
        is_ours = stat.S_ISDIR(known.st_mode) and known.st_uid == os.geteuid()
        if not is_ours:
            raise PermissionError(
                f"{folder} is another account's. Look for whose, and remove it."
            ) from None
    folder.chmod(0o700)
    return folder / "ray"


def main() -> int:
    """Keep it running until a signal asks to end."""
    options = _arguments()
    if find_spec("ray") is None:
        _say(f"There is no Ray here. {EXTRA}")
        return 2
    try:
        ray = {**os.environ, **environment(options.token_file)}
        folder = private_folder()
    except (OSError, ValueError) as problem:
        _say(str(problem))
        return 2
    ray.pop("RAY_AUTH_TOKEN", None)
    ray[GRADED_USER] = options.user
    if not options.user and not options.head:
        _say("What grades has the account of the node: name another with --user.")
    command = head_command(options) if options.head else node_command(options)
    command.append(f"--temp-dir={folder}")
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: stopped.append(number))
    while not stopped:
        if not options.head and not answers(options.address):
            # a node that finds no head tries for half a minute, and fails
            time.sleep(_AGAIN_S)
            continue
        status = _run(command, ray, stopped)
        if not stopped:
            _say(f"Ray ended with status {status}. It is started anew.")
            time.sleep(_AGAIN_S)
    return 0


def head_command(options: argparse.Namespace) -> list[str]:
    """Give what starts the head, which runs no job."""
    host, _, port = options.address.rpartition(":")
    command = [*_START, "--head", f"--node-ip-address={host}", f"--port={port}"]
    command += ["--num-cpus=0", "--num-gpus=0", "--include-dashboard=false"]
    return command


def node_command(options: argparse.Namespace) -> list[str]:
    """Give what starts a node with its cores and whole GPUs."""
    gpus = () if options.no_gpu else devices()
    gpus += tuple(Device(uuid, "simulated") for uuid in options.simulated_gpu)
    resources = {f"{GPU_RESOURCE}{gpu.uuid}": 1 for gpu in gpus}
    command = [*_START, f"--address={options.address}"]
    if options.node_ip:
        command.append(f"--node-ip-address={options.node_ip}")
    command += [f"--num-cpus={options.cpu_slots}", f"--num-gpus={len(gpus)}"]
    command.append(f"--resources={msgspec.json.encode(resources).decode()}")
    if gpus:
        command.append(f"--labels={GPU_NAME}={label_of(gpus[0].name)}")
    return command


def _run(command: Sequence[str], ray: dict[str, str], stopped: list[int]) -> int:
    """Run Ray until it ends, or we are asked to."""
    libc = ctypes.CDLL(None)

    def end_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    with subprocess.Popen(
        command,
        env=ray,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None,
        preexec_fn=end_with_parent,
    ) as process:
        while process.poll() is None:
            if stopped:
                # it ends what it has started
                process.terminate()
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()
            time.sleep(0.1)
    return process.returncode


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m warpbook_hub.grader.cluster", description=__doc__
    )
    parser.add_argument("address", help="HOST:PORT of the head, in a private network")
    parser.add_argument("--head", action="store_true", help="this machine is the head")
    parser.add_argument(
        "--token-file", type=Path, required=True, help="the cluster's; mode 600"
    )
    parser.add_argument("--node-ip", default="", help="of this node in that network")
    parser.add_argument("--cpu-slots", type=int, default=usable_cores())
    parser.add_argument("--no-gpu", action="store_true", help="leave GPUs alone")
    parser.add_argument(
        "--simulated-gpu",
        action="append",
        default=[],
        metavar="UUID",
        help="one that is not there, to try out a queue; more than once for more",
    )
    parser.add_argument(
        "--user", default="", help="the account that grades here; takes root"
    )
    options = parser.parse_args()
    if not is_address(options.address):
        parser.error("the address is HOST:PORT")
    if int(options.address.rpartition(":")[2]) in WORKER_PORTS:
        parser.error("ports 10002 to 19999 are those of Ray's workers: name another")
    return options


def _say(words: str) -> None:
    sys.stderr.write(f"warpbook node: {printable(words)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
