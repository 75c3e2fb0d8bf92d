"""Cell reports from a kernel to every open view."""

import json
import time

import msgspec
import pytest

from warpbook.protocol import MAX_REPORT_BYTES, PROTOCOL_VERSION, CellReport
from warpbook_profiler.model.cell_profile import CellProfile, Completeness, Lane

#: the archive removes what is older than it keeps
NOW_MS = time.time() * 1000


def report(report_id: str = "r-1", **changes) -> dict:
    profile = msgspec.structs.replace(NOTHING, names=("k",), lanes=(LANE,))
    whole = CellReport(
        id=report_id,
        protocol=PROTOCOL_VERSION,
        kernel_id="k",
        notebook="a/b.ipynb",
        cell_id="c",
        execution_count=1,
        title="<img src=x onerror=alert(1)>",
        started_ms=NOW_MS - 1,
        ended_ms=NOW_MS,
        status="ok",
        profile=profile,
    )
    return {**json.loads(msgspec.json.encode(whole)), **changes}


#: what a cell without a GPU and without an operator gives
NOTHING = CellProfile(
    verdict=None,
    findings=(),
    metrics=None,
    wall_ns=1_000_000,
    profiler_ns=1_000_000,
    first_start_ns=None,
    gpu_name=None,
    gpu_busy_ns=None,
    kernel_calls=None,
    kernel_time_ns=None,
    copy_time_ns=None,
    launches=0,
    launch_api_ns=0,
    synchronizations=0,
    synchronization_ns=0,
    peak_allocated_bytes=None,
    peak_reserved_bytes=None,
    kernels=(),
    copies=(),
    operators=(),
    names=(),
    lanes=(),
    completeness=Completeness(0, 0, 0),
)
LANE = Lane("stream 7", (0, 1000), (500, 500), (0, 0))


async def test_a_report_reaches_open_views_and_later_ones(ingest, connect) -> None:
    early = await connect()
    await early.next("hello")
    assert (await ingest("/v1/reports", report())).code == 204
    message = await early.next("cell_report")
    view = message.pop("view")
    assert message == {
        key: value for key, value in report().items() if key != "view"
    } | {"type": "cell_report"}
    # the words and figures that every view shows
    assert view["figures"][0] == {
        "label": "Time",
        "value": "1.00 ms with the profiler on",
    }
    late = await connect()
    assert (await late.next("cell_report"))["id"] == "r-1"


async def test_a_report_has_a_timeline_figure(ingest, jp_fetch) -> None:
    await ingest("/v1/reports", report())
    response = await jp_fetch("warpbook", "api", "v1", "reports", "r-1", "figure")
    assert json.loads(response.body)["root_id"]


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        ({"protocol": 99}, 409, "install the same warpbook"),
        ({"id": "../../etc"}, 400, "id"),
        ({"title": "x" * 201}, 400, "title"),
        ({"profile": {}}, 400, "profile"),
    ],
)
async def test_a_wrong_report_is_refused_in_words(ingest, change, code, why) -> None:
    response = await ingest("/v1/reports", report(**change))
    assert response.code == code
    assert why in json.loads(response.body)["message"]


@pytest.mark.parametrize("body", [b"", b"garbage", b"\xff", b"[]", b"[" * 100_000])
async def test_garbage_is_refused(ingest, body) -> None:
    assert (await ingest("/v1/reports", body)).code == 400


async def test_a_report_whose_lanes_lie_is_refused(ingest) -> None:
    lying = report()
    lying["profile"]["lanes"][0]["names"] = [0, 7]
    response = await ingest("/v1/reports", lying)
    assert response.code == 400
    assert "names a missing event" in json.loads(response.body)["message"]


async def test_a_time_that_no_clock_gives_is_refused(ingest) -> None:
    lying = report()
    lying["profile"]["wall_ns"] = 10**400
    response = await ingest("/v1/reports", lying)
    assert response.code == 400
    assert "no time" in json.loads(response.body)["message"]


