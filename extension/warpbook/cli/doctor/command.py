"""`warpbook doctor`: what works here, what does not, and what to do."""

from __future__ import annotations

import argparse
import sys

import msgspec

from warpbook.cli.doctor.check import Check
from warpbook.cli.doctor.checks import all_checks
from warpbook_monitors.plain_text import printable

_MARKS = {"ok": "ok     ", "absent": "absent ", "broken": "BROKEN "}


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="tell what works here, what does not, and what to do",
        description="Tell what works here, what does not, and what to do. "
        "The exit status is 1 if something is broken; what is merely not there "
        "(no GPU, no torch) is told and is no failure.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check everything; print as it comes, or all at once as JSON."""
    checks: list[Check] = []
    for check in all_checks():
        checks.append(check)
        if not options.json:
            _print(check)
    usable = all(check.state != "broken" for check in checks)
    if options.json:
        encoded = msgspec.json.encode({"usable": usable, "checks": checks})
        sys.stdout.write(msgspec.json.format(encoded.decode(), indent=2) + "\n")
    else:
        print(
            "\nwarpbook is usable here."
            if usable
            else "\nSomething is broken; see the lines marked BROKEN."
        )
    return 0 if usable else 1


def _print(check: Check) -> None:
    print(f"{_MARKS[check.state]} {check.what}: {printable(check.message)}", flush=True)
    if check.remedy:
        print(f"         -> {printable(check.remedy)}", flush=True)
