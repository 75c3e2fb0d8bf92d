"""`warpbook limits`: what the GPUs here were measured to reach."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from importlib import util

import msgspec

from warpbook.cli.output import CommandError
from warpbook_monitors import units
from warpbook_monitors.plain_text import aligned, joined
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.capture.limits import Answer, Limits
from warpbook_profiler.model.ceilings import DTYPE_LABELS, ceilings


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "limits",
        help="measure what the GPUs here can reach",
        description="Measure what each GPU here can reach (device memory, copies, "
        "matrix products, launches), which takes some seconds and wants the GPU "
        "for itself. It is done once for each GPU and driver; reports of cells and "
        "traces then name these limits beside the datasheet's.",
    )
    parser.add_argument(
        "--again", action="store_true", help="measure although it was done before"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Let a process of its own measure; print what it found."""
    limits = _limits(options.again)
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode({"limits": limits}) + b"\n")
    else:
        print(joined(line for limit in limits for line in _text(limit)))
    return 0


def _limits(again: bool) -> tuple[Limits, ...]:
    if util.find_spec("torch") is None:
        raise CommandError(
            "limits are measured with PyTorch, which is not installed for this Python."
        )
    done = subprocess.run(
        [sys.executable, "-m", "warpbook_profiler.capture.measure_limits"]
        + (["--again"] if again else []),
        cwd=NOWHERE,
        env={**os.environ, "PYTHONPATH": own_path()},
        capture_output=True,
        check=False,
    )
    try:
        answer = msgspec.json.decode(done.stdout, type=Answer)
    except msgspec.MsgspecError:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        last = said[-1] if said else f"it ended with status {done.returncode}"
        raise CommandError(f"no limits were measured: {last}") from None
    if answer.problem is not None:
        raise CommandError(f"no limits were measured: {answer.problem}")
    return answer.limits


def _text(limits: Limits) -> Iterator[str]:
    when = datetime.fromtimestamp(limits.measured_ms / 1000)
    yield (
        f"{limits.gpu} ({limits.uuid}), driver {limits.driver or 'not known'}, "
        f"torch {limits.torch}, measured {when:%Y-%m-%d %H:%M}"
    )
    sheet = ceilings(limits.gpu)
    rows = [("", "measured", "datasheet", "of it")]
    rows.append(
        _row(
            "Device memory, copy (read and write)",
            limits.memory_bytes_per_s,
            sheet and sheet.memory_bytes_per_s,
            "B/s",
        )
    )
    for what, rate in (
        ("Host to device, pinned", limits.host_to_device_bytes_per_s),
        ("Device to host, pinned", limits.device_to_host_bytes_per_s),
    ):
        rows.append(_row(what, rate, None, "B/s"))
    for name, label in DTYPE_LABELS.items():
        if name in limits.flops_per_s:
            peak = sheet and sheet.flops_per_s.get(name)
            what = f"Matrix product, {label}"
            rows.append(_row(what, limits.flops_per_s[name], peak, "FLOP/s"))
    for what, time_ns in (
        ("Launch, one after another", limits.launch_ns),
        ("Launch, waited for", limits.round_trip_ns),
    ):
        rows.append((what, f"{time_ns / 1000:.2f} µs", "", ""))
    yield from aligned(rows)


def _row(
    what: str, rate: float, peak: float | None, unit: str
) -> tuple[str, str, str, str]:
    if peak is None:
        return what, _rate(rate, unit), "", ""
    return what, _rate(rate, unit), _rate(peak, unit), f"{units.share(rate / peak)}"


def _rate(rate: float, unit: str) -> str:
    size, prefix = (1e12, "T") if rate >= 1e12 else (1e9, "G")
    return f"{rate / size:.3g} {prefix}{unit}"
