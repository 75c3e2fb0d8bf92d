"""The `warpbook` command: finds the subcommand, and tells its errors in one line."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from warpbook.cli.output import CommandError
from warpbook_monitors._version import __version__
from warpbook_monitors.budget import EXCEEDED, TRACES
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.plain_text import printable

AddCommand = Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None]

#: in the order of the help; those of other distributions follow
_COMMANDS = (
    "up",
    "doctor",
    "record",
    "agent",
    "analyze",
    "advise",
    "gpulease",
    "limits",
    "memory",
    "labs",
    "mcp",
    "backup",
    "restore",
)
#: entry points: a command's name, and what adds it to the parser
_GROUP = "warpbook.commands"
#: commands that come by an entry point
_BY_ENTRY_POINT = ("hub",)
#: why what is written to goes no further
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def make_parser(names: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Describe some commands, or all of them; the docs are tested against this.

    Raises:
        CommandError: a named command's entry point is not installed.
    """
    parser = argparse.ArgumentParser(
        prog="warpbook", description="A GPU lab inside JupyterLab."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="command", required=True)
    for name in names or _COMMANDS:
        if name in _COMMANDS:
            _own(name)(commands)
    if not names or not set(names) <= set(_COMMANDS):
        for point in entry_points(group=_GROUP):
            if not names or point.name in names:
                point.load()(commands)
    for name in set(names) - set(commands.choices):
        raise CommandError(
            f"`{name}` is not installed here: pip install warpbook-{name} (in a clone: "
            f"make setup-{name})."
        )
    return parser


def _own(name: str) -> AddCommand:
    """What adds a command; only its module is imported."""
    match name:
        case "up":
            from warpbook.cli.up import add_command
        case "doctor":
            from warpbook.cli.doctor.checks import add_command
        case "record":
            from warpbook.cli.record import add_command
        case "agent":
            from warpbook.cli.agent import add_command
        case "analyze":
            from warpbook.cli.analyze import add_command
        case "advise":
            from warpbook.cli.advise import add_command
        case "gpulease":
            from warpbook.cli.gpulease import add_command
        case "limits":
            from warpbook.cli.limits import add_command
        case "memory":
            from warpbook.cli.memory import add_command
        case "labs":
            from warpbook.cli.labs.command import add_command
        case "mcp":
            from warpbook.cli.mcp import add_command
        case "backup":
            from warpbook.cli.backup import add_backup as add_command
        case _:
            from warpbook.cli.backup import add_restore as add_command
    return add_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a failure, 2 a wrong command line."""
    given = sys.argv[1:] if arguments is None else arguments
    # what only other commands import takes half a second
    named = [name for name in (*_COMMANDS, *_BY_ENTRY_POINT) if name in given[:1]]
    if arguments is None and named in (["analyze"], ["advise"]):
        # it multiplies no matrices: NumPy's threads for that would only spin at first
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a terminal may have no sign for what a trace holds
        sys.stdout.reconfigure(errors="replace")
    try:
        options = make_parser(named).parse_args(given)
        # then it may limit itself
        options.is_own_process = arguments is None
        status: int = options.run(options)
        if sys.stdout is not None:
            # else Python does it at its exit, and can only complain
            sys.stdout.flush()
    except (CommandError, MonitorError) as error:
        print(f"warpbook: {printable(str(error))}", file=sys.stderr)
        return 1
    except EXCEEDED:
        print(f"warpbook: {TRACES.words}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # whoever read our output has gone
        _let_go_of_output()
        return 1
    except OSError as problem:
        if problem.errno not in _FULL:
            raise
        _let_go_of_output()
        print(f"warpbook: can't write: {problem.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        # what a shell says of a program that Ctrl-C ended
        return 130
    return status


def _let_go_of_output() -> None:
    """Write to nowhere what is left, of which Python would complain at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
