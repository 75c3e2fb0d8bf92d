"""What `%%gpuprof` costs in a notebook, beside torch.profiler in the same run.

    python benchmarks/notebook_gpu.py [--write docs/benchmarks.md]

Four questions: from the end of a cell's body to the report on screen, against
`key_averages()` (`profile_stop.py` says what its parts take); the body under the
profiler; the speed of a launch-bound loop after the process's first profile; and what
that first profile sets up. Contenders take turns in one process, or have processes of
their own in turn. Needs a GPU for the figures that count; without one, operators on the
CPU are measured, and it says so. Takes 5 minutes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROOTS = [
    str(ROOT),
    *(str(ROOT / folder) for folder in ("extension", "labs", "monitors")),
]
sys.path[:0] = ROOTS

from benchmarks.report import ask, interval, spread, tell

_PATIENCE_S = 240
#: the peer with the same activities
BODIES = {
    "no profiler": "torch.profiler",
    "torch.profiler": "torch.profiler",
    "%%gpuprof --no-shapes": "torch.profiler",
    "torch.profiler, record_shapes": "torch.profiler, record_shapes",
    "%%gpuprof": "torch.profiler, record_shapes",
}
SPEED = {
    "warpbook": "`%%gpuprof`",
    "torch.profiler": "torch.profiler",
    "nothing": "no profile",
}


class Failed(Exception):
    """A process told nothing; the message says why."""


def child(*arguments: object) -> dict[str, Any]:
    """Ask one process."""
    paths = [*ROOTS, os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    # whoever wants CUPTI to go away has to say so
    env.pop("TEARDOWN_CUPTI", None)
    env.pop("WARPBOOK_INGEST_URL", None)
    script = Path(__file__).with_name("notebook_child.py")
    command = [sys.executable, str(script), *map(str, arguments)]
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                env=env,
                cwd=folder,
            )
    except subprocess.TimeoutExpired:
        raise Failed(f"{arguments}: no end within {_PATIENCE_S} s") from None
    print(f"{arguments}: {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        raise Failed(f"{arguments}: {done.stderr[-3000:]}")
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


def report_table(runs: Sequence[list[dict[str, Any]]]) -> str:
    """From the end of the body to the report."""
    lines = [
        "| events | `%%gpuprof`: to its report on screen, s | of it torch's own stop; "
        "the peer's | `key_averages()` alone, s | over our time to the report | over "
        "that without torch's stop | full collections of garbage (s): ours, theirs | "
        "files written |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for reports in runs:
        shown = [one["to_report_s"] for one in reports]
        own = [one["to_report_s"] - one["stop_s"] for one in reports]
        theirs = [one["their_report_s"] for one in reports]
        garbage = ", ".join(
            f"{statistics.median(one['collections'][side] for one in reports):.0f} "
            f"({statistics.median(one['collected_s'][side] for one in reports):.2f})"
            for side in (0, 1)
        )
        files = {name for one in reports for name in one["written"]}
        cells = [
            f"{reports[0]['events']:,}",
            spread(shown, 2),
            "; ".join(
                spread([one[name] for one in reports], 2)
                for name in ("stop_s", "their_stop_s")
            ),
            spread(theirs, 2),
            *(
                spread([peer / our for peer, our in zip(theirs, of, strict=True)], 1)
                for of in (shown, own)
            ),
            garbage,
            ", ".join(sorted(files)) or "none",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def body_table(rounds: list[dict[str, float]]) -> str:
    """A body under each profiler."""
    lines = [
        "| under | body, ms | over | in pairs (95 % interval) |",
        "|---|---|---|---|",
    ]
    for name, peer in BODIES.items():
        ratios = [one[name] / one[peer] for one in rounds]
        low, high = interval(ratios)
        lines.append(
            f"| {name} | {spread([one[name] for one in rounds], 1)} | {peer} "
            f"| {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}) |"
        )
    return "\n".join(lines)


def speed_table(runs_of: dict[str, list[dict[str, Any]]]) -> str:
    """The rate after a profile."""
    lines = [
        "| after one | launches a second before | rate after over before (95 % "
        "interval) | lowest to highest |",
        "|---|---|---|---|",
    ]
    for contender, runs in runs_of.items():
        ratios = [run["after"] / run["before"] for run in runs]
        low, high = interval(ratios)
        lines.append(
            f"| {SPEED[contender]} "
            f"| {statistics.median(run['before'] for run in runs):,.0f} "
            f"| {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}) "
            f"| {min(ratios):.3f} to {max(ratios):.3f} |"
        )
    return "\n".join(lines)


def first_table(runs_of: dict[str, list[dict[str, Any]]]) -> str:
    """What a process's first profile takes, beside a later one."""
    lines = [
        "| | before the body, ms: first | later | after it, ms: first | later | of the "
        "first: imports, CUDA, profiler, ms | modules imported |",
        "|---|---|---|---|---|---|---|",
    ]
    for contender in ("warpbook", "torch.profiler"):
        runs = runs_of[contender]
        after = "after_ms" if contender == "warpbook" else "stop_ms"
        cells = [
            spread([one[run][name] for one in runs], 0)
            for name in ("before_ms", after)
            for run in ("first", "later")
        ]
        parts = [run["first"].get("set_up") for run in runs]
        cells.append(
            ", ".join(
                f"{statistics.median(part[name] for part in parts) / 1e6:,.0f}"
                for name in ("imports_ns", "cuda_ns", "profiler_ns")
            )
            if all(parts)
            else "-"
        )
        cells.append(spread([run["modules"] for run in runs], 0))
        lines.append(f"| {SPEED[contender]} | {' | '.join(cells)} |")
    loads = [run_of_ours["load_ms"] for run_of_ours in runs_of["warpbook"]]
    return "\n".join(lines) + f"\n\n`%load_ext warpbook` took {spread(loads, 0)} ms."


