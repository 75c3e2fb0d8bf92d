"""`warpbook backup`: what a person can't make again, in one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jupyter_core.paths import jupyter_config_dir

from warpbook.backup.contents import Places
from warpbook.backup.making import make_backup
from warpbook.backup.manifest import BackupError
from warpbook.cli.errors import CommandError
from warpbook_monitors.alerts.rules import FILE_NAME
from warpbook_monitors.data_folder import data_folder
from warpbook_monitors.plain_text import printable


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "backup",
        help="write your history, submissions and alert rules into one file",
        description="Write what you can't make again into one file: history, reports, "
        "cells and alerts of all machines, submissions to labs, and alert rules. "
        "Servers may run meanwhile. `warpbook restore` brings it back.",
    )
    parser.add_argument("file", type=Path, help="the file to write, *.tar.gz")
    parser.add_argument(
        "--force", action="store_true", help="replace a file that is there"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        made = make_backup(places(), options.file, options.force)
    except BackupError as error:
        raise CommandError(str(error)) from None
    for reason in made.left_out:
        print(f"warpbook: left out: {printable(reason)}", file=sys.stderr)
    for entry in made.manifest.files:
        print(f"{entry.size_bytes / 1e6:10.1f} MB  {entry.name}")
    print(f"{made.size_bytes / 1e6:10.1f} MB  {printable(str(options.file))}")
    return 0


def places() -> Places:
    """Say where the files of whoever runs this are."""
    return Places(data_folder(), Path(jupyter_config_dir(), FILE_NAME))
