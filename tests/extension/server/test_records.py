"""What is kept, asked for by a page; and a disk that takes nothing, or hangs."""

import asyncio
import json
import os
import threading
import time

import pytest
from tornado.httpclient import HTTPClientError

from tests.extension.server.test_ingest import NOW_MS, report
from tests.extension.server.test_timelines import EVENTS, packed
from warpbook.protocol import PROTOCOL_VERSION

API = ("warpbook", "api", "v1")


def now_ms() -> float:
    return time.time() * 1000


def band(name: str = "b_1", **changes) -> dict:
    whole = {
        "id": name,
        "kernel_id": "k",
        "notebook": "night/train.ipynb",
        "cell_id": "c",
        "execution_count": 3,
        "title": "train()",
        "started_ms": NOW_MS - 2_000,
        "ended_ms": NOW_MS - 1_000,
        "status": "ok",
    }
    return {**whole, **changes}


@pytest.fixture
def app(jp_serverapp):
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    return app


@pytest.fixture
def records(jp_fetch):
    """Ask for the list."""

    async def records(**search) -> dict:
        query = {name: str(value) for name, value in search.items()}
        return json.loads((await jp_fetch(*API, "records", params=query)).body)

    return records


@pytest.fixture
def hand_in(jp_fetch):
    """Hand cells in, as a page does."""

    async def hand_in(*bands: dict):
        body = json.dumps(bands)
        return await jp_fetch(*API, "cells", method="POST", body=body)

    return hand_in


async def test_cells_of_pages_are_kept_once_and_found(hand_in, records) -> None:
    running = band(ended_ms=None, status="running")
    earlier = band("b_2", title="plot()", started_ms=NOW_MS - 2_500)
    assert (await hand_in(running, earlier)).code == 204
    await hand_in(band())
    # another page saw it, too, and was slower
    await hand_in(running)
    listed = (await records(kind="cell"))["records"]
    assert {record["id"]: record["status"] for record in listed} == {
        "b_1": "ok",
        "b_2": "ok",
    }
    assert (await records(text="PLOT"))["records"][0]["id"] == "b_2"
    assert (await records(notebook="night/train.ipynb", limit=1))["has_more"]
    assert (await records(kind="report"))["records"] == []


async def test_a_record_is_what_views_were_sent(
    ingest, connect, jp_fetch, records
) -> None:
    view = await connect()
    await view.next("hello")
    cell = {
        "protocol": PROTOCOL_VERSION,
        "id": "run-1",
        "kernel_id": "k",
        "notebook": "a.ipynb",
        "cell_id": "c",
        "execution_count": 1,
        "title": "x = 1",
        "started_ms": now_ms() - 900,
        "ended_ms": now_ms(),
        "status": "ok",
    }
    assert (await ingest("/v1/cells", cell)).code == 200
    seen = await view.next("receipt")
    kept = await jp_fetch(*API, "records", "receipt", "run-1")
    assert json.loads(kept.body) == seen
    (record,) = (await records(kind="receipt"))["records"]
    # a recording stands in for the GPUs here, and that is told tomorrow, too
    assert record["is_replay"] and "REPLAY" in record["sentence"]
    assert (await ingest("/v1/reports", report("r-1"))).code == 204
    seen = await view.next("cell_report")
    kept = await jp_fetch(*API, "records", "report", "r-1")
    assert json.loads(kept.body) == seen
    with pytest.raises(HTTPClientError, match="404"):
        await jp_fetch(*API, "records", "report", "r-2")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "secret"},
        {"limit": 0},
        {"limit": 201},
        {"limit": "9" * 30},
        {"text": "x" * 201},
        {"notebook": "x" * 1001},
        {"from_ms": "nan"},
        {"to_ms": -1},
        {"before_ms": "1e300"},
    ],
)
async def test_a_senseless_search_is_refused(records, wrong) -> None:
    with pytest.raises(HTTPClientError, match="400"):
        await records(**wrong)


