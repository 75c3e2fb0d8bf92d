"""`python -m warpbook_hub.running.relocation FOLDER`: moves a course's database.

It runs as the service's account, whose database it is. The address is in the
environment, as it may hold a password.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from warpbook_hub.database.address import VARIABLE
from warpbook_hub.errors import HubError
from warpbook_hub.keeping.move import move

#: instead of an address: the file in the course's folder
TO_FILE = "sqlite"


def main() -> int:
    """Move it; 1 with the reason where it stays."""
    address = os.environ[VARIABLE]
    try:
        moved = move(Path(sys.argv[1]), None if address == TO_FILE else address)
    except HubError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    sys.stdout.write(msgspec.json.encode(moved).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
