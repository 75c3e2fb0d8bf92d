"""What tools say of the traces: `python peers.py TOOL truth.json > answers.json`.

TOOL is `warpbook`, `hta` or `tracelens`, which is installed where this runs. A tool is
given a trace from its cell's mark on, and its words are taken for those of the exam
where they mean the same; what it does not say is left out.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
MARK = "warpbook: start of the cell"
#: what an H100 reaches (NVIDIA's datasheet, dense), as TraceLens asks for it; given for
#: traces of an H200 too, whose memory is faster
ARCHITECTURE = {
    "name": "H100",
    "mem_bw_gbps": 3350,
    "memory_gb": 80,
    "max_achievable_tflops": {
        **{"matrix_fp16": 989, "matrix_bf16": 989, "matrix_tf32": 494},
        **{"matrix_fp32": 67, "matrix_fp64": 67, "matrix_fp8": 1979},
        **{"vector_fp16": 134, "vector_bf16": 134, "vector_fp32": 67},
        **{"vector_fp64": 34, "matrix_int8": 1979},
    },
}


def hta(trace: Path, cell: Facts) -> Facts:
    """HTA has times of kernels by type and of idling; it advises no change."""
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(trace)}, trace_dir=str(trace.parent))
    (shares,) = analysis.get_temporal_breakdown(visualize=False).to_dict("records")
    busy = shares["compute_time_pctg"] + shares["non_compute_time_pctg"]
    if shares["idle_time_pctg"] > busy:
        return {"decided_by": "host"}
    copies = shares["non_compute_time_pctg"] > shares["compute_time_pctg"]
    return {"decided_by": "GPU", **({"kind": "transfer-bound"} if copies else {})}


def tracelens(trace: Path, cell: Facts) -> Facts:
    """TraceLens has the roof of operators that it knows; it advises no change."""
    folder = trace.parent
    specs = folder / "architecture.json"
    specs.write_text(json.dumps(ARCHITECTURE))
    command = ["TraceLens_generate_perf_report_pytorch", "--profile_json_path", trace]
    command += ["--output_csvs_dir", folder, "--gpu_arch_json_path", specs]
    command[0] = str(Path(sys.executable).with_name(str(command[0])))
    subprocess.run(command, check=True, capture_output=True)
    shares = {
        row["type"]: float(row["percent"]) for row in _rows(folder / "gpu_timeline.csv")
    }
    if shares["idle_time"] > shares["busy_time"]:
        return {"decided_by": "host"}
    if shares["exposed_memcpy_time"] > shares["computation_time"]:
        return {"kind": "transfer-bound"}
    roofs = Counter[str]()
    for row in _rows(folder / "unified_perf_summary.csv"):
        roofs[row.get("Roofline Bound", "")] += float(row["Kernel Time (µs)_sum"] or 0)
    (roof, _), *_ = roofs.most_common(1) or [("", 0)]
    kinds = {"COMPUTE_BOUND": "compute-bound", "MEMORY_BOUND": "memory-bound"}
    return {"decided_by": "GPU", **({"kind": kinds[roof]} if roof in kinds else {})}


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def warpbook(trace: Path, cell: Facts) -> Facts:
    """Reads the trace and the cell's code, as `warpbook analyze --source` does."""
    source = trace.with_name("cell.py")
    source.write_text(f"{cell['slow'].strip()}\ntorch.cuda.synchronize()\n")
    program = str(Path(sys.executable).with_name("warpbook"))
    command = [program, "analyze", "--json", "--source", str(source), str(trace)]
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    kind = said["verdict"]["kind"]
    return {
        **({} if kind == "unknown" else {"kind": kind}),
        **_times(said["bare"] or {}),
        "changes": [
            {"name": change["name"], **_times(change)} for change in said["changes"]
        ],
    }


def _times(facts: Facts) -> Facts:
    times = {f"{key}_ms": facts.get(f"{key}_ns") for key in ("time", "low", "high")}
    return {key: value / 1e6 for key, value in times.items() if value is not None}


#: what the tools raise on traces that they can't read
_FAILURES = (
    *(AssertionError, AttributeError, LookupError, TypeError, ValueError),
    *(OSError, subprocess.CalledProcessError),
)
TOOLS: dict[str, tuple[str, Callable[[Path, Facts], Facts]]] = {
    "hta": ("HolisticTraceAnalysis", hta),
    "tracelens": ("TraceLens", tracelens),
    "warpbook": ("warpbook", warpbook),
}


def _from_the_mark_on(path: Path, target: Path) -> None:
    """Write the trace without what came before its cell."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    events = trace["traceEvents"]
    start = max(event["ts"] for event in events if event.get("name") == MARK)
    trace["traceEvents"] = [
        event for event in events if "ts" not in event or event["ts"] >= start
    ]
    target.write_text(json.dumps(trace))


def main(arguments: list[str]) -> int:
    """Ask a tool about each trace; what it fails on it does not say."""
    (package, ask), path = TOOLS[arguments[0]], Path(arguments[1])
    truth, answers = json.loads(path.read_bytes()), dict[str, Facts]()
    for name, trace in truth["traces"].items():
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "trace.json")
            _from_the_mark_on(path.parent / trace["file"], target)
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    answers[name] = ask(target, truth["cells"][trace["cell"]])
            except _FAILURES as error:
                print(f"{name}: {error!r}", file=sys.stderr)
    said = {"tool": f"{package} {version(package)}", "traces": answers}
    print(json.dumps(said, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