@pytest.mark.parametrize(
    "bands",
    [
        [band()] * 201,
        [band("../x")],
        [band(title="x" * 201)],
        [band(started_ms=NOW_MS)],
        [band(ended_ms=1e300)],
        [band(ended_ms=None)],
        [band(status="running")],
        [band(script="no")],
        ["x"],
    ],
)
async def test_cells_that_cant_be_are_refused(hand_in, records, bands) -> None:
    with pytest.raises(HTTPClientError, match="400"):
        await hand_in(*bands)
    assert (await records())["records"] == []


async def test_without_credentials_nothing_is_told_or_kept(jp_fetch, hand_in) -> None:
    wrong = {"Authorization": "token wrong"}
    for path in (("records",), ("records", "cell", "b_1")):
        with pytest.raises(HTTPClientError, match="403"):
            await jp_fetch(*API, *path, headers=wrong)
    with pytest.raises(HTTPClientError, match="403"):
        await jp_fetch(*API, "cells", method="POST", body="[]", headers=wrong)


async def test_a_report_beyond_the_newest_is_drawn_and_its_events_are_there(
    ingest, jp_fetch, app, monkeypatch
) -> None:
    monkeypatch.setattr("warpbook.server.records.reports.MAX_REPORTS", 1)
    for number in (1, 2):
        # one of 1970 is removed from the disk when it is tidied up
        times = {"started_ms": time.time() * 1000, "ended_ms": time.time() * 1000}
        body = report(f"r-{number}", timeline_events=EVENTS, **times)
        assert (await ingest("/v1/reports", body)).code == 204
        response = await ingest(f"/v1/reports/r-{number}/timeline", packed())
        assert response.code == 204, response.body
    assert app._reports.get("r-1") is None
    app._timelines._kept.clear()
    path = (*API, "reports", "r-1")
    window = json.loads((await jp_fetch(*path, "timeline")).body)
    assert window["rows"][0]["events"] == EVENTS
    response = await jp_fetch(*path, "difference", params={"before": "r-2"})
    assert json.loads(response.body)["verdict"] == "about the same"


async def test_a_disk_that_hangs_holds_up_no_view(
    ingest, connect, app, records, monkeypatch, caplog
) -> None:
    monkeypatch.setattr("warpbook.server.records.records.PATIENCE_S", 0.2)
    view = await connect()
    await view.next("hello")
    answers = threading.Event()
    app._records.archive.write(lambda connection: answers.wait(60))
    try:
        for name in ("r-1", "r-2"):
            assert (await ingest("/v1/reports", report(name))).code == 507
            assert (await view.next("cell_report"))["id"] == name
        messages = [
            message for message in caplog.messages if "shown and not kept" in message
        ]
        assert len(messages) == 1
    finally:
        answers.set()
    # what waited for the disk is kept when it comes back
    while len((await records())["records"]) < 2:
        await asyncio.sleep(0.05)


async def test_a_full_disk_holds_up_no_view(ingest, connect, app, hand_in) -> None:
    view = await connect()
    await view.next("hello")
    # SQLite says so itself when a file may not grow
    await asyncio.wrap_future(
        app._records.archive.write(lambda c: c.execute("PRAGMA max_page_count = 1"))
    )
    large = report("r-1", notes=[os.urandom(45_000).hex()])
    assert (await ingest("/v1/reports", large)).code == 507
    assert (await view.next("cell_report"))["id"] == "r-1"
    with pytest.raises(HTTPClientError, match="507"):
        await hand_in(band())


@pytest.mark.parametrize("warpbook_config", [{"archive": False}])
async def test_with_the_archive_off_all_is_as_it_was(
    ingest, connect, records, hand_in, warpbook_config, jp_fetch
) -> None:
    view = await connect()
    await view.next("hello")
    assert (await ingest("/v1/reports", report("r-1"))).code == 204
    assert (await view.next("cell_report"))["id"] == "r-1"
    assert await records() == {"records": [], "has_more": False}
    with pytest.raises(HTTPClientError, match="409"):
        await hand_in(band())
    assert (await jp_fetch(*API, "reports", "r-1", "figure")).code == 200
