"""`python -m warpbook.hub.running.audit_trial DATABASE`: looks through an audit log.

The doctor starts it as the service's account. The head that was kept comes on stdin as
JSON; what is wrong with the log is written on stdout. Nothing is changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from warpbook.hub import audit
from warpbook.hub.database.dialects import dialect_of


class AuditTrial(Struct, frozen=True):
    """What was seen."""

    #: empty if all entries are there and fit
    problem: str
    head: audit.AuditHead


def main() -> int:
    """Look through the log of a database."""
    kept = msgspec.json.decode(sys.stdin.buffer.read(), type=audit.AuditHead | None)
    engine = dialect_of(Path(sys.argv[1])).engine(to_write=False)
    with engine.begin() as connection:
        problem = audit.problem(connection, kept)
        trial = AuditTrial(problem, audit.head(connection))
    engine.dispose()
    sys.stdout.buffer.write(msgspec.json.encode(trial))
    return 0


if __name__ == "__main__":
    sys.exit(main())
