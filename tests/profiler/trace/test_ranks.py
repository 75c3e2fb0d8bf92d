"""Ranks of a job on one axis: real traces of three Gloo ranks and of two NCCL ranks.

`ranks/nccl` is of DDP on two H100; its rank 1 has four more products in each step.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from warpbook_profiler.model.errors import TraceFileError
from warpbook_profiler.ranks.files import MOST_FILES, trace_files
from warpbook_profiler.report.ranks_job_words import heading, job_lines, notes
from warpbook_profiler.report.ranks_read import read_job
from warpbook_profiler.report.report import JobReport

DATA = Path(__file__).parents[2] / "data"


def job(*paths: Path) -> JobReport:
    return read_job(trace_files(paths))[0]


def nccl(folder: Path, rank: int, late_us: float = 0.0, clock_us: float = 0.0) -> Path:
    """Write a rank's trace as NCCL has it: collectives end together on all ranks."""
    with gzip.open(DATA / "traces" / "ddp_rank0.json.gz") as file:
        content: dict[str, Any] = json.load(file)
    content["distributedInfo"]["rank"] = rank
    for event in content["traceEvents"]:
        if event.get("cat") == "kernel" and event["name"].startswith("nccl"):
            taken = min(late_us, event["dur"] - 1)
            event["ts"] += taken
            event["dur"] -= taken
        if "ts" in event:
            event["ts"] += clock_us
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps(content))
    return path


def test_the_rank_that_computes_longer_is_the_straggler() -> None:
    ranks_job = job(DATA / "ranks" / "slow")
    alignment = ranks_job.alignment
    assert alignment is not None
    assert alignment.where == "host" and alignment.collectives == 4
    assert alignment.straggler == 1
    assert alignment.arrivals[1].last == 4
    assert "It computes" in alignment.sentence
    assert heading(ranks_job).startswith(
        "3 ranks. Rank 1 comes last to the collectives"
    )
    # what Gloo does not tell stays unknown
    assert all(
        time.exposed_ns is None and time.idle_ns is None for time in ranks_job.times
    )
    waiting = ranks_job.ranks[0].verdict
    assert waiting.kind == "communication-bound" and "waits for rank 1" in waiting.cause
    # nobody recorded what is computed beside it: that is no 0 ms
    assert ranks_job.times[0].exposed_ns is None and "0 ms" not in waiting.cause


def test_who_waits_for_a_late_rank_is_not_told_to_send_less() -> None:
    ranks_job = job(DATA / "ranks" / "nccl")
    assert ranks_job.alignment is not None and ranks_job.alignment.where == "GPU"
    assert ranks_job.alignment.straggler == 1
    assert ranks_job.alignment.arrivals[1].last == 8
    assert "It computes 142 ms longer" in ranks_job.alignment.sentence
    waiting, late = ranks_job.ranks
    assert waiting.verdict.kind == "communication-bound"
    assert waiting.verdict.sentence.startswith("It waits for rank 1")
    assert waiting.verdict.change.startswith("Make rank 1 as fast as the others")
    assert not any(one.name.startswith("gradient-") for one in waiting.changes)
    assert late.verdict.kind == "compute-bound"


def test_what_is_of_no_rank_ends_no_comparison(tmp_path: Path) -> None:
    """As in a folder of vLLM, whose coordinator writes a trace, too."""
    for rank in (0, 1):
        nccl(tmp_path, rank)
    again = json.loads((tmp_path / "rank1.json").read_text())
    (tmp_path / "rank1_later.json").write_text(json.dumps(again))
    again.pop("distributedInfo")
    (tmp_path / "async_llm.json").write_text(json.dumps(again))
    (tmp_path / "config.json").write_text("{}")
    ranks_job = job(tmp_path)
    assert [one.rank for one in ranks_job.ranks] == [0, 1]
    assert ranks_job.alignment is not None
    said = notes(ranks_job)
    assert "async_llm.json names no rank: it is left out." in said
    assert any(note.startswith("config.json is left out: ") for note in said)
    assert any(
        "rank1_later.json is of rank 1, as is rank1.json" in note for note in said
    )


def test_even_ranks_have_no_straggler() -> None:
    ranks_job = job(DATA / "ranks" / "even")
    assert ranks_job.alignment is not None
    assert ranks_job.alignment.straggler is None
    assert "No rank delays the others" in ranks_job.alignment.sentence


@pytest.mark.parametrize("clock_us", [0.0, 7_000_000.0, -350_000.0])
def test_clocks_that_differ_are_aligned_by_the_ends(
    tmp_path: Path, clock_us: float
) -> None:
    traces = nccl(tmp_path, 0), nccl(tmp_path, 1, late_us=120.0, clock_us=clock_us)
    alignment = job(*traces).alignment
    assert alignment is not None and alignment.where == "GPU"
    assert alignment.straggler == 1
    one = alignment.arrivals[1]
    assert one.clock_offset_ns == pytest.approx(clock_us * 1e3, abs=2_000)
    assert one.late_median_ns == pytest.approx(120_000, abs=2_000)


def test_what_is_not_the_same_on_all_ranks_is_named(tmp_path: Path) -> None:
    paths = nccl(tmp_path, 0), nccl(tmp_path, 1)
    content = json.loads(paths[1].read_text())
    kernels = [
        event
        for event in content["traceEvents"]
        if event.get("cat") == "kernel" and event["name"].startswith("nccl")
    ]
    content["traceEvents"].remove(kernels[0])
    kernels[1]["name"] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    paths[1].write_text(json.dumps(content))
    ranks_job = job(*paths)
    assert ranks_job.alignment is None
    said = " ".join(notes(ranks_job))
    assert "Not aligned: ncclDevKernel_AllReduce" in said
    assert "transfers between two ranks" in said


def test_a_rank_with_its_gpu_beside_one_without_is_not_aligned(tmp_path: Path) -> None:
    slow = DATA / "ranks" / "slow" / "rank1.json.gz"
    ranks_job = job(nccl(tmp_path, 0), slow)
    assert ranks_job.alignment is None
    assert any(
        "Some ranks have communication kernels" in note for note in notes(ranks_job)
    )


def test_names_of_a_trace_are_bounded(tmp_path: Path) -> None:
    paths = nccl(tmp_path, 0), nccl(tmp_path, 1)
    for number, path in enumerate(paths):
        text = path.read_text().replace("ncclDevKernel", f"ncclDevKernel{number}" * 900)
        path.write_text(text)
    text = "\n".join(job_lines(job(*paths), ["0", "1"], "rank"))
    assert len(text) < 5_000


def test_a_folder_gives_its_traces_in_order_and_no_more_than_a_bound(
    tmp_path: Path,
) -> None:
    names = ["rank1.json", "rank0.json.gz", "notes.txt"]
    for name in names:
        (tmp_path / name).touch()
    assert [path.name for path in trace_files([tmp_path])] == names[1::-1]
    for number in range(MOST_FILES + 1):
        (tmp_path / f"more{number}.json").touch()
    with pytest.raises(TraceFileError, match="more than"):
        trace_files([tmp_path])
