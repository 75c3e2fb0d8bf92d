"""What was measured of a GPU is kept, found again, and named beside the datasheet's."""

import dataclasses
from pathlib import Path

import msgspec
import pytest

from warpbook_profiler.capture.limits import Limits, load, measured_ceilings, save
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.ceilings import Ceilings
from warpbook_profiler.model.figures import KernelWork
from warpbook_profiler.report.report import TraceReport, report

TRACES = Path(__file__).parents[2] / "data" / "traces"
MEASURED = Limits(
    uuid="GPU-1234",
    gpu="NVIDIA H200",
    driver="580.159.04",
    torch="2.11",
    measured_ms=1.8e12,
    memory_bytes_per_s=4.3e12,
    host_to_device_bytes_per_s=55e9,
    device_to_host_bytes_per_s=54e9,
    flops_per_s={"c10::BFloat16": 850e12, "float": 51e12, "tf32": 400e12},
    launch_ns=3800.0,
    round_trip_ns=9000.0,
)


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "warpbook" / "limits"


def report_of(name: str) -> TraceReport:
    return report(*read_chrome_trace(str(TRACES / f"{name}.json.gz")))


def test_limits_are_found_again_by_gpu_and_driver(data_folder: Path) -> None:
    assert load("GPU-1234", "580.159.04") is None
    save(MEASURED)
    assert load("GPU-1234", "580.159.04") == MEASURED
    assert load("GPU-1234", "590.1") is load("GPU-1", "580.159.04") is None
    assert [path.suffix for path in data_folder.iterdir()] == [".json"]


def test_the_newest_measurement_of_a_gpu_of_that_name_counts() -> None:
    assert measured_ceilings("NVIDIA H200") is None
    save(MEASURED)
    newer = msgspec.structs.replace(
        MEASURED, uuid="GPU-5", measured_ms=1.9e12, memory_bytes_per_s=4.4e12
    )
    save(newer)
    ceilings = measured_ceilings("NVIDIA H200")
    assert ceilings is not None
    assert ceilings.memory_bytes_per_s == 4.4e12
    assert measured_ceilings("NVIDIA H100") is None


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"uuid": 3}'])
def test_a_damaged_file_is_as_good_as_none(data_folder: Path, content: bytes) -> None:
    data_folder.mkdir(parents=True)
    (data_folder / "GPU-1234-580.159.04.json").write_bytes(content)
    assert load("GPU-1234", "580.159.04") is None
    assert measured_ceilings("NVIDIA H200") is None
    save(MEASURED)
    assert load("GPU-1234", "580.159.04") == MEASURED


def test_no_name_leads_out_of_the_folder(data_folder: Path) -> None:
    save(msgspec.structs.replace(MEASURED, uuid="../../x/GPU", driver="../5"))
    (path,) = data_folder.iterdir()
    assert path.parent == data_folder


def test_a_report_names_both_ceilings_and_promises_what_can_be_reached() -> None:
    (before,) = [
        row for row in report_of("matmul_bf16").metrics.kernel_work if row.of_ceiling
    ]
    assert before.of_measured is None
    save(MEASURED)
    trace_report = report_of("matmul_bf16")
    (work,) = [row for row in trace_report.metrics.kernel_work if row.of_ceiling]
    assert work.of_ceiling == before.of_ceiling
    assert work.of_measured is not None
    assert work.of_measured == pytest.approx(before.of_ceiling * 989 / 850)
    (compute,) = [
        finding for finding in trace_report.findings if finding.kind == "compute-bound"
    ]
    assert "of the datasheet's ceiling" in compute.evidence
    assert "of what this GPU was measured to reach" in compute.evidence
    assert compute.bound_ns is not None
    assert trace_report.bare is not None
    gain_ns = round(work.time_ns * (1 - work.of_measured))
    best_ns = min(trace_report.bare.time_ns - gain_ns, trace_report.bare.low_ns)
    assert compute.bound_ns == pytest.approx(best_ns, abs=10)


def test_a_chip_without_a_datasheet_is_judged_by_what_was_measured() -> None:
    columns, run = read_chrome_trace(str(TRACES / "matmul_bf16.json.gz"))

    def work(measured: Ceilings | None) -> list[KernelWork]:
        gpus = tuple(
            dataclasses.replace(gpu, name="NVIDIA Z1", measured=measured)
            for gpu in run.gpus
        )
        metrics = report(columns, dataclasses.replace(run, gpus=gpus)).metrics
        assert all(row.of_ceiling is None for row in metrics.kernel_work)
        return [row for row in metrics.kernel_work if row.of_measured]

    assert work(None) == []
    assert [row.bound for row in work(MEASURED.ceilings)] == ["tensor cores"]
