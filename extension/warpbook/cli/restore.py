"""`warpbook restore`: what `warpbook backup` wrote, back in its place."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from warpbook.backup.contents import MADE_ANEW
from warpbook.backup.manifest import BackupError
from warpbook.backup.restoring import restore_backup
from warpbook.cli.backup import places
from warpbook.cli.errors import CommandError
from warpbook_monitors.plain_text import printable


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "restore",
        help="put what `warpbook backup` wrote back in its place",
        description="Put what `warpbook backup` wrote back in its place, also while "
        "servers run. The file is checked before anything is changed, and what was "
        "there before is kept as a backup of its own.",
    )
    parser.add_argument("file", type=Path, help="what `warpbook backup` wrote")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Restore it, and tell where what was there before is."""
    try:
        restored = restore_backup(options.file, places())
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
