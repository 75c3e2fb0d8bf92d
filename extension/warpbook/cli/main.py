"""The `warpbook` command: finds the subcommand, and tells its errors in one line."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from warpbook import __version__
from warpbook.cli.errors import CommandError
from warpbook_monitors.budget import EXCEEDED, TRACES
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.plain_text import printable

#: each a module of this package
_COMMANDS = (
    "up",
    "hub",
    "doctor",
    "record",
    "agent",
    "analyze",
    "advise",
    "gpulease",
    "limits",
    "memory",
    "labs",
    "backup",
    "restore",
)
#: why what is written to goes no further
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def make_parser(names: Sequence[str] = _COMMANDS) -> argparse.ArgumentParser:
    """Describe every command and option; the docs are tested against this."""
    parser = argparse.ArgumentParser(
        prog="warpbook", description="A GPU lab inside JupyterLab."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="command", required=True)
    for name in names:
        import_module(f"warpbook.cli.{name}").add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a failure, 2 a wrong command line."""
    given = sys.argv[1:] if arguments is None else arguments
    # what only other commands import takes half a second
    named = [name for name in _COMMANDS if name in given[:1]]
    if arguments is None and named in (["analyze"], ["advise"]):
        # it multiplies no matrices: NumPy's threads for that would only spin at first
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = make_parser(named or _COMMANDS).parse_args(given)
    #: then it may limit itself
    options.is_own_process = arguments is None
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a terminal may have no sign for what a trace holds
        sys.stdout.reconfigure(errors="replace")
    try:
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
