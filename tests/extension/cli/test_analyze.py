"""`warpbook analyze` as a person runs it, on traces of a real H200."""

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warpbook
from tests.extension.cli.conftest import COMMAND
from tests.profiler.trace import written
from warpbook.cli.main import main

TRACES = Path(__file__).parents[2] / "data" / "traces"


def trace(name: str) -> str:
    return str(TRACES / f"{name}.json.gz")


def test_the_verdict_comes_first_and_the_figures_follow(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["analyze", trace("tiny_kernels")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("launch-bound: The GPU idled 42 % of the time")
    assert lines[3].startswith("Time  2.97 to 9.04 ms without the profiler")
    assert any(
        line.split()[-2:] == ["800,", "800"] for line in lines if "matched" in line
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        # shapes were recorded, of operators that have no formula; and none were
        ("tiny_kernels", "not known (no operator here has a formula)"),
        ("ddp_rank0", "not known (no shapes were recorded)"),
        # the warning is of the host's time, the figures of what the GPU idled for
        ("ddp_rank0", " ms of the host's time was the profiler's own work"),
        ("ddp_rank0", "Idle, due to the profiler               2.62 ms\n"),
        ("tiny_kernels", "– less the profiler's part"),
        ("graph_replay", "a replay of the trace, less the profiler's part"),
        # mostly in a CUDA call that no operator made
        (
            "graph_replay",
            "(no operator)                                  other work  532 µs",
        ),
    ],
)
def test_figures_say_what_they_are_of(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", trace(name)]) == 0
    assert words in capsys.readouterr().out


EXAM = TRACES.parent / "exam_h100"


def test_what_is_known_of_the_code_is_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "cell.py"
    source.write_text('for images in batches:\n    net(images.to("cuda")).mean()\n')
    options = ["--bare-ms", "55.8,51.5,53.3", "--source", str(source)]
    slow = str(EXAM / "batches_from_pageable.json.gz")
    assert main(["analyze", slow, *options]) == 0
    said = capsys.readouterr().out
    assert (
        "53.3 ms without the profiler, measured (median of 3 runs, 51.5 to 55.8 ms"
        in said
    )
    assert "Copy from pinned memory, with non_blocking=True. (line 2) [pinned]" in said


@pytest.mark.parametrize("times", ["", "fast", "-1", "1,,2", "nan", "1e30", "1e-7"])
def test_a_time_that_is_none_is_refused(
    times: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["analyze", trace("tiny_kernels"), f"--bare-ms={times}"])
    assert ended.value.code == 2
    assert "is no time in ms" in capsys.readouterr().err


def test_a_source_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "cell.py")
    assert main(["analyze", trace("tiny_kernels"), "--source", missing]) != 0
    assert "cell.py" in capsys.readouterr().err


def test_a_window_of_which_the_profiler_took_nothing_is_told_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_bytes(written.trace(*written.program()))
    assert main(["analyze", str(tmp_path / "t.json")]) == 0
    text = capsys.readouterr().out
    assert "– less the profiler's part" not in text and "Window" in text


def test_sections_are_in_the_order_of_the_report_in_a_notebook(
    capsys: pytest.CaptureFixture[str],
) -> None:
    titles = (
        "What to change",
        "What explains the time",
        "Operators on the host",
        "Operators under the roofline",
        "Stream idle time by cause",
        "Copies and memsets",
        "As recorded, with the profiler",
        "Launches and waits",
    )
    assert main(["analyze", trace("train_fp32")]) == 0
    of_file = capsys.readouterr().out
    of_notebook = repr(warpbook.analyze(trace("train_fp32")))
    for text in (of_file, of_notebook):
        places = [text.index(f"\n{title}") for title in titles]
        assert places == sorted(places)


def test_json_has_the_keys_that_others_rely_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["analyze", "--json", trace("pinned_h2d")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["version"]) == ("warpbook.trace", 1)
    assert document["verdict"]["kind"] == "transfer-bound"
    assert document["verdict"]["sentence"]
    assert document["findings"][0]["kind"] == "transfer-bound"
    figures = document["metrics"]
    idle = sum(figures["idle"][f"{kind}_wait_ns"] for kind in ("host", "kernel"))
    idle += figures["idle"]["other_ns"]
    assert idle == figures["window_ns"] - figures["gpu_busy_ns"]
    assert figures["tensor_core_share"] is None  # no kernel ran
    assert figures["launches"] == 8
    assert figures["copies"][0]["host_memory"] == "pinned"
    assert figures["flops"] is None
    assert (
        document["completeness"] | {"launches": 8, "matched": 8, "lost": 0}
        == (document["completeness"])
    )


def test_ranks_are_put_beside_one_another_and_the_late_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(trace("ddp_rank0")) as file:
        late = json.load(file)
    late["distributedInfo"]["rank"] = 1
    for event in late["traceEvents"]:
        # it comes later to the all-reduces, which are over sooner for it
        if event["name"].startswith("nccl") and event.get("cat") == "kernel":
            event["ts"] += event["dur"] * 0.8
            event["dur"] *= 0.2
    (tmp_path / "rank1.json").write_text(json.dumps(late))
    traces = [str(tmp_path / "rank1.json"), trace("ddp_rank0")]
    assert main(["analyze", "--json", *traces]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["version"]) == ("warpbook.job", 1)
    assert document["communication"]["ranks"] == [0, 1]
    assert document["communication"]["straggler"] == 1
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1]
    assert main(["analyze", *traces]) == 0
    assert "Rank 1 comes last to the collectives" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        # of no distributed job; of one that says it is the same rank twice
        (
            ("pinned_h2d", "tiny_kernels"),
            "2 traces. Each trace is reported separately: ",
        ),
        (
            ("ddp_rank0", "tiny_kernels"),
            "2 traces. Each trace is reported separately: ",
        ),
        (("ddp_rank0", "ddp_rank0"), "2 traces. Each trace is reported separately: "),
    ],
)
def test_traces_that_are_no_ranks_are_told_by_their_files(
    traces: tuple[str, str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [trace(name) for name in traces]
    assert main(["analyze", *paths]) == 0
    text = capsys.readouterr().out
    assert text.startswith(words)
    assert "Rank" not in text and "-1" not in text
    titles = text.splitlines()
    assert all(f"{name}.json.gz" in titles for name in traces)
    assert main(["analyze", "--json", *paths]) == 0
    assert json.loads(capsys.readouterr().out)["communication"]["straggler"] is None


def test_a_rank_without_collectives_holds_nobody_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(trace("tiny_kernels")) as file:
        alone = json.load(file)
    alone["distributedInfo"] = {"rank": 1}
    (tmp_path / "rank1.json").write_text(json.dumps(alone))
    traces = [trace("ddp_rank0"), str(tmp_path / "rank1.json")]
    assert main(["analyze", *traces]) == 0
    text = capsys.readouterr().out
    assert text.startswith("2 ranks. Each trace is reported separately: ")
    assert "comes last" not in text


def without(name: str, *categories: str) -> dict[str, Any]:
    """A trace without the events of some categories."""
    with gzip.open(trace(name)) as file:
        content: dict[str, Any] = json.load(file)
    events = content["traceEvents"]
    kept = [event for event in events if event.get("cat") not in categories]
    return {**content, "traceEvents": kept}


def test_ranks_of_different_lengths_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    half = without("ddp_rank0")
    half["distributedInfo"]["rank"] = 1
    collectives = [
        event
        for event in half["traceEvents"]
        if event.get("cat") == "kernel" and event["name"].startswith("nccl")
    ]
    for collective in collectives[::2]:
        half["traceEvents"].remove(collective)
    (tmp_path / "rank1.json").write_text(json.dumps(half))
    assert main(["analyze", trace("ddp_rank0"), str(tmp_path / "rank1.json")]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert f"to {len(collectives):,} collectives each" in first
    assert "comes last to" not in first


def test_a_gpu_that_was_not_recorded_is_not_known_and_not_idle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(without("tiny_kernels", "kernel", "gpu_memcpy")))
    assert main(["analyze", str(path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["Busy", "not", "known"] in lines and ["Idle", "not", "known"] in lines
    assert not any("idle" in " ".join(line) for line in lines if line[:1] != ["!"])
    assert main(["analyze", "--json", str(path)]) == 0
    figures = json.loads(capsys.readouterr().out)["metrics"]
    assert figures["gpu_busy_ns"] is figures["tensor_core_share"] is None
    assert set(figures["idle"].values()) <= {None, figures["idle"]["profiler_ns"]}
    assert figures["idle"]["host_wait_ns"] is None
    assert figures["launches"] == 800
    assert main(["analyze", "--json", str(path), trace("pinned_h2d")]) == 0
    document = json.loads(capsys.readouterr().out)
    busy = {rank["metrics"]["gpu_busy_ns"] is None for rank in document["ranks"]}
    assert busy == {True, False}


def test_a_file_that_is_not_there_is_told_in_plain_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["analyze", "nofile"]) == 1
    error = capsys.readouterr().err
    assert error == "warpbook: nofile: can't be read: No such file or directory\n"


def test_names_in_a_trace_can_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(trace("matmul_bf16"), "rt") as file:
        text = file.read().replace("nvjet", "\\u001b[2Jnvjet")
    (tmp_path / "t.json").write_text(text)
    assert main(["analyze", str(tmp_path / "t.json")]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_these_letters_shows_the_rest(
    encoding: str, environment: dict[str, str]
) -> None:
    done = subprocess.run(
        [COMMAND, "analyze", trace("tiny_kernels")],
        env={**environment, "PYTHONIOENCODING": encoding},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"launch-bound: The GPU idled 42 % of the time" in done.stdout


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_output_that_can_not_be_written_is_told_in_one_line(
    options: list[str], environment: dict[str, str]
) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [COMMAND, "analyze", *options, trace("tiny_kernels")],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 1
    assert done.stderr == b"warpbook: can't write: No space left on device\n"


def test_the_name_of_a_file_can_not_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["analyze", "no\x1b[31mfile"]) == 1
    assert capsys.readouterr().err.startswith("warpbook: no?[31mfile: can't be read")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b"\x1f\x8b\x08broken"])
def test_what_is_no_trace_is_told_in_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert main(["analyze", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"warpbook: {path}: ")
    assert error.count("\n") == 1


def test_a_trace_cut_off_in_the_middle_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.json.gz"
    shutil.copy(trace("train_fp32"), path)
    path.write_bytes(path.read_bytes()[:-4000])
    assert main(["analyze", str(path)]) == 1
    assert "can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_refused_at_once(
    make: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 4c6eb8b a pipe that nobody writes to was waited for without an end."""
    path = tmp_path / "trace.json"
    make(path)
    assert main(["analyze", str(path)]) == 1
    assert "a regular file" in capsys.readouterr().err


def test_a_report_is_written_as_one_html_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.html"
    trace = str(TRACES / "train_fp32.json.gz")
    assert main(["analyze", trace, "--html", str(target)]) == 0
    assert capsys.readouterr().out == f"The report is in {target}.\n"
    page = target.read_text()
    assert "compute-bound" in page and "<script" not in page
    # causes, changes and rows lead to one another, and each link to a place
    links = re.findall(r'<a href="#([^"]+)">', page)
    assert {"cause", "change"} < {link.rstrip("-0123456789") for link in links}
    assert all(page.count(f' id="{link}"') == 1 for link in links)
    missing = tmp_path / "no" / "report.html"
    assert main(["analyze", trace, "--html", str(missing)]) != 0
    assert "can't be written" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["analyze", trace, trace, "--html", str(target)])
