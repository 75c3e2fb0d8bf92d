"""All events of a report: handed in by the kernel, kept, and asked for by a view."""

import asyncio
import json

import msgspec
import numpy as np
import pytest
from tornado.httpclient import HTTPClientError

from tests.extension.server.test_ingest import report
from warpbook_profiler.model.timeline_answers import MAX_BODY_BYTES
from warpbook_profiler.timeline.timeline_body import Body, Track

EVENTS = 3000


def packed(events: int = EVENTS, name: str = "gemm") -> bytes:
    """Each event takes 3 of 10 ns."""
    start_ns = 10 * np.arange(events)
    return msgspec.msgpack.encode(
        Body(
            form=1,
            started_ns=1,
            names=(name, "<script>"),
            tracks=(Track("Stream 7", "gpu", 0),),
            omitted=0,
            starts_ns=memoryview(start_ns.astype("<i8")).cast("B"),
            durations_ns=memoryview(np.full(events, 3, "<i8")).cast("B"),
            name=memoryview((np.arange(events) % 10 == 0).astype("<i4")).cast("B"),
            track=memoryview(np.zeros(events, "<u2")).cast("B"),
        )
    )


@pytest.fixture
def ask(jp_fetch):
    """Ask for a timeline as the page does."""

    async def ask(report_id: str, *route: str, **parameters):
        path = ("warpbook", "api", "v1", "reports", report_id, "timeline", *route)
        query = {name: str(value) for name, value in parameters.items()}
        response = await jp_fetch(*path, params=query)
        return json.loads(response.body)

    return ask


@pytest.fixture
def hand_in(ingest):
    """Hand in a report and its events."""

    async def hand_in(report_id: str = "r-1", body: bytes | None = None) -> None:
        whole = report(report_id, timeline_events=EVENTS)
        assert (await ingest("/v1/reports", whole)).code == 204
        sent = packed() if body is None else body
        answer = await ingest(f"/v1/reports/{report_id}/timeline", sent)
        assert answer.code == 204, answer.body

    return hand_in


async def test_a_view_asks_for_windows_statistics_and_names(hand_in, ask) -> None:
    await hand_in()
    near = await ask("r-1", from_ns=100, to_ns=200, steps=50)
    (bars,) = near["bars"]
    assert not bars["is_merged"]
    assert bars["starts_ns"] == list(range(100, 200, 10))
    assert near["rows"] == [
        {"label": "Stream 7", "kind": "gpu", "level": 0, "events": EVENTS}
    ]
    far = await ask("r-1", steps=20, text="SCRIPT")
    (bars,) = far["bars"]
    assert bars["is_merged"] and sum(bars["counts"]) == EVENTS
    assert len(bars["found"]) == len(bars["starts_ns"])
    answer = await ask("r-1", "statistics", from_ns=0, to_ns=1000)
    assert answer["gpus"][0]["busy_ns"] == 300
    assert answer["names"][0] == {
        "name": "gemm",
        "kind": "gpu",
        "events": 90,
        "time_ns": 270,
    }
    search_result = await ask("r-1", "search", text="<script>", at_ns=100, at_row=0)
    assert search_result["found"] == [{"kind": "gpu", "events": 300, "time_ns": 900}]
    assert search_result["previous"]["start_ns"] == 0
    assert search_result["next"]["start_ns"] == 200
    whole_name = await ask("r-1", "search", text='"gem"', at_ns=0)
    assert whole_name["found"] == []


async def test_the_export_is_a_chrome_trace(hand_in, ask) -> None:
    await hand_in()
    trace = await ask("r-1", "export")
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(events) == EVENTS
    assert {event["name"] for event in events} == {"gemm", "<script>"}


