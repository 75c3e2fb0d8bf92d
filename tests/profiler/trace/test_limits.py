"""What was measured of a GPU is kept, travels with a trace, and changes the report."""

import gzip
import json
import platform
from pathlib import Path
from typing import Any

import msgspec
import pytest

from warpbook_profiler.capture.limits import LimitsUnreadable, limits_here, load, save
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.calibration import Calibration, defaults
from warpbook_profiler.model.figures import KernelWork
from warpbook_profiler.model.limits import LIMITS_KEY, Limits, Point
from warpbook_profiler.report.report import TraceReport, report

DATA = Path(__file__).parents[2] / "data"
PRODUCTS = DATA / "traces" / "matmul_bf16.json.gz"
OF_HOST = DATA / "exam" / "h100" / "rows_one_by_one.json.gz"
OF_FLOAT32 = DATA / "exam" / "h100" / "fp32_linear_stack.json.gz"
H200 = "NVIDIA H200"
MEASURED = msgspec.structs.replace(
    defaults(), uuid="GPU-1234", host=platform.node(), driver="580.1", torch="2.11"
)


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "warpbook" / "limits"
    folder.mkdir(parents=True)
    return folder


def slower(limits: Limits, times: float) -> Limits:
    """Stretch every time."""

    def stretched(one: Point) -> Point:
        ends = one.low_ns, one.usual_ns, one.high_ns
        return Point(one.amount, *(times * end for end in ends))

    curves = {key: tuple(map(stretched, curve)) for key, curve in limits.curves.items()}
    return msgspec.structs.replace(limits, curves=curves)


def with_limits(tmp_path: Path, trace: Path, limits: object) -> TraceReport:
    """Report on a trace as warpbook saves it where limits were measured."""
    whole: dict[str, Any] = json.loads(gzip.decompress(trace.read_bytes()))
    if limits is not None:
        whole[LIMITS_KEY] = msgspec.to_builtins(limits)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(whole))
    return report(*read_chrome_trace(str(path)))


def test_limits_are_found_again_on_the_same_machine_alone(data_folder: Path) -> None:
    assert limits_here(H200, "2.11") is None
    save(MEASURED)
    save(msgspec.structs.replace(MEASURED, uuid="GPU-5", measured_ms=1.0))
    assert limits_here(H200, "2.11") == MEASURED == load("GPU-1234", "580.1", "2.11")
    assert limits_here("NVIDIA H100", "2.11") is limits_here(H200, "2.12") is None
    save(msgspec.structs.replace(MEASURED, host="another", measured_ms=2e12))
    # a damaged file of somebody else's is not in the way
    (data_folder / "A.json").write_text("[" * 100_000)
    assert limits_here(H200, "2.11") == MEASURED
    with pytest.raises(LimitsUnreadable, match="Delete the file"):
        limits_here(H200, "2.12")
    assert {path.suffix for path in data_folder.iterdir()} == {".json"}


def test_no_name_leads_out_of_the_folder(data_folder: Path) -> None:
    save(msgspec.structs.replace(MEASURED, uuid="../../x/GPU", driver="../5"))
    (path,) = data_folder.iterdir()
    assert path.parent == data_folder


@pytest.mark.parametrize(
    "spoiled",
    [
        {"uuid": 3},
        {"curves": {"pass": []}},
        {"curves": {"pass": [[1, 1, 1, -1]]}},
        {"curves": {"pass": [[1, 3, 2, 1]]}},
        {"curves": {"pass": [[2, 1, 1, 1], [1, 1, 1, 1]]}},
        {"curves": {str(at): [[1, 1, 1, 1]] for at in range(101)}},
    ],
)
def test_limits_that_make_no_sense_are_told_and_not_used(
    data_folder: Path, tmp_path: Path, spoiled: dict[str, object]
) -> None:
    text = msgspec.json.encode(msgspec.to_builtins(MEASURED) | spoiled)
    path = data_folder / "GPU-1234-580.1-node-2.11.json"
    path.write_bytes(text)
    with pytest.raises(LimitsUnreadable, match="Delete the file"):
        limits_here(H200, "2.11")
    told = with_limits(tmp_path, PRODUCTS, msgspec.json.decode(text))
    assert any("rest on defaults" in line for line in told.completeness.warnings)
    assert told.changes == with_limits(tmp_path, PRODUCTS, None).changes