def measure(pairs: int, large_pairs: int, rounds: int, processes: int) -> str:
    """Ask all processes, and say what they found; one that fails is named."""
    parts = []
    reports, problems, gpu = [], [], None
    for events, count in ((40_000, pairs), (400_000, large_pairs)):
        try:
            answer = child("report", events, count)
            reports.append(answer["found"])
            gpu = f"{answer['gpu'] or 'no GPU'}, torch {answer['torch']}"
        except Failed as problem:
            problems.append(f"{events:,} events: {problem}")
    if reports:
        parts.append(f"### To the report on screen\n\n{report_table(reports)}")
    try:
        bodies = child("body", rounds)["found"]
        parts.append(f"### The body of a cell\n\n{body_table(bodies)}")
    except Failed as problem:
        problems.append(f"body: {problem}")
    speeds: dict[str, list[dict[str, Any]]] = {name: [] for name in SPEED}
    try:
        for _ in range(processes):
            for contender, runs in speeds.items():
                runs.append(child("speed", contender)["found"])
    except Failed as problem:
        problems.append(f"speed: {problem}")
    if all(speeds.values()):
        parts.append(f"### The kernel after a profile\n\n{speed_table(speeds)}")
        parts.append(f"### The first profiled cell\n\n{first_table(speeds)}")
    if gpu is not None:
        where = f"On {gpu}."
        if gpu.startswith("no GPU"):
            where += " No GPU: only operators on the CPU were measured."
        parts.insert(0, where)
    return "\n\n".join([*parts, *(f"Failed: {problem}" for problem in problems)])


def main() -> None:
    """Measure, print, and keep it if asked to."""
    options = ask(__doc__, pairs=5, large_pairs=2, rounds=20, processes=7)
    text = measure(
        options.pairs, options.large_pairs, options.rounds, options.processes
    )
    tell(options, "A profiled cell in a notebook", text)


if __name__ == "__main__":
    main()
