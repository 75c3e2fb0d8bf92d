"""`warpbook gpulease`: a GPU of the class hub for a while."""

from __future__ import annotations

import argparse
import sys

import msgspec

from warpbook import gpu_lease
from warpbook.cli.output import CommandError
from warpbook.hub_client import HubProblem


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "gpulease",
        help="take, extend or give back a GPU of the class hub",
        description="Lease a GPU of the class hub for 10 to 30 minutes. What has it "
        "open when the lease ends is ended. It works on a terminal of the hub.",
    )
    gpu_lease.add_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do it, and say how it stands; 1 where a GPU was asked for and is not there."""
    try:
        lease = gpu_lease.do(options)
    except HubProblem as problem:
        raise CommandError(str(problem)) from None
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode(lease) + b"\n")
    else:
        print(gpu_lease.words(lease))
        if lease.state == "held":
            print(f"For programs of this terminal: CUDA_VISIBLE_DEVICES={lease.gpu}")
    return 1 if options.action == "take" and lease.state != "held" else 0
