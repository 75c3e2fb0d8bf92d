"""A hub that grades on a Ray cluster: its options, and what the doctor looks at."""

from __future__ import annotations

import argparse
import importlib.util
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from warpbook.cli.doctor.check import Check, shown
from warpbook.cli.output import CommandError

if TYPE_CHECKING:
    from warpbook_hub.running.plan import HubPlan

_TRIAL_S = 120
_NODE = "python -m warpbook_hub.grader.cluster {} --token-file FILE"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="local: grade on this machine; ray: on the nodes of a Ray cluster "
        "(default: local)",
    )
    parser.add_argument(
        "--ray-address", default="", metavar="HOST:PORT", help="of the cluster's head"
    )
    parser.add_argument(
        "--ray-token-file",
        type=Path,
        metavar="FILE",
        help="the cluster's token; mode 600, of the account that grades",
    )


def cluster_of(options: argparse.Namespace, grader_user: str) -> dict[str, str]:
    """Give what the plan says of the cluster; nothing where this machine grades.

    Raises:
        CommandError: an option is missing or too much, Ray is not installed, or the
            grader could not use the token.
    """
    address, token_file = options.ray_address, options.ray_token_file
    if options.engine == "local":
        if address or token_file:
            raise CommandError("--ray-address and --ray-token-file: with --engine ray.")
        return {}
    if not address or token_file is None:
        raise CommandError("--engine ray needs --ray-address and --ray-token-file.")
    if options.cpu_slots is not None or options.no_gpu:
        raise CommandError(
            "--cpu-slots and --no-gpu are of this machine. With --engine ray each node "
            "has its own."
        )
    from warpbook_hub.grader.cluster import settings

    if not settings.is_address(address):
        raise CommandError("--ray-address is HOST:PORT, such as 10.0.0.1:6379.")
    if importlib.util.find_spec("ray") is None:
        raise CommandError(f"There is no Ray here. {settings.EXTRA}")
    try:
        settings.environment(token_file)
        owner = token_file.stat().st_uid
    except (OSError, ValueError) as problem:
        raise CommandError(str(problem)) from None
    if grader_user and owner != pwd.getpwnam(grader_user).pw_uid:
        raise CommandError(
            f"{token_file}: the account that grades can't read it. "
            f"Do: chown {grader_user} {token_file}"
        )
    return {"ray_address": address, "ray_token_file": str(token_file.absolute())}


def head_warning(plan: HubPlan) -> str:
    """Say that submissions wait, if no head answers; else nothing."""
    from warpbook_hub.grader.cluster import settings

    if settings.answers(plan.ray_address):
        return ""
    how = settings.how_to_start_head(plan.ray_address)
    return f"\n  SUBMISSIONS WAIT. {how}"


def cluster_check(plan: HubPlan) -> Check:
    """Join the cluster as the grader does, and say what it offers."""
    what = "Hub cluster"
    token_file = Path(plan.ray_token_file)
    if os.geteuid() != 0 and not os.access(token_file, os.R_OK):
        return Check(what, "absent", "Only who runs the hub can look at it.")
    from warpbook_hub.grader.cluster import trial as trials
    from warpbook_hub.running import accounts

    command = [sys.executable, "-m", "warpbook_hub.grader.cluster.trial"]
    try:
        done = subprocess.run(
            [*command, plan.ray_address, plan.ray_token_file],
            capture_output=True,
            timeout=_TRIAL_S,
            cwd="/",
            **accounts.as_user(plan.grader_user if os.geteuid() == 0 else ""),
        )
        trial = msgspec.json.decode(done.stdout, type=trials.ClusterTrial)
    except (
        subprocess.TimeoutExpired,
        OSError,
        KeyError,
        msgspec.MsgspecError,
    ) as problem:
        remedy = "Start head and hub so that head and grader have one account."
        return Check(what, "broken", f"It could not be joined: {problem}.", remedy)
    if trial.problem:
        return Check(what, "broken", trial.problem)
    where = f"Ray at {plan.ray_address}, token in {shown(plan.ray_token_file)}"
    node = _NODE.format(plan.ray_address)
    if not trial.cpu_slots:
        words = f"{where}: its head answers, and no node gives a CPU slot."
        return Check(what, "broken", words, f"On each node keep it running: {node}")
    if not trial.gpus:
        words = f"{where}: {trial.cpu_slots} CPU slots and no GPUs: nothing is timed."
        remedy = f"Add a node that has GPUs, without --no-gpu: {node}"
        return Check(what, "absent", words, remedy)
    words = f"{where}: {trial.cpu_slots} CPU slots, {trial.gpus} GPUs."
    return Check(what, "ok", words)