def test_a_trace_is_judged_by_the_limits_that_it_holds(tmp_path: Path) -> None:
    save(slower(MEASURED, 1.5))

    def work(limits: Limits | None) -> tuple[KernelWork, TraceReport]:
        told = with_limits(tmp_path, PRODUCTS, limits)
        (row,) = [row for row in told.metrics.kernel_work if row.of_ceiling]
        return row, told

    before, told = work(None)
    # those of this machine are none of a file that somebody recorded
    assert before.of_measured is None
    (compute,) = [one for one in told.findings if one.kind == "compute-bound"]
    assert "was measured to reach" not in compute.evidence
    row, told = work(MEASURED)
    assert row.of_ceiling == before.of_ceiling
    assert row.of_measured is not None and row.of_ceiling is not None
    assert row.of_measured > row.of_ceiling
    (compute,) = [one for one in told.findings if one.kind == "compute-bound"]
    assert "of what this GPU was measured to reach" in compute.evidence
    other = msgspec.structs.replace(MEASURED, gpu="NVIDIA H100")
    assert work(other)[0].of_measured is None


def test_a_calibration_changes_a_prediction(tmp_path: Path) -> None:
    def bf16_ns(limits: Limits | None) -> int:
        changes = with_limits(tmp_path, OF_FLOAT32, limits).changes
        (time_ns,) = [one.time_ns for one in changes if one.name == "bf16"]
        assert time_ns is not None
        return time_ns

    here = msgspec.structs.replace(MEASURED, gpu="NVIDIA H100 80GB HBM3")
    assert bf16_ns(slower(here, 2.0)) > 1.5 * bf16_ns(here)
    # of another GPU they are not used
    assert bf16_ns(slower(MEASURED, 2.0)) == bf16_ns(None)


@pytest.mark.parametrize("ends_ns", [(1e-3, 1e-3, 1e-3), (9e11, 9e11, 9e11)])
@pytest.mark.parametrize("amount", [1e-3, 9e19])
def test_extreme_limits_make_a_report_that_can_be_sent(
    tmp_path: Path, amount: float, ends_ns: tuple[float, float, float]
) -> None:
    extreme = msgspec.structs.replace(
        MEASURED,
        gpu="NVIDIA H100 80GB HBM3",
        curves={name: (Point(amount, *ends_ns),) for name in MEASURED.curves},
    )
    for trace in (OF_FLOAT32, OF_HOST):
        assert msgspec.json.encode(with_limits(tmp_path, trace, extreme))


def test_defaults_are_read_in_proportion_and_wider() -> None:
    own, theirs = Calibration(H200, 9), Calibration("NVIDIA A100-SXM4-80GB", 8)
    measured = Calibration(H200, 9, MEASURED)
    for name, ratio in (("pass", 4.8 / 2.039), ("multiply.c10::BFloat16", 989 / 312)):
        of_own, of_theirs = own.times(name, 1e12), theirs.times(name, 1e12)
        exact = measured.times(name, 1e12)
        assert of_own is not None and of_theirs is not None and exact is not None
        assert of_theirs.usual_ns == pytest.approx(ratio * of_own.usual_ns, 0.05)
        assert of_theirs.high_ns / of_theirs.low_ns > of_own.high_ns / of_own.low_ns
        assert of_own.high_ns / of_own.low_ns > exact.high_ns / exact.low_ns
    assert Calibration("NVIDIA Z1").times("pass", 1e9) is None
    assert Calibration("NVIDIA Z1").times("operator") is not None


def test_what_recording_costs_here_narrows_the_bare_run(tmp_path: Path) -> None:
    def bare(limits: Limits | None) -> BareRun:
        found = with_limits(tmp_path, OF_HOST, limits).bare
        assert found is not None and found.limit == "host"
        return found

    measured = msgspec.structs.replace(
        MEASURED,
        gpu="NVIDIA H100 80GB HBM3",
        curves=MEASURED.curves | {"recorded": (Point(1e3, 2.1e3, 2.3e3, 2.5e3),)},
    )
    before, after = bare(None), bare(measured)
    assert after.high_ns / after.low_ns < before.high_ns / before.low_ns
    assert before.low_ns < after.time_ns < before.time_ns
    assert after.calibration != before.calibration


def test_a_dtype_that_the_defaults_lack_has_no_time() -> None:
    assert (
        Calibration("NVIDIA B200", 10).times("multiply.c10::Float4_e2m1fn_x2") is None
    )
