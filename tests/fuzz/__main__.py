"""A fuzz of everything from outside: `python -m tests.fuzz --inputs 1000000`.

Most inputs go to the readers, each called in one of two processes; some go to a real
server, and to archives and backups. Input N of seed S is the same in each run.
"""

from __future__ import annotations

import argparse
import logging
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
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
from tests.fuzz.readers import MARGIN_BYTES, Counted, run
from tests.fuzz.stored import archives, backups
from tests.fuzz.surface import Surface

_A_ROUND = 460
#: of all inputs, those that a server, an archive or a backup is made for
_SHARE_OF_SERVER = 0.05


def main() -> int:
    """Run so many inputs; print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    # archives tell of each damaged value
    logging.disable()
    begun_s = time.monotonic()
    of_server = int(options.inputs * _SHARE_OF_SERVER)
    surfaces, notes, faults = _server(options.seed, of_server)
    counted, growths = _readers(options, options.inputs - of_server)
    rows = [(s.name, s.inputs, s.refused, "", s.failures) for s in surfaces]
    rows += [
        (name, c.inputs, c.refused, f"{c.most_cpu_s * 1e3:.0f} ms", c.failures)
        for name, c in counted.items()
    ]
    notes.append(
        "Resident memory of the readers' processes after a tenth of the inputs and at "
        f"the end: {'; '.join(f'{b >> 20} and {a >> 20} MiB' for b, a in growths)}."
    )
    notes.append(f"It took {(time.monotonic() - begun_s) / 60:.0f} min.")
    failures = [
        f"{name}: {failure}" for name, _, _, _, failed in rows for failure in failed
    ]
    page = _page(rows, options, notes, failures + faults)
    sys.stdout.write(page)
    if options.write:
        options.write.write_text(page)
    grown = any(after - before > MARGIN_BYTES for before, after in growths)
    return 1 if failures or faults or grown else 0


def _server(seed: int, inputs: int) -> tuple[list[Surface], list[str], list[str]]:
    """Ask a real server; give what was counted, what to note, and its faults."""
    total: dict[str, Surface] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with limited_server(home) as running:
            with Fuzz(running, 0) as fuzz:
                fuzz.page(46)
            before_bytes = memory_bytes(running)
            while sum(surface.inputs for surface in total.values()) < inputs:
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
    note = (
        f"The server, whose address space is limited to {ADDRESS_SPACE_BYTES >> 30} "
        f"GiB: {before_bytes >> 20} MiB resident before, {after_bytes >> 20} MiB after "
        f"and ten quiet seconds. Tracebacks in its log: {len(faults)}."
    )
    return list(total.values()), [note], faults if alive else [*faults, "no answer"]


def _readers(
    options: argparse.Namespace, inputs: int
) -> tuple[dict[str, Counted], list[tuple[int, int]]]:
    """Have the readers read in some processes, each its part of the inputs."""
    total: dict[str, Counted] = {}
    growths = []
    part = inputs // options.jobs
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(options.jobs) as pool,
    ):
        futures = []
        for job in range(options.jobs):
            own = Path(folder, str(job))
            own.mkdir()
            futures.append(pool.submit(run, options.seed, job * part, part, own))
        for future in futures:
            counted, before_bytes, after_bytes = future.result()
            growths.append((before_bytes, after_bytes))
            for name, one in counted:
                sum_ = total.setdefault(name, Counted())
                sum_.inputs += one.inputs
                sum_.refused += one.refused
                sum_.most_cpu_s = max(sum_.most_cpu_s, one.most_cpu_s)
                sum_.failures += one.failures
    return total, growths


def _page(
    rows: list[tuple[str, int, int, str, list[str]]],
    options: argparse.Namespace,
    notes: list[str],
    faults: list[str],
) -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    when = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    lines = [
        "# A fuzz of everything from outside",
        "",
        f"{when}, commit {commit}, Python {platform.python_version()} on "
        f"{platform.system()}, 2 cores, no GPU.",
        f"`python -m tests.fuzz --inputs {options.inputs} --seed {options.seed}`",
        "",
        "| surface | inputs | refused | most CPU of one | failures |",
        "|---|---|---|---|---|",
    ]
    for name, inputs, refused, cpu, failed in rows:
        lines.append(f"| {name} | {inputs} | {refused} | {cpu} | {len(failed)} |")
    lines += ["", *notes, *(f"- {fault}" for fault in faults[:50])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
