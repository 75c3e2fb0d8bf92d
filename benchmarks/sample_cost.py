"""What one sample costs: warpbook's sampler beside nvitop's and gpustat's snapshot.

    python benchmarks/sample_cost.py [--samples 20] [--repeats 3] [--write FILE]

All on the same stub NVML with eight H200s, whose calls wait as long as real ones and
use no processor. Each reader runs in a process of its own: warpbook's sampler at its
10 Hz, nvitop once a second, because it remembers its answers for that long, and gpustat
as often as it can. Told for a sample of all eight GPUs: CPU time, the time until
it is there, and how many calls of the stub it took. warpbook's sample holds GPM's
figures, the peers' the processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import ask, spread, tell
from tests.stub_nvml import StubNvml, build

GPUS = 8
PEERS = ("nvitop==1.7.2", "gpustat==1.1.1")

_MEASURE = """
import json, statistics, sys, time
samples = int(sys.argv[1])
{prepare}
cpu_s, walls_ms = time.process_time(), []
for _ in range(samples):
    time.sleep({pause_s})
    begin = time.perf_counter()
    {sample}
    walls_ms.append((time.perf_counter() - begin) * 1000)
{done}
cpu_ms = (time.process_time() - cpu_s) * 1000 / samples
print(json.dumps([cpu_ms, statistics.median(walls_ms)]))
"""
_NVITOP = _MEASURE.format(
    prepare="from nvitop import take_snapshots\ntake_snapshots()",
    pause_s=1.05,
    sample="take_snapshots()",
    done="",
)
_GPUSTAT = _MEASURE.format(
    prepare="import gpustat\ngpustat.new_query()",
    pause_s=0.1,
    sample="gpustat.new_query()",
    done="",
)
_WARPBOOK = """
import json, statistics, sys, time
from warpbook_monitors.frames import Frame
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.sampling.own_cost import Costs
from warpbook_monitors.sampling.sampler import Sampler
samples = int(sys.argv[1])
costs = Costs()
sampler = Sampler([NvmlSource()], costs=costs)
ticks_ms = []
sampler.listen(lambda each: isinstance(each, Frame) and ticks_ms.append(costs.tick_ms))
sampler.open()
with sampler.watch("benchmark"):
    while len(ticks_ms) < 10:
        time.sleep(0.01)
    cpu_s, first = time.process_time(), len(ticks_ms)
    while len(ticks_ms) < first + samples:
        time.sleep(0.1)
    done = len(ticks_ms) - first
    cpu_ms = (time.process_time() - cpu_s) * 1000 / done
print(json.dumps([cpu_ms, statistics.median(ticks_ms[first:])]))
sampler.close()
"""


@dataclass(frozen=True)
class Reader:
    """Something that takes samples."""

    name: str
    python: Path
    code: str
    #: so many of its samples take as long as one of the slowest
    times: int = 1


@dataclass(frozen=True)
class Cost:
    """Of one sample of all GPUs."""

    cpu_ms: float
    wall_ms: float


def readers() -> list[Reader]:
    """warpbook from this environment, the peers from one of their own."""
    peers = ROOT / ".cache" / "bench-peers" / "bin" / "python"
    if not peers.exists():
        subprocess.run([sys.executable, "-m", "venv", peers.parent.parent], check=True)
        subprocess.run([peers, "-m", "pip", "install", "-q", *PEERS], check=True)
    return [
        Reader("warpbook", Path(sys.executable), _WARPBOOK, times=10),
        Reader("nvitop", peers, _NVITOP),
        Reader("gpustat", peers, _GPUSTAT),
    ]


def measure(reader: Reader, samples: int) -> tuple[Cost, float]:
    """Cost of a sample, and NVML calls of a sample, counted by the stub."""
    with tempfile.TemporaryDirectory() as folder:
        more = str(ROOT / "benchmarks" / "peer_calls.c")
        library = build(Path(folder) / "library", more)

        def run(count: int) -> tuple[Cost, int]:
            stub = StubNvml(library, Path(folder) / "state", *["h200"] * GPUS)
            path = f"{ROOT / 'extension'}:{ROOT / 'monitors'}"
            done = subprocess.run(
                [reader.python, "-c", reader.code, str(count)],
                env={"PATH": "/usr/bin:/bin", "PYTHONPATH": path, **stub.env},
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            return Cost(*json.loads(done.stdout)), stub.calls()

        # what starting takes goes with the difference
        many = samples * reader.times
        cost, calls = run(many)
        _, fewer_calls = run(many // 2)
        return cost, (calls - fewer_calls) / (many - many // 2)


def main() -> None:
    """Measure in turn, `repeats` times."""
    options = ask(__doc__, samples=20, repeats=3)
    everybody = readers()
    results: dict[str, list[tuple[Cost, float]]] = {
        contender.name: [] for contender in everybody
    }
    for _ in range(options.repeats):
        for reader in everybody:
            results[reader.name].append(measure(reader, options.samples))
            print(reader.name, results[reader.name][-1], flush=True)
    lines = [
        "| reader | CPU time ms | of warpbook's | until it is there, ms | NVML calls |",
        "|---|---|---|---|---|",
    ]
    ours = [cost.cpu_ms for cost, _ in results["warpbook"]]
    for name, runs in results.items():
        cpu = [cost.cpu_ms for cost, _ in runs]
        ratios = [theirs / our for theirs, our in zip(cpu, ours, strict=True)]
        lines.append(
            f"| {name} | {spread(cpu, 2)} | {spread(ratios, 1)} "
            f"| {spread([cost.wall_ms for cost, _ in runs], 1)} "
            f"| {spread([calls for _, calls in runs], 0)} |"
        )
    text = (
        f"One sample of {GPUS} stub H200s: median (lowest to highest) of "
        f"{options.repeats} runs. {', '.join(PEERS)}. gpustat waits 0.1 s for each GPU "
        "on which a process runs.\n\n" + "\n".join(lines)
    )
    tell(options, "What one sample costs", text)


if __name__ == "__main__":
    main()
