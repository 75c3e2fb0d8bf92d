"""`warpbook analyze FILE.csv`: what Nsight Compute measured, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from warpbook_monitors.plain_text import joined
from warpbook_profiler.files.nsight.limiters import (
    KernelLimit,
    heading,
    kernel_limits,
    limit_table,
    limiter_lines,
)
from warpbook_profiler.files.nsight.ncu import read_ncu
from warpbook_profiler.report.report import SCHEMA_VERSION
from warpbook_profiler.report.tables import as_lines


def run(path: Path, as_json: bool) -> int:
    """Read, judge and print.

    Raises:
        TraceFileError: it is no output of Nsight Compute, or can't be read.
    """
    limits = kernel_limits(read_ncu(str(path)))
    if as_json:
        document = {
            "schema": "warpbook.kernels",
            "version": SCHEMA_VERSION,
            "kernels": limits,
        }
        sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    else:
        print(joined(_lines(limits)))
    return 0


def _lines(limits: Sequence[KernelLimit]) -> Iterator[str]:
    yield heading(limits)
    yield from as_lines([limit_table(limits)])
    yield ""
    yield from limiter_lines(limits)
