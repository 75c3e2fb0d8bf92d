"""A run without GPU work gets a verdict: one cause, one change, a bound that holds."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from tests.profiler.trace.cpu_cells import CELLS
from tests.profiler.trace.written import call, report_of
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.report.headline_figures import headline_figures
from warpbook_profiler.report.report import TraceReport
from warpbook_profiler.verdict.analysis import analyse

DATA = Path(__file__).parents[2] / "data" / "cpu"
RECORDED = [name for name in CELLS if (DATA / f"{name}.json.gz").exists()]


def profile(name: str, **changed: object) -> CellProfile:
    events, run = read_chrome_trace(str(DATA / f"{name}.json.gz"))
    return analyse(events, replace(run, **changed))


def operator(at: float, duration: float, name: str = "aten::mm") -> dict[str, object]:
    return {
        **{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1},
        **{"ts": at, "dur": duration},
    }


def test_a_recording_of_every_kind_is_here() -> None:
    assert len(RECORDED) >= 14


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_cell_gets_the_verdict_and_the_change_of_an_expert(
    name: str,
) -> None:
    cell_profile = profile(name)
    assert cell_profile.verdict is not None
    assert cell_profile.verdict.kind in CELLS[name].kinds
    assert cell_profile.changes[0].name in CELLS[name].changes
    assert cell_profile.verdict.sentence.startswith(cell_profile.changes[0].evidence)


@pytest.mark.parametrize("name", RECORDED)
def test_parts_add_up_and_no_bound_is_above_the_time(name: str) -> None:
    cell_profile = profile(name)
    time = cell_profile.cpu
    assert time is not None
    parts_ns = time.loading_ns + time.operators_ns + time.small_calls_ns
    parts_ns += time.python_ns + (time.waiting_ns or 0) + time.lost_ns
    parts_ns += time.communication_ns
    assert parts_ns == pytest.approx(time.window_ns, rel=0.01)
    for finding in cell_profile.findings:
        assert finding.bound_ns is None or finding.bound_ns <= time.window_ns


def test_the_bound_is_beside_the_measured_time_where_there_is_one() -> None:
    bare = BareTimes(5, 20_000_000, 19_000_000, 23_000_000, "executions")
    cell_profile = profile("slow_items", bare=bare)
    sentence = cell_profile.changes[0].sentence
    assert "instead of 20.0 ms measured without the profiler" in sentence
    # and the report begins with it
    label, value = headline_figures(cell_profile)[0]
    assert label == "Time"
    assert value.startswith("20.0 ms without the profiler, measured (median of 5 runs")
    assert "19.0 to 23.0 ms" in value


def test_a_measured_time_of_something_else_is_left_out_with_a_warning() -> None:
    bare = BareTimes(1, 20_000_000_000, 20_000_000_000, 20_000_000_000, "executions")
    cell_profile = profile("slow_items", bare=bare)
    assert "measured" not in cell_profile.changes[0].sentence
    assert "with the profiler on" in headline_figures(cell_profile)[0][1]
    warnings = cell_profile.completeness.warnings
    assert any("longer than with it" in warning for warning in warnings)


def test_nothing_is_advised_of_a_window_that_is_too_short(tmp_path: Path) -> None:
    events = [operator(0.0, 10.0), operator(30.0, 10.0)]
    short = report_of(tmp_path, json.dumps({"traceEvents": events}).encode())
    assert short.verdict.kind == "unknown"
    assert "Nothing to judge: 40.0 µs" in short.verdict.sentence
    assert not short.changes and not short.findings


def test_without_counts_of_the_system_threads_and_waits_are_not_known() -> None:
    cell_profile = profile("matmul_on_one_thread", cpu=None)
    assert cell_profile.verdict is not None and cell_profile.cpu is not None
    assert cell_profile.verdict.kind == "compute-bound"
    assert "It is not known how many threads it used" in cell_profile.verdict.sentence
    assert cell_profile.cpu.waiting_ns is None
    waits = profile("waits_for_files", cpu=None)
    assert waits.cpu is None or waits.cpu.waiting_ns is None


def test_a_crowded_machine_is_named() -> None:
    events, run = read_chrome_trace(str(DATA / "matmul.json.gz"))
    assert run.cpu is not None
    queued_ns = (run.code_end_ns - run.start_ns) // 2
    use = structs.replace(run.cpu, queued_ns=queued_ns)
    crowded = analyse(events, replace(run, cpu=use))
    assert any("had no core" in warning for warning in crowded.completeness.warnings)
    free = analyse(events, replace(run, cpu=structs.replace(use, queued_ns=0)))
    assert not free.completeness.warnings


def test_a_gpu_that_was_given_nothing_gets_the_cpu_verdict(tmp_path: Path) -> None:
    gpu = {"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]}
    wait = {**call(1, 9100.0), "name": "cudaDeviceSynchronize"}
    events = [operator(10.0, 9000.0), wait]
    trace_report = report_of(
        tmp_path, json.dumps({**gpu, "traceEvents": events}).encode()
    )
    assert trace_report.verdict.kind == "compute-bound"
    assert trace_report.verdict.sentence.startswith("Nothing ran on the GPU. ")


def test_a_launch_without_its_kernel_gets_none(tmp_path: Path) -> None:
    events = [operator(10.0, 9000.0), call(1, 20.0)]
    content = json.dumps({"traceEvents": events}).encode()
    trace_report = report_of(tmp_path, content)
    assert trace_report.cpu is None
    assert trace_report.verdict.kind == "unknown"


def test_another_accelerator_gets_none(tmp_path: Path) -> None:
    other = {**operator(20.0, 5.0, "launch"), "cat": "mtia_runtime"}
    content = json.dumps({"traceEvents": [operator(10.0, 900.0), other]}).encode()
    trace_report = report_of(tmp_path, content)
    assert trace_report.cpu is None
    assert trace_report.verdict.kind == "unknown"


@pytest.mark.parametrize(
    "lie",
    [
        7,
        {"thread_ns": -1},
        {**dict.fromkeys(("wall_ns", "thread_ns", "process_ns"), 2**62)},
        {"threads": 0, "cores": "many"},
    ],
)
def test_counts_that_are_invalid_are_not_known(tmp_path: Path, lie: object) -> None:
    content = {"warpbook_cpu": lie, "traceEvents": [operator(10.0, 900.0)]}
    trace_report = report_of(tmp_path, json.dumps(content).encode())
    assert trace_report.cpu is not None
    assert trace_report.cpu.use is None


def test_names_of_parts_of_a_program_are_no_operators(tmp_path: Path) -> None:
    part = {**operator(0.0, 5000.0, "my epoch"), "cat": "user_annotation"}
    events = [part, operator(10.0, 60.0), operator(4000.0, 60.0)]
    trace_report = report_of(tmp_path, json.dumps({"traceEvents": events}).encode())
    assert trace_report.verdict.kind == "python-bound"


def test_a_loop_over_elements_is_told_with_all_its_calls(tmp_path: Path) -> None:
    names = ("aten::select", "aten::mul", "aten::add")
    events = [operator(5.0 * at, 4.0, names[at % 3]) for at in range(1200)]
    trace_report = report_of(tmp_path, json.dumps({"traceEvents": events}).encode())
    assert trace_report.verdict.sentence.startswith(
        "A Python loop iterates over single elements: 1,200 small calls, mostly aten::"
    )
    # the time of each call is that of the calls that are counted
    assert "took 100 % of the time, 5.00 µs each" in trace_report.verdict.sentence


def test_recordings_name_no_machine() -> None:
    for path in DATA.glob("*.json.gz"):
        text = gzip.decompress(path.read_bytes())
        assert b'"host_name": ""' in text
        assert text.count(b"host_name") == 1
        assert path.stat().st_size < 60_000


def test_workers_that_lack_cores_are_not_told_to_become_more(tmp_path: Path) -> None:
    waits = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    steps = [10_000.0 * number for number in range(6)]
    events = [operator(at, 6000.0, waits) for at in steps]
    events += [operator(at + 6050.0, 3900.0) for at in steps]
    use = {"wall_ns": 60_000_000, "thread_ns": 20_000_000, "process_ns": 40_000_000}
    use |= {"queued_ns": 30_000_000, "threads": 2, "cores": 2}

    def judged(use: dict[str, int]) -> TraceReport:
        content = {"warpbook_cpu": use, "traceEvents": events}
        return report_of(tmp_path, json.dumps(content).encode())

    crowded = judged(use)
    assert [change.name for change in crowded.changes] == ["fewer-workers", "threads"]
    for change in crowded.changes:
        assert "torch's 2 threads share 2 cores" in change.evidence
    free = judged(use | {"queued_ns": 0})
    assert free.changes[0].name == "more-workers"
    path = tmp_path / "crowded.json"
    path.write_text(json.dumps({"warpbook_cpu": use, "traceEvents": events}))
    read, run = read_chrome_trace(str(path))
    change = analyse(read, replace(run, source="y = f(x)")).changes[1]
    assert change.code == "import torch\ntorch.set_num_threads(1)\ny = f(x)"
