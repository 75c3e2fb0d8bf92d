"""`warpbook.analyze(path)`: a trace file's report in a notebook."""

import gzip
import json
from pathlib import Path

import pytest

import warpbook
from warpbook_profiler.model.errors import NotATrace, TraceDamaged, TraceFileError

TRACES = Path(__file__).parents[2] / "data" / "traces"
ATTACK = "<script>window.attacked=1</script>"


def html(shown: object) -> str:
    return str(shown._repr_mimebundle_()["text/html"])  # type: ignore[attr-defined]


def test_a_file_has_the_report_of_a_cell() -> None:
    profile = warpbook.analyze(TRACES / "tiny_kernels.json.gz")
    assert profile.verdict.kind == "launch-bound"
    assert profile.title == "tiny_kernels.json.gz"
    shown = html(profile)
    assert shown.startswith('<div class="warpbook-report"')
    assert "launch-bound: " in shown and "What to change" in shown
    assert str(profile).startswith("launch-bound: ")


def test_two_files_are_compared() -> None:
    eager = warpbook.analyze(str(TRACES / "tiny_kernels.json.gz"))
    graph = warpbook.analyze(str(TRACES / "graph_replay.json.gz"))
    assert "82 % less time" in str(eager.diff(graph))


def test_names_of_a_file_are_escaped_and_bounded(tmp_path: Path) -> None:
    content = json.loads(_plain("tiny_kernels"))
    for event in content["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] = ATTACK + "x" * 5_000
    path = tmp_path / "<b>.json"
    path.write_text(json.dumps(content))
    shown = html(warpbook.analyze(path))
    assert "<script" not in shown and "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert len(shown) < 200_000


def _plain(name: str) -> bytes:
    return gzip.decompress((TRACES / f"{name}.json.gz").read_bytes())


def test_a_bad_file_raises_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(TraceFileError, match="No such file"):
        warpbook.analyze(path)
    path.write_text('{"cells": []}')
    with pytest.raises(NotATrace, match=r"t\.json: no trace of torch\.profiler: "):
        warpbook.analyze(path)
    path.write_bytes(_plain("tiny_kernels")[:5_000])
    with pytest.raises(TraceDamaged, match="a damaged trace"):
        warpbook.analyze(path)


def test_a_folder_and_a_list_are_the_ranks_of_a_job() -> None:
    folder = TRACES.parent / "ranks" / "slow"
    job = warpbook.analyze(folder)
    assert job.alignment.straggler == 1
    assert "Rank 1 comes last to the collectives" in str(job)
    listed = warpbook.analyze(sorted(folder.iterdir()))
    assert listed.to_dict() == job.to_dict()
    shown = html(job)
    assert "<table>" in shown and "comes last" in shown


def test_a_table_of_nsight_compute_shows_its_kernels(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    metric = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    path.write_text(f'"ID","Kernel Name","{metric}"\n"0","{ATTACK}","50"\n')
    limits = warpbook.analyze(path)
    assert limits.kernels[0].compute == 0.5
    assert "unknown" in str(limits)
    assert "&lt;script&gt;" in html(limits) and ATTACK not in html(limits)
