"""A longer fuzz: `python -m tests.fuzz [--minutes 10] [--seed 1] [--write FILE]`."""

from __future__ import annotations

import argparse
import logging
import platform
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

from tests.fuzz.driver import (
    ADDRESS_SPACE_BYTES,
    Fuzz,
    answers,
    files,
    limited_server,
    memory_bytes,
    tracebacks,
)
from tests.fuzz.stored import archives, backups
from tests.fuzz.surface import Surface

_A_ROUND = 460


def main() -> int:
    """Run until the time is over; print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    # archives tell of each damaged value
    logging.disable()
    total: dict[str, Surface] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with limited_server(home) as running:
            with Fuzz(running, 0) as fuzz:
                fuzz.page(46)
            before_bytes = memory_bytes(running)
            until_s = time.monotonic() + 60 * options.minutes
            seed = options.seed
            while time.monotonic() < until_s:
                with Fuzz(running, seed) as fuzz:
                    of_server = (
                        fuzz.page(_A_ROUND),
                        fuzz.ingest(_A_ROUND),
                        fuzz.stream(_A_ROUND),
                    )
                for surface in (
                    *of_server,
                    *files(seed, _A_ROUND // 4, home),
                    archives(seed, _A_ROUND // 4, home / f"archives-{seed}"),
                    backups(seed, _A_ROUND, home / f"backups-{seed}"),
                ):
                    sum_ = total.setdefault(surface.name, Surface(surface.name))
                    sum_.inputs += surface.inputs
                    sum_.refused += surface.refused
                    sum_.failures += surface.failures
                seed += 1
            alive = answers(running)
            time.sleep(10)
            after_bytes = memory_bytes(running)
        faults = tracebacks(home)
    page = _page(
        list(total.values()), options, before_bytes, after_bytes, alive, faults
    )
    sys.stdout.write(page)
    if options.write:
        options.write.write_text(page)
    failures = [failure for s in total.values() for failure in s.failures]
    return 1 if failures or faults or not alive else 0


def _page(
    surfaces: list[Surface],
    options: argparse.Namespace,
    before_bytes: int,
    after_bytes: int,
    alive: bool,
    faults: list[str],
) -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    lines = [
        "# A fuzz of everything that comes in",
        "",
        f"{when}, commit {commit}, Python {platform.python_version()} on "
        f"{platform.system()}, 2 cores, no GPU.",
        f"`python -m tests.fuzz --minutes {options.minutes:g} --seed {options.seed}`: "
        "a real server whose address space is limited to "
        f"{ADDRESS_SPACE_BYTES >> 30} GiB.",
        "",
        "| surface | inputs | refused | failures |",
        "|---|---|---|---|",
    ]
    for surface in surfaces:
        lines.append(
            f"| {surface.name} | {surface.inputs} | {surface.refused} "
            f"| {len(surface.failures)} |"
        )
    lines += [
        "",
        f"Resident memory {before_bytes >> 20} MiB before, {after_bytes >> 20} MiB "
        f"after and ten quiet seconds. It {'answers' if alive else 'does not answer'}. "
        f"Tracebacks in its log: {len(faults)}.",
    ]
    for surface in surfaces:
        lines += [f"- {failure}" for failure in surface.failures[:20]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