@pytest.mark.parametrize(
    ("route", "wrong"),
    [
        ((), {"from_ns": 5, "to_ns": 5}),
        ((), {"from_ns": "1.5", "to_ns": 2000}),
        ((), {"from_ns": 0, "to_ns": 10**17}),
        ((), {"from_ns": 0}),
        ((), {"steps": 0}),
        ((), {"steps": 12_001}),
        ((), {"text": "x" * 1201}),
        (("statistics",), {}),
        (("statistics",), {"from_ns": 9, "to_ns": 1}),
        (("search",), {"at_ns": 0}),
        (("search",), {"at_ns": 0, "text": "x" * 1201}),
        (("search",), {"at_ns": 0, "text": "x", "at_row": -2}),
        (("search",), {"at_ns": "nan", "text": "x"}),
    ],
)
async def test_a_senseless_question_is_refused(hand_in, ask, route, wrong) -> None:
    await hand_in()
    with pytest.raises(HTTPClientError) as refused:
        await ask("r-1", *route, **wrong)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "truncated"),
        (b"garbage", "Expected"),
        (packed()[:-1], "truncated"),
        (packed(name="n" * 1001), "too long"),
    ],
)
async def test_a_wrong_body_is_refused_in_words(ingest, ask, body, why) -> None:
    await ingest("/v1/reports", report(timeline_events=5))
    answer = await ingest("/v1/reports/r-1/timeline", body)
    assert answer.code == 400
    assert why in json.loads(answer.body)["message"]
    # and nobody waits for it any longer
    with pytest.raises(HTTPClientError) as missing:
        await ask("r-1")
    assert missing.value.code == 404


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(ingest) -> None:
    await ingest("/v1/reports", report(timeline_events=5))
    answer = await ingest("/v1/reports/r-1/timeline", bytes(MAX_BODY_BYTES + 1))
    # refused while it was still being sent, or told so
    assert answer.code in (413, 599)


async def test_events_come_only_with_the_secret_and_after_a_report(ingest) -> None:
    assert (await ingest("/v1/reports/r-1/timeline", packed())).code == 404
    await ingest("/v1/reports", report())
    answer = await ingest("/v1/reports/r-1/timeline", packed(), secret="wrong")
    assert answer.code == 403


async def test_without_events_the_page_is_told_why(ingest, ask, jp_fetch) -> None:
    await ingest("/v1/reports", report())
    for route in ((), ("statistics",), ("search",), ("export",)):
        with pytest.raises(HTTPClientError) as missing:
            await ask("r-1", *route, from_ns=0, to_ns=9, at_ns=0, text="x")
        assert missing.value.code == 404
        message = json.loads(missing.value.response.body)["message"]
        assert "Run the cell, or open the file, again" in message
    with pytest.raises(HTTPClientError) as unknown:
        await ask("r-2")
    assert "no such report" in json.loads(unknown.value.response.body)["message"]


async def test_a_view_that_is_early_waits_for_the_events(ingest, ask) -> None:
    await ingest("/v1/reports", report(timeline_events=EVENTS))
    early = asyncio.ensure_future(ask("r-1", from_ns=0, to_ns=50))
    await asyncio.sleep(0.2)
    assert not early.done()
    await ingest("/v1/reports/r-1/timeline", packed())
    assert (await early)["bars"][0]["names"]


async def test_it_is_refused_without_authentication(jp_fetch, hand_in) -> None:
    await hand_in()
    for route in ((), ("statistics",), ("search",), ("export",)):
        with pytest.raises(HTTPClientError) as refused:
            await jp_fetch(
                *("warpbook", "api", "v1", "reports", "r-1", "timeline", *route),
                headers={"Authorization": "token wrong"},
            )
        assert refused.value.code == 403


@pytest.mark.parametrize(
    "warpbook_config", [{"timelines_megabytes": 1, "archive": False}]
)
async def test_the_oldest_make_room(hand_in, ask, warpbook_config) -> None:
    for number in range(4):
        await hand_in(f"r-{number}", packed(20_000))
    with pytest.raises(HTTPClientError) as dropped:
        await ask("r-0")
    assert dropped.value.code == 404
    assert (await ask("r-3"))["bars"]


async def test_a_later_body_replaces_the_earlier(hand_in, ask) -> None:
    await hand_in()
    await hand_in("r-1", packed(5))
    assert (await ask("r-1"))["rows"][0]["events"] == 5
