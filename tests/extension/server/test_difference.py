"""`GET api/v1/reports/ID/difference`: any two reports that the server keeps."""

import json
from pathlib import Path

import msgspec
import pytest
from tornado.httpclient import HTTPClientError

from tests.extension.server.test_ingest import report
from warpbook.cli.main import main
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"


def profiled(report_id: str, trace: str, started_ms: float, **changes) -> dict:
    figures = analyse(*read_chrome_trace(str(TRACES / f"{trace}.json.gz")))
    profile = json.loads(msgspec.json.encode(figures))
    times = {"started_ms": started_ms, "ended_ms": started_ms + 500}
    return report(report_id, profile=profile, **times, **changes)


async def half_a_second(client) -> float:
    """Wait for half a second that a busy machine did not skip; give its beginning."""
    times = [(await client.next("frame"))["time_ms"] for _ in range(5)]
    while times[-1] - times[-5] > 500:
        times.append((await client.next("frame"))["time_ms"])
    return times[-5]


@pytest.fixture
def difference(jp_fetch):
    """Ask for what two reports differ in."""

    async def difference(before: str, after: str) -> dict:
        path = ("warpbook", "api", "v1", "reports", after, "difference")
        return json.loads((await jp_fetch(*path, params={"before": before})).body)

    return difference


async def test_the_order_is_the_one_that_a_person_chose(ingest, difference) -> None:
    await ingest("/v1/reports", profiled("eager", "tiny_kernels", 1_000.0))
    await ingest("/v1/reports", profiled("graph", "graph_replay", 9_000.0))
    comparison = await difference("eager", "graph")
    assert comparison["sentence"].startswith(
        "82 % less time: 1.66 ms instead of 9.23 ms."
    )
    assert comparison["paths"] and comparison["kernels"] and comparison["operators"]
    assert comparison["clocks"] == [None, None], "nobody read the GPUs then"
    titles = [bar["title"] for bar in comparison["bars"]]
    assert titles[0].startswith("Before: 9.23 ms") and len(titles) == 2
    swapped = await difference("graph", "eager")
    assert swapped["sentence"].startswith("5.6 times as long: 9.23 ms instead of")
    same = await difference("eager", "eager")
    assert same["verdict"] == "about the same" and same["cautions"] == []


async def test_other_work_is_refused_as_in_a_terminal(
    ingest, difference, capsys: pytest.CaptureFixture[str]
) -> None:
    await ingest("/v1/reports", profiled("train", "train_fp32", 1_000.0))
    other = profiled("graph", "graph_replay", 9_000.0, cell_id="another")
    await ingest("/v1/reports", other)
    refused = await difference("train", "graph")
    assert refused["verdict"] == "not comparable"
    assert "The work is 0." in refused["cautions"][0]
    assert refused["tables"][0]["title"].startswith("The same work: 0.")
    train, graph = (
        str(TRACES / f"{name}.json.gz") for name in ("train_fp32", "graph_replay")
    )
    assert main(["analyze", graph, "--vs", train]) == 3
    said = capsys.readouterr().out
    assert f"unknown: {refused['sentence']}" in said
    assert f"! {refused['cautions'][0]}" in said


async def test_an_edited_cell_is_compared_with_what_it_was(ingest, difference) -> None:
    for name, trace, cell_id in (
        ("before", "train_fp32", "a"),
        ("after", "graph_replay", "a"),
        ("other", "graph_replay", "b"),
    ):
        await ingest("/v1/reports", profiled(name, trace, 1_000.0, cell_id=cell_id))
    edited = await difference("before", "after")
    assert "less time" in edited["sentence"]
    assert "Valid only if both compute the same (0" in edited["sentence"]
    assert (await difference("before", "other"))["verdict"] == "not comparable"


async def test_the_clocks_of_both_runs_come_from_the_history(
    ingest, difference, connect
) -> None:
    client = await connect()
    hello = await client.next("hello")
    (gpu, *_) = (device for device in hello["devices"] if device["kind"] == "gpu")
    await client.subscribe()
    gpus = [gpu["id"].removeprefix("gpu:")]
    for report_id in ("one", "two"):
        at_ms = await half_a_second(client)
        while (await client.next("frame"))["time_ms"] < at_ms + 500:
            pass
        await ingest(
            "/v1/reports", profiled(report_id, "tiny_kernels", at_ms, gpus=gpus)
        )
    comparison = await difference("one", "two")
    assert all(clock["sm_clock_mhz"] > 0 for clock in comparison["clocks"])
    assert any("SM clock" in note for note in comparison["notes"])


async def test_a_report_that_is_not_kept_is_told(ingest, difference) -> None:
    await ingest("/v1/reports", report())
    for pair in (("r-1", "gone"), ("gone", "r-1")):
        with pytest.raises(HTTPClientError, match="404"):
            await difference(*pair)
