"""A kernel of which nothing else tells what limits it is judged by its samples.

The reasons are those of kernels that an NVIDIA H200 ran (tests/gpu/stalls).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from msgspec import structs

from tests.profiler.trace.test_kernel_work import GEMM, product, written
from warpbook.kernel.runs.recording import RunRecord
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.stalls import KernelStalls, Stalls
from warpbook_profiler.verdict.analysis import analyse

RECORDED: dict[str, dict[str, int]] = json.loads(
    (Path(__file__).parents[2] / "data" / "stalls" / "reasons.json").read_text()
)


def sampled(*kernels: tuple[str, dict[str, int]]) -> Stalls:
    rows = (
        KernelStalls(name, 1, sum(reasons.values()), reasons, (), 0, "cuda")
        for name, reasons in kernels
    )
    return Stalls("sampled", "It ran once more.", kernels=tuple(rows))


def judged(tmp_path: Path, trace: bytes, stalls: Stalls | None) -> CellProfile:
    path = tmp_path / "trace.json"
    path.write_bytes(trace)
    columns, run = read_chrome_trace(str(path))
    return analyse(columns, dataclasses.replace(run, stalls=stalls))


@pytest.mark.parametrize(
    ("name", "kind", "evidence", "change"),
    [
        (
            "spilled",
            "memory-bound",
            "limited by device memory",
            "neighbouring addresses",
        ),
        (
            "strided",
            "memory-bound",
            "limited by device memory",
            "neighbouring addresses",
        ),
        ("bank_conflicts", "compute-bound", "wait for shared memory", "bank conflicts"),
        ("one_busy_warp", "compute-bound", "wait at barriers", "equal work"),
        (
            "long_chain",
            "compute-bound",
            "the previous instruction",
            "independent results",
        ),
        # units, chains and the scheduler share its waits: none of them is named
        ("double_division", "unknown", "", ""),
    ],
)
def test_a_kernel_without_a_formula_is_judged_by_what_its_warps_wait_for(
    name: str, kind: str, evidence: str, change: str, tmp_path: Path
) -> None:
    own = f"void {name}<float>(float const*, float*, int)"
    trace = written("my::step", (own, 3000.0, [100_000, 1, 1]))
    blind = judged(tmp_path, trace, None)
    assert blind.verdict is not None and blind.verdict.kind == "unknown"
    profile = judged(tmp_path, trace, sampled((own, RECORDED[name])))
    assert profile.verdict is not None and profile.verdict.kind == kind
    assert profile.stalls is not None
    if evidence:
        first = profile.findings[0]
        assert evidence in first.evidence and "by samples of their" in first.evidence
        assert change in first.change
    # another kernel's samples, and too few of its own, say nothing of it
    few = {"long_scoreboard": 20}
    others = sampled(("other", RECORDED[name]), (own, few))
    unsaid = judged(tmp_path, trace, others).verdict
    assert unsaid is not None and unsaid.kind == "unknown"


def test_far_from_its_roof_names_what_the_warps_wait_for(tmp_path: Path) -> None:
    trace = written(product(4096, 4096, 4096), (GEMM, 2000.0, [13_200, 1, 1]))
    blind = judged(tmp_path, trace, None).findings[0]
    assert "do not show why" in blind.evidence
    stalls = sampled((GEMM, RECORDED["bank_conflicts"]))
    told = judged(tmp_path, trace, stalls).findings[0]
    assert "far from it, as most of their warps wait for shared memory" in told.evidence
    assert "bank conflicts" in told.change and told.kind == blind.kind
    # a formula is not overruled: it still computes on the tensor cores
    assert "compute on the tensor cores" in told.evidence


def test_a_cell_that_was_sampled_after_its_profile_is_judged_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(written("my::step", ("own", 3000.0, [100_000, 1, 1])))
    record = RunRecord(*read_chrome_trace(str(path)), None)
    first = record.figures(())
    assert first.verdict is not None and first.verdict.kind == "unknown"
    assert record.judged_by_stalls(first) is first
    stalls = sampled(("own", RECORDED["one_busy_warp"]))
    told = record.judged_by_stalls(structs.replace(first, stalls=stalls))
    assert told.verdict is not None and told.verdict.kind == "compute-bound"
    assert told.stalls is stalls and told.kernels[0].parts == ("barriers kernels",)
