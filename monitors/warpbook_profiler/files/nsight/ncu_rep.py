"""Reads `.ncu-rep` of Nsight Compute by NVIDIA's own module `ncu_report`, if installed.

Its library is not ours to trust with a stranger's file: it runs in a process of its
own, which is held to a budget.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from warpbook_monitors.budget import NCU, READ_S, TRACES, hold
from warpbook_monitors.plain_file import check_plain
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.model.errors import NotATrace, TraceTooLarge

ENDING = ".ncu-rep"
_MODULE = "ncu_report"
_LONGEST_NAME = 1000
#: a launch: the kernel's name, and of each metric its name, unit and value
Row = tuple[str, list[tuple[str, str, float]]]


def report_rows(path: str, metrics: Sequence[str]) -> list[Row]:
    """Read these metrics of each launch, as far as the report has them.

    Raises:
        TraceFileError: it is no such report, too large or can't be read; `NotATrace`
            where the module is not installed.
    """
    if importlib.util.find_spec(_MODULE) is None:
        raise NotATrace(
            path,
            "a report in a format of NVIDIA's own: NVIDIA's module reads it (pip "
            "install ncu-report), or ncu --import FILE --csv --page raw writes a table "
            "that can be read.",
        )
    check_plain(Path(path))
    if Path(path).stat().st_size > NCU.most_bytes:
        raise TraceTooLarge(path, f"larger than {NCU.most_bytes:,} bytes.")
    try:
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [sys.executable, "-m", __name__, os.path.abspath(path), *metrics],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                cwd=NOWHERE,
                env={**os.environ, "PYTHONPATH": own_path()},
                timeout=READ_S,
                check=False,
            )
            output.seek(0)
            text = output.read(NCU.most_bytes + 1)
        if done.returncode == -signal.SIGKILL or len(text) > NCU.most_bytes:
            raise TraceTooLarge(path, TRACES.words)
        rows = msgspec.json.decode(text, type=list[Row])
    except subprocess.TimeoutExpired:
        raise TraceTooLarge(
            path, f"it takes more than {READ_S:.0f} s to read."
        ) from None
    except msgspec.MsgspecError:
        raise NotATrace(path, "NVIDIA's ncu_report can't read it.") from None
    if len(rows) > NCU.items:
        raise TraceTooLarge(path, f"more than {NCU.items:,} launches.")
    return rows


def _rows(report: Any, metrics: Sequence[str]) -> Iterator[Row]:
    for number in range(report.num_ranges()):
        measured = report.range_by_idx(number)
        for at in range(measured.num_actions()):
            action = measured.action_by_idx(at)
            found = ((name, action.metric_by_name(name)) for name in metrics)
            values = [
                (name, metric.unit(), float(metric.as_double()))
                for name, metric in found
                if metric is not None
                and metric.has_value()
                and math.isfinite(metric.as_double())
            ]
            yield action.name()[:_LONGEST_NAME], values


def _main() -> None:
    hold(TRACES)
    report = importlib.import_module(_MODULE).load_report(sys.argv[1])
    rows = list(islice(_rows(report, sys.argv[2:]), NCU.items + 1))
    sys.stdout.buffer.write(msgspec.json.encode(rows))


if __name__ == "__main__":
    _main()
