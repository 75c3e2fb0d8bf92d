"""What a benchmark is asked, spreads of what it measures, and its report's section."""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine


def ask(description: str | None, **defaults: float) -> argparse.Namespace:
    """Read the options: numbers by name with what they are else, and `--write`."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in defaults.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(value), default=value)
    parser.add_argument("--write", type=Path, help="put the report into this file")
    return parser.parse_args()


def tell(arguments: argparse.Namespace, heading: str, text: str) -> None:
    """Print the report; where asked, write it below the command that made it."""
    print(text, flush=True)
    if arguments.write is None:
        return
    options = [
        f" --{name.replace('_', '-')} {value:g}"
        for name, value in vars(arguments).items()
        if name != "write"
    ]
    command = f"python benchmarks/{Path(sys.argv[0]).name}{''.join(options)}"
    put_section(arguments.write, heading, command, text)


def spread(values: Sequence[float], digits: int) -> str:
    """Median and range: "4.1 (3.9 to 4.4)"."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Bounds that hold the median with 95 % (bootstrap)."""
    medians = sorted(
        statistics.median(random.choices(values, k=len(values))) for _ in range(4000)
    )
    return medians[100], medians[-101]


def put_section(file: Path, heading: str, command: str, text: str) -> None:
    """Replace the section of this heading, or add it; the others stay."""
    section = f"## {heading}\n\n`{command}`\n\n{describe_machine()}\n\n{text.strip()}\n"
    old = file.read_text() if file.exists() else "# Benchmarks\n"
    match = re.search(
        rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", old, re.MULTILINE | re.DOTALL
    )
    if match is None:
        file.write_text(f"{old.rstrip()}\n\n{section}")
        return
    rest = old[match.end() :]
    file.write_text(old[: match.start()] + section + ("\n" + rest if rest else ""))
