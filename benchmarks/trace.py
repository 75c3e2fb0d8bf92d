"""A trace file's whole report, beside HolisticTraceAnalysis and torch-tb-profiler.

    python benchmarks/trace.py [--repeats 5] [--write docs/benchmarks.md]

The three take turns on the same files (`trace_file.py` writes them), each time in a
fresh process of its own environment. Time is from the file to the finished report or
tables, without imports and charts; memory is the peak of the whole process. Time of the
CPU and memory of processes that it starts are counted too. A ratio
compares neighbours in time, which had the same machine; the CPU's time is the
surer one where others use the machine too.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import ask, spread, tell
from benchmarks.trace_file import write_trace

#: the packages of each peer's environment; HTA fails with a newer pandas
PEERS = {
    "hta": ("HolisticTraceAnalysis==0.5.0", "pandas<3"),
    "tb": ("torch-tb-profiler==0.4.3",),
}
NAMES = {
    "warpbook": "warpbook analyze",
    "hta": "HolisticTraceAnalysis 0.5.0, 7 analyses",
    "tb": "torch-tb-profiler 0.4.3",
}
_PATIENCE_S = 1200
#: by events: how many times faster than each peer warpbook is to be, in time
AIMS = {100_000: 20, 1_000_000: 40}
#: and how much of their memory it may take
MEMORY_AIM = 0.5

Result = dict[str, float]


def python(contender: str) -> Path:
    """Give its interpreter; the first time, set its environment up."""
    if contender not in PEERS:
        return Path(sys.executable)
    folder = ROOT / ".cache" / f"bench-{contender}"
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *PEERS[contender]], check=True)
    return folder / "bin" / "python"


def measure(contender: str, trace: Path) -> Result:
    """Read the file once, in a process of its own."""
    child = Path(__file__).with_name("trace_child.py")
    done = subprocess.run(
        [python(contender), child, contender, trace],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_PATIENCE_S,
        cwd=trace.parent,
    )
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


def table(runs: dict[str, list[Result]]) -> str:
    """Time and memory of each, and how many times warpbook's."""
    lines = [
        "| | seconds | times warpbook's | CPU s | times warpbook's | "
        "peak MiB | warpbook's of it |",
        "|---|---|---|---|---|---|---|",
    ]
    ours = runs["warpbook"]
    for contender, results in runs.items():
        cells = [NAMES[contender]]
        for key in ("seconds", "cpu_seconds"):
            values = [result[key] for result in results]
            ratios = [value / our[key] for value, our in zip(values, ours, strict=True)]
            cells += [spread(values, 2), spread(ratios, 0)]
        peaks = [result["peak_mib"] for result in results]
        parts = [our["peak_mib"] / peak for peak, our in zip(peaks, ours, strict=True)]
        cells += [spread(peaks, 0), spread(parts, 2)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def aims(events: int, runs: dict[str, list[Result]]) -> str:
    """Say which aims were met, by the medians."""
    ours = runs["warpbook"]
    sentences = []
    for contender, results in runs.items():
        if contender == "warpbook":
            continue
        times, cpu, memory = (
            statistics.median(
                result[key] / our[key]
                for result, our in zip(results, ours, strict=True)
            )
            for key in ("seconds", "cpu_seconds", "peak_mib")
        )
        met = "met" if times >= AIMS[events] else "missed"
        small = "met" if memory >= 1 / MEMORY_AIM else "missed"
        sentences.append(
            f"Against {NAMES[contender].split(',')[0]}: {times:.0f} times faster "
            f"({cpu:.0f} in CPU time), the aim of {AIMS[events]} is {met}; "
            f"{1 / memory:.2f} of its memory, the aim of {MEMORY_AIM} is {small}."
        )
    return "\n".join(sentences)


def main() -> None:
    """Measure in turn, and print the tables."""
    # the large ones are those of 1,000,000 events
    options = ask(__doc__, repeats=5, large_repeats=3)
    parts = []
    for events, repeats in (
        (100_000, options.repeats),
        (1_000_000, options.large_repeats),
    ):
        runs: dict[str, list[Result]] = {contender: [] for contender in NAMES}
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            write_trace(trace, events)
            size_mb = trace.stat().st_size / 1e6
            for _ in range(repeats):
                for contender, results in runs.items():
                    results.append(measure(contender, trace))
                    print(f"{events:,} events, {contender}: {results[-1]}", flush=True)
        parts.append(
            f"{events:,} events, {size_mb:.0f} MB; median (lowest to highest) of "
            f"{repeats} runs:\n\n{table(runs)}\n\n{aims(events, runs)}"
        )
    parts.append(
        "Tasks that wanted a core of the machine, mean of its last 15 minutes, this "
        f"benchmark being one: {os.getloadavg()[2]:.1f}."
    )
    tell(options, "From a trace file to its report", "\n\n".join(parts))


if __name__ == "__main__":
    main()
