"""`warpbook backup` and `restore`: what a person can't make again, in one file."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path

from jupyter_core.paths import jupyter_config_dir

from warpbook.backup.contents import MADE_ANEW, Places
from warpbook.backup.creation import make_backup
from warpbook.backup.manifest import BackupError
from warpbook.backup.restoration import restore_backup
from warpbook.cli.output import CommandError
from warpbook_monitors.alerts.rules import FILE_NAME
from warpbook_monitors.data_folder import data_folder
from warpbook_monitors.plain_text import printable


def add_backup(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
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
    parser.set_defaults(run=_back_up)


def _back_up(options: argparse.Namespace) -> int:
    try:
        made = make_backup(_places(), options.file, options.force)
    except BackupError as error:
        raise CommandError(str(error)) from None
    for reason in made.left_out:
        print(f"warpbook: left out: {printable(reason)}", file=sys.stderr)
    for entry in made.manifest.files:
        print(f"{entry.size_bytes / 1e6:10.1f} MB  {entry.name}")
    print(f"{made.size_bytes / 1e6:10.1f} MB  {printable(str(options.file))}")
    return 0


def add_restore(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "restore",
        help="put what `warpbook backup` wrote back in its place",
        description="Put what `warpbook backup` wrote back in its place, also while "
        "servers run. The file is checked before anything is changed, and what was "
        "there before is kept as a backup of its own.",
    )
    parser.add_argument("file", type=Path, help="what `warpbook backup` wrote")
    parser.set_defaults(run=_restore)


def _restore(options: argparse.Namespace) -> int:
    """Restore it, and tell where what was there before is."""
    try:
        restored = restore_backup(options.file, _places())
    except BackupError as error:
        raise CommandError(str(error)) from None
    manifest = restored.manifest
    made = datetime.fromtimestamp(manifest.made_ms / 1000)
    version = printable(manifest.version)[:40]
    print(f"Restored of {made:%Y-%m-%d %H:%M} ({version}):")
    for name in restored.came or ("nothing",):
        print(f"  {printable(name)}")
    if restored.left_out:
        print("Not restored:")
    for reason in restored.left_out:
        print(f"  {printable(reason)}")
    print("In no backup, and made anew where it is missing:")
    for name, words in MADE_ANEW.items():
        print(f"  {name}: {words}")
    for path in restored.aside:
        print(f"A damaged file was put aside: {printable(str(path))}")
    if restored.before is not None:
        print(
            f"What was there before: {printable(str(restored.before))}\n"
            "To have it back: warpbook restore with that file."
        )
    return 0


def _places() -> Places:
    """Say where the files of whoever runs this are."""
    return Places(data_folder(), Path(jupyter_config_dir(), FILE_NAME))