async def test_a_report_that_is_too_large_is_refused(ingest) -> None:
    response = await ingest("/v1/reports", b"0" * (MAX_REPORT_BYTES + 1))
    assert response.code == 413


@pytest.mark.parametrize("secret", ["", "wrong", "ü"])
async def test_without_the_secret_nothing_is_taken_or_told(ingest, secret) -> None:
    assert (await ingest("/v1/state", secret=secret)).code == 403
    assert (await ingest("/v1/reports", report(), secret=secret)).code == 403


async def test_the_kernel_can_ask_for_the_state(ingest) -> None:
    answer = json.loads((await ingest("/v1/state")).body)
    assert answer["protocol"] == PROTOCOL_VERSION
    # a busy machine may not have read by then
    while answer["frame"] is None:
        answer = json.loads((await ingest("/v1/state")).body)
    assert answer["frame"]["readings"]


async def test_the_version_is_told_without_opening_a_gpu(ingest, jp_serverapp) -> None:
    answer = json.loads((await ingest("/v1/version")).body)
    assert answer["protocol"] == PROTOCOL_VERSION
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    assert app._broadcaster.devices == ()


async def test_large_reports_are_kept_up_to_a_bound(ingest, connect) -> None:
    for number in range(12):
        await ingest("/v1/reports", report(f"r-{number}", notebook="n" * 900_000))
    client = await connect()
    ids = [(await client.next("cell_report"))["id"] for _ in range(8)]
    assert ids == [f"r-{number}" for number in range(4, 12)]


async def test_a_report_grows_in_its_place_and_its_end_stays(ingest, connect) -> None:
    live = {
        "elapsed_ns": 1_000_000,
        "steps": 1,
        "steps_by": "optimizer",
        "bare": None,
        "profiled": None,
        "slow_steps": [],
        "slow_ns": 0,
        "windows": [],
        "verdict": None,
        "overhead_ns": 0,
        "aim_share": 0.05,
        "setup_ns": None,
    }
    viewer = await connect()
    for steps in (1, 2):
        grown = report(status="running", live={**live, "steps": steps})
        assert (await ingest("/v1/reports", grown)).code == 204
        message = await viewer.next("cell_report")
        assert (message["status"], message["live"]["steps"]) == ("running", steps)
    assert (await ingest("/v1/reports", report(live=live))).code == 204
    assert (await viewer.next("cell_report"))["status"] == "ok"
    # one that was on its way for long
    assert (await ingest("/v1/reports", grown)).code == 204
    late = await connect()
    assert (await late.next("cell_report"))["status"] == "ok"


async def test_only_the_newest_reports_are_kept(ingest, connect) -> None:
    for number in range(55):
        await ingest("/v1/reports", report(f"r-{number}"))
    client = await connect()
    ids = [(await client.next("cell_report"))["id"] for _ in range(50)]
    assert ids == [f"r-{number}" for number in range(5, 55)]


async def test_a_kernel_asks_what_the_devices_did_in_a_span(ingest, connect) -> None:
    query = "/v1/span?from_ms={}&to_ms={}"
    early = json.loads((await ingest(query.format(1, 2))).body)
    assert early["devices"] == [] and early["note"]
    client = await connect()
    await client.next("hello")
    await client.subscribe()
    first = await client.next("frame")
    last = [await client.next("frame") for _ in range(3)][-1]
    answer = await ingest(query.format(first["time_ms"], last["time_ms"]))
    answered = json.loads(answer.body)
    assert answer.code == 200
    host = next(device for device in answered["devices"] if device["device"] == "host")
    assert host["metrics"]["memory_used_bytes"]["mean"] > 0
    for wrong in (query.format(2, 1), query.format("x", 2), query.format("nan", 2)):
        assert (await ingest(wrong)).code == 400
    assert (await ingest("/v1/span")).code == 400
    assert (await ingest(query.format(1, 2), secret="wrong")).code == 403
