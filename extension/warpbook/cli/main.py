"""The `warpbook` command: finds the subcommand, and tells its errors in one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from warpbook import __version__
from warpbook.cli import agent, analyze, doctor, limits, record, up
from warpbook.cli.errors import CommandError
from warpbook_monitors.errors import MonitorError


def make_parser() -> argparse.ArgumentParser:
    """Describe every command and option; the docs are tested against this."""
    parser = argparse.ArgumentParser(
        prog="warpbook", description="A GPU lab inside JupyterLab."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="command", required=True)
    for command in (up, doctor, record, agent, analyze, limits):
        command.add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a failure, 2 a wrong command line."""
    asked = make_parser().parse_args(arguments)
    try:
        status: int = asked.run(asked)
    except (CommandError, MonitorError) as error:
        print(f"warpbook: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # whoever read our output has gone; Python would complain at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        # what a shell says of a program that Ctrl-C ended
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
