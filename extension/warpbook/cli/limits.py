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
from warpbook_profiler.capture.limits import Answer
from warpbook_profiler.model.ceilings import DTYPE_LABELS, ceilings
from warpbook_profiler.model.limits import Limits

_LINKS = {
    "copy.to_gpu.pinned": "Host to device, pinned",
    "copy.to_host.pinned": "Device to host, pinned",
    "copy.to_gpu.pageable": "Host to device, pageable",
    "copy.to_host.pageable": "Device to host, pageable",
}
#: of the host but for the first two
_TIMES = {
    "kernel": "Shortest kernel",
    "graph_step": "Between kernels of a CUDA graph",
    "launch": "Launch",
    "operator": "Operator of torch, with its launch",
    "autograd": "The same, recorded by autograd",
    "autocast": "Casts of a product by autocast",
    "compiled_call": "Call of a compiled function",
    "graph_launch": "Launch of a CUDA graph",
    "synchronize": "Synchronization",
    "round_trip": "Operator, waited for",
    "recorded": "A microsecond of the host, recorded",
}


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "limits",
        help="measure what the GPUs here can reach",
        description="Measure what work takes on each GPU here and on its host: passes "
        "over memory, reductions, products, convolutions, attention, copies, launches, "
        "operators. It takes about a minute and wants the GPU for itself. It is done "
        "once for each GPU, host, driver and torch; what is advised then rests on it "
        "in place of an H200's times, and reports name it beside the datasheet's.",
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
        f"torch {limits.torch}, on {limits.host}, measured {when:%Y-%m-%d %H:%M}"
    )
    reached, sheet = limits.ceilings, ceilings(limits.gpu)
    rows = [("", "measured", "datasheet", "of it")]
    if reached is not None:
        memory = sheet and sheet.memory_bytes_per_s
        what = "Device memory (read and write)"
        rows.append(_row(what, reached.memory_bytes_per_s, memory, "B/s"))
        for name, label in DTYPE_LABELS.items():
            if name in reached.flops_per_s:
                peak = sheet and sheet.flops_per_s.get(name)
                what = f"Matrix product, {label}"
                rows.append(_row(what, reached.flops_per_s[name], peak, "FLOP/s"))
    for name, what in _LINKS.items():
        for largest in limits.curves.get(name, ())[-1:]:
            rate = largest.amount / largest.usual_ns * 1e9
            rows.append(_row(what, rate, None, "B/s"))
    for name, what in _TIMES.items():
        for point in limits.curves.get(name, ()):
            rows.append((what, f"{point.usual_ns / 1000:.2f} µs", "", ""))
    yield from aligned(rows)
    yield from (f"Not measured: {words}" for words in limits.left_out)


def _row(
    what: str, rate: float, peak: float | None, unit: str
) -> tuple[str, str, str, str]:
    if peak is None:
        return what, _rate(rate, unit), "", ""
    return what, _rate(rate, unit), _rate(peak, unit), f"{units.share(rate / peak)}"


def _rate(rate: float, unit: str) -> str:
    size, prefix = (1e12, "T") if rate >= 1e12 else (1e9, "G")
    return f"{rate / size:.3g} {prefix}{unit}"
