"""`python -m warpbook_hub.grader`: grades for a hub until it is stopped or drained."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import stat
import sys
from pathlib import Path

from warpbook.hub_client import HubClient, HubRefused
from warpbook.hub_protocol import GRADERS, REFUSED_STATUS, Device
from warpbook_hub.grader.cluster import settings
from warpbook_hub.grader.engine import Engine, Places
from warpbook_hub.grader.gpus import devices, gangs
from warpbook_hub.grader.inventory import Inventory
from warpbook_hub.grader.job_run import Bounds
from warpbook_hub.grader.local_pool import LocalPool
from warpbook_hub.grader.work_loop import WorkLoop
from warpbook_monitors.cores import usable_cores
from warpbook_monitors.plain_text import printable

_PR_SET_DUMPABLE = 4
_MOST_TOKEN_BYTES = 1_000


def main() -> int:
    options = _arguments()
    # no process of this user, such as a learner's, reads our memory or environment
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)
    try:
        token = read_token(options.token_file)
    except (OSError, ValueError) as problem:
        _say(str(problem))
        return 2
    try:
        engine = _engine(options)
    except (CantBegin, OSError, ValueError) as problem:
        _say(str(problem))
        return 2
    # of a cluster's nodes, and of another's command, nothing is known here
    is_own = options.engine == "local" and not options.command
    labs = Inventory().labs if is_own else lambda: None
    client = HubClient(options.url, token, GRADERS)
    loop = WorkLoop(client, engine, _say, options.stay, labs)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())
    places = engine.places()
    _say(f"{places.cpu_slots} slots, {len(places.devices)} GPUs, for {options.url}")
    try:
        loop.run()
    except HubRefused as problem:
        _say(f"The hub refuses this grader: {problem}")
        return REFUSED_STATUS
    return 0


class CantBegin(Exception):
    """Nothing can be graded as it was asked for; the message says what to do."""


def _engine(options: argparse.Namespace) -> Engine:
    """Make what runs jobs.

    Raises:
        CantBegin: an option or Ray is missing, or the cluster.
        OSError: the cluster's token can't be read.
        ValueError: others can read it, or there is none.
    """
    bounds = Bounds(options.wall_s, int(options.memory_gib * 2**30))
    if options.engine == "ray":
        return _on_ray(options, bounds)
    gpus = () if options.no_gpu else devices()
    gpus += tuple(
        Device(f"SIM-{n}", "simulated") for n in range(options.simulated_gpus)
    )
    places = Places(options.cpu_slots, gangs(gpus, options.gpus_per_job))
    return LocalPool(bounds, options.command or None, places=places)


def _on_ray(options: argparse.Namespace, bounds: Bounds) -> Engine:
    if not options.ray_address or options.ray_token_file is None:
        raise CantBegin("--engine ray needs --ray-address and --ray-token-file.")
    settings.use(options.ray_token_file)
    try:
        # the driver alone has it
        from warpbook_hub.grader.cluster import pool as pools
    except ImportError:
        raise CantBegin(f"There is no Ray here. {settings.EXTRA}") from None
    try:
        pool: Engine = pools.RayPool(
            options.ray_address,
            bounds,
            options.command or None,
            options.gpus_per_job,
            options.accelerator,
            _say,
        )
    except pools.NoCluster as problem:
        raise CantBegin(str(problem)) from None
    return pool


def read_token(place: str) -> str:
    """Read the token: of a file that nobody else can read, or `-` for stdin.

    Raises:
        ValueError: others can read it, or there is none in it.
        OSError: it can't be read.
    """
    if place == "-":
        token = sys.stdin.readline(_MOST_TOKEN_BYTES)
    else:
        with Path(place).open(encoding="ascii", errors="replace") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise ValueError(f"{place}: others can read it. Do: chmod 600 {place}")
            token = file.readline(_MOST_TOKEN_BYTES)
    if not token.strip():
        raise ValueError("There is no token: `warpbook hub` gives one to a grader.")
    return token.strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m warpbook_hub.grader", description=__doc__
    )
    parser.add_argument("url", help="of the course service")
    parser.add_argument(
        "--token-file", default="-", help="the grader's token; `-` reads it from stdin"
    )
    parser.add_argument("--cpu-slots", type=int, default=usable_cores())
    parser.add_argument("--no-gpu", action="store_true", help="leave GPUs alone")
    parser.add_argument(
        "--stay", action="store_true", help="wait while drained, rather than end"
    )
    parser.add_argument(
        "--simulated-gpus",
        type=int,
        default=0,
        help="slots for GPUs that are not there, to try out a queue with `--command`",
    )
    parser.add_argument(
        "--gpus-per-job",
        type=int,
        choices=range(1, 17),
        default=1,
        metavar="N",
        help="GPUs of one machine that each job has at once",
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="local: jobs run on this machine; ray: on the nodes of a cluster",
    )
    parser.add_argument("--ray-address", default="", metavar="HOST:PORT")
    parser.add_argument(
        "--ray-token-file", type=Path, metavar="FILE", help="the cluster's; mode 600"
    )
    parser.add_argument(
        "--accelerator", default="", metavar="TYPE", help="only such GPUs, as H100"
    )
    parser.add_argument("--wall-s", type=float, default=Bounds().wall_s)
    parser.add_argument("--memory-gib", type=float, default=12.0)
    parser.add_argument(
        "--command", nargs="+", help="what grades a job, in place of the labs"
    )
    return parser.parse_args()


def _say(words: str) -> None:
    sys.stderr.write(f"warpbook grader: {printable(words)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
