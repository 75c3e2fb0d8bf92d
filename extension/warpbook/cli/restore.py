"""`warpbook restore`: what `warpbook backup` wrote, back in its place."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

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
    print(f"Restored {len(manifest.files)} files of {made:%Y-%m-%d %H:%M} ({version}).")
    for path in restored.aside:
        print(f"A damaged file was put aside: {printable(str(path))}")
    if restored.before is not None:
        print(
            f"What was there before: {printable(str(restored.before))}\n"
            "To have it back: warpbook restore with that file."
        )
    return 0
