"""`warpbook hub --move-database`: a course's database to PostgreSQL, and back."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from warpbook.cli.output import CommandError

if TYPE_CHECKING:
    from warpbook_hub.running.plan import HubPlan

#: instead of an address: it is in the environment
_FROM_ENVIRONMENT = "env"


def move(plan: HubPlan, address: str) -> str:
    """Move the database of a hub that does not run; say what came of it.

    Args:
        plan: of the hub.
        address: of a PostgreSQL database; `sqlite`, or `env`.

    Raises:
        CommandError: it was not moved; the message says why and what to do.
    """
    from warpbook_hub.database import address as addresses
    from warpbook_hub.keeping.move import TO_FILE, MoveReport
    from warpbook_hub.running import accounts

    if address == _FROM_ENVIRONMENT:
        address = os.environ.get(addresses.VARIABLE, "")
        if not address:
            raise CommandError(f"{addresses.VARIABLE} has no address in it.")
    elif addresses.has_password(address):
        raise CommandError(
            "An argument is seen by everybody of this machine. Put the address with "
            f"its password into {addresses.VARIABLE}, and say --move-database env."
        )
    done = subprocess.run(
        [sys.executable, "-m", "warpbook_hub.keeping.move", str(plan.course_folder)],
        env={**os.environ, addresses.VARIABLE: address},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        **accounts.as_user(plan.service_user),
    )
    if done.returncode != 0:
        reason = done.stderr.strip()[-2_000:]
        raise CommandError(reason or "The database could not be moved.")
    moved = msgspec.json.decode(done.stdout, type=MoveReport)
    where = "a file" if address == TO_FILE else addresses.without_password(address)
    stays = f" {moved.left} stays as it was." if moved.left else ""
    return (
        f"Moved to {where}: {moved.rows:,} rows of {moved.tables} tables, compared by "
        f"digests.{stays} Start the hub again."
    )
