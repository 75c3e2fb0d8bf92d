"""`warpbook analyze NEW --vs OLD` as a CI runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.stepped import stepped
from tests.profiler.trace.written import call
from warpbook.cli.main import main


def run(
    tmp_path: Path, old: bytes, new: bytes, *options: str, limit: str = "5%"
) -> int:
    (tmp_path / "old.json").write_bytes(old)
    (tmp_path / "new.json").write_bytes(new)
    traces = [str(tmp_path / "new.json"), "--vs", str(tmp_path / "old.json")]
    return main(["analyze", *traces, "--fail-slower", limit, *options])


def as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, *given: Any, **more: Any
) -> dict[str, Any]:
    status = run(tmp_path, *given, "--json", **more)
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer["exit_status"] == status
    return answer


@pytest.mark.parametrize(
    ("now_us", "limit", "status", "said"),
    [
        (121.0, "5%", 1, "slower: 2"),
        (121.0, "0.05", 1, "beyond the limit of +5.0 %."),
        (121.0, "30%", 0, "not slower: 2"),
        (101.0, "5%", 0, "not slower: About the same: "),
        (80.0, "5%", 0, "not slower: 20 % less time: "),
        # the limit lies within the interval
        (105.0, "5%", 3, "may be within or beyond the limit of +5.0 %."),
    ],
)
def test_the_exit_status_says_whether_it_is_slower(
    now_us: float,
    limit: str,
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    new = stepped(now_us, seed=2)
    assert run(tmp_path, stepped(100.0), new, limit=limit) == status
    text = capsys.readouterr().out
    assert said in text.splitlines()[0]
    assert " a step" in text and "8 steps against 8" in text
    assert text.splitlines()[1].endswith("new.json.")
    # two bars to the same scale
    bars = [line for line in text.splitlines() if set(line.strip()) == {"#"}]
    lengths = [len(bar.strip()) for bar in bars]
    assert max(lengths) == 60 and lengths[1] / lengths[0] == pytest.approx(
        now_us / 100, rel=0.1
    )


def test_what_grew_is_named_the_largest_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = as_json(capsys, tmp_path, stepped(100.0), stepped(150.0, seed=2))
    assert (answer["schema"], answer["version"]) == ("warpbook.versus", 1)
    assert answer["verdict"] == "slower"
    comparison = answer["comparison"]
    first = comparison["kernels"][0]
    assert first["name"] == "ampere_sgemm_128x64_tn"
    change_ns = first["after_ns"] - first["before_ns"]
    assert change_ns == pytest.approx(10 * 50_000, rel=0.05)
    assert first["before_calls"] == first["after_calls"] == 10
    time = comparison["time"]
    assert time["basis"] == "steps" and time["noise"] is None
    assert time["low"] <= time["change"] <= time["high"]
    assert comparison["likeness"]["score"] == 1.0
    assert comparison["likeness"]["differing"] == []


def test_another_gpu_is_not_compared_unless_a_person_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = stepped(100.0), stepped(200.0, gpu="NVIDIA L4")
    answer = as_json(capsys, tmp_path, *given)
    assert (answer["exit_status"], answer["verdict"]) == (3, "unknown")
    assert answer["comparison"]["verdict"] == "not comparable"
    assert answer["comparison"]["sentence"].startswith("Not the same work")
    assert "device (NVIDIA L4 instead of " in answer["comparison"]["cautions"][0]
    # who knows better may say so
    answer = as_json(capsys, tmp_path, *given, "--least-comparable", "0")
    assert answer["verdict"] == "slower"


@pytest.mark.parametrize("schedule", [True, False])
def test_other_sizes_are_compared_with_a_caution_and_their_rows(
    schedule: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = stepped(200.0, size=1024, schedule=schedule)
    comparison = as_json(capsys, tmp_path, stepped(100.0), new)["comparison"]
    assert comparison["verdict"] == "more time"
    assert "sizes (0 % the same)" in comparison["cautions"][0]
    rows = comparison["likeness"]["differing"]
    sizes = {row["sizes"] for row in rows}
    assert {"512x512 512x512", "1024x1024 1024x1024"} <= sizes


def test_counts_of_more_steps_are_of_one_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = stepped(100.0, steps=12, seed=2)
    comparison = as_json(capsys, tmp_path, stepped(100.0), new)
    assert comparison["verdict"] == "not slower"
    assert comparison["comparison"]["likeness"]["score"] > 0.95


@pytest.mark.parametrize(
    ("now_us", "options", "status"),
    [
        # nearly all of the time the GPU works, of which 2 % is noise
        (150.0, (), 1),
        (100.0, (), 0),
        (106.0, (), 3),
        (112.0, ("--noise", "30%"), 3),
        (112.0, ("--noise", "1%"), 1),
    ],
)
def test_a_window_without_steps_must_differ_by_more_than_noise(
    now_us: float,
    options: tuple[str, ...],
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = (stepped(us, schedule=False) for us in (100.0, now_us))
    comparison = as_json(capsys, tmp_path, old, new, *options)
    assert comparison["exit_status"] == status
    time = comparison["comparison"]["time"]
    assert time["basis"] == "window" and time["noise"] > 0


def test_a_window_in_which_the_gpu_idles_is_mostly_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (stepped(us, schedule=False, kernels=1) for us in (2.0, 4.0))
    comparison = as_json(capsys, tmp_path, old, new)
    assert comparison["exit_status"] == 3
    assert comparison["comparison"]["time"]["noise"] > 0.3
    assert "schedule()" in comparison["comparison"]["notes"][0]


def test_a_trace_that_lost_its_kernels_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lossy = json.loads(stepped(100.0))
    events = lossy["traceEvents"]
    kernels = [event for event in events if event["cat"] == "kernel"]
    lossy["traceEvents"] = [event for event in events if event not in kernels[::2]]
    comparison = as_json(capsys, tmp_path, stepped(100.0), json.dumps(lossy).encode())
    assert comparison["exit_status"] == 3
    sentence = comparison["comparison"]["sentence"]
    assert "The run after can't be judged." in sentence


def test_versions_are_compared_where_a_program_added_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (
        stepped(100.0, torch_version=version) for version in ("2.9.0", "2.10.0")
    )
    comparison = as_json(capsys, tmp_path, old, new)
    (part,) = (
        part_compared
        for part_compared in comparison["comparison"]["likeness"]["parts"]
        if part_compared["name"] == "versions"
    )
    assert part["score"] == 0.0
    assert (part["before"], part["after"]) == ("torch 2.9.0", "torch 2.10.0")
    # one differing version alone is what a CI wants to know about
    assert comparison["verdict"] == "not slower"


def test_set_up_of_one_of_them_is_no_slowness(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = stepped(100.0, schedule=False)
    cold = json.loads(old)
    for event in cold["traceEvents"]:
        event["ts"] += 900_000.0
    first = call(0, 0.0, name="cudaFree", dur=899_990.0)
    cold["traceEvents"].append(first)
    comparison = as_json(capsys, tmp_path, old, json.dumps(cold).encode())
    assert "After: Set-up took 900 ms" in " ".join(comparison["comparison"]["notes"])
    time = comparison["comparison"]["time"]
    assert time["change"] == pytest.approx(0.0, abs=0.01)
    assert comparison["verdict"] == "not slower"


@pytest.mark.parametrize("broken", ["old", "new"])
def test_bad_input_is_never_taken_for_slower(
    broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {"old": stepped(100.0), "new": stepped(100.0), broken: b"no trace"}
    assert run(tmp_path, sides["old"], sides["new"]) == 2
    assert f"{broken}.json" in capsys.readouterr().err
    (tmp_path / "new.json").write_bytes(stepped(100.0))
    missing = ["--vs", str(tmp_path / "missing.json")]
    assert main(["analyze", str(tmp_path / "new.json"), *missing]) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-slower", "5%"], "needs --vs OLD"),
        (["--noise", "5%"], "needs --vs OLD"),
        (["--vs", "o.json", "--fail-slower", "five"], "write `5%` or 0.05"),
        (["--vs", "o.json", "--fail-slower", "-5%"], "expected one argument"),
        (["--vs", "o.json", "--fail-slower=-5%"], "write `5%` or 0.05"),
        (["--vs", "o.json", "--fail-slower", "5"], "write 5% for a percentage"),
        (["--vs", "o.json", "--fail-slower", "nan"], "write `5%` or 0.05"),
        (["second.json", "--vs", "o.json"], "give one TRACE"),
    ],
)
def test_a_wrong_command_line_says_what_to_do(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["analyze", "t.json", *options])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_names_of_a_trace_steer_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = stepped(150.0, gpu="\x1b[31mGPU").replace(b"ampere_", b"\\u001b[2Jampere_")
    assert run(tmp_path, stepped(100.0), new) == 3
    assert "\x1b" not in capsys.readouterr().out
