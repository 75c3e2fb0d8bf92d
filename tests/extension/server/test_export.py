"""History as files, each read again by what it is for."""

import asyncio
import csv
import io
import json
from pathlib import Path

import pytest
from tornado.httpclient import HTTPClientError

from warpbook_monitors.recordings.recording import read_recording

EXPORT = ("warpbook", "api", "v1", "history", "export")


async def watched(connect) -> dict:
    """Put two seconds of history into the server's ring; give the hello."""
    client = await connect()
    hello = await client.next("hello")
    await client.subscribe()
    for _ in range(20):
        await client.next("frame")
    return hello


async def export(jp_fetch, **params: str) -> bytes:
    return (await jp_fetch(*EXPORT, params=params)).body


async def test_csv_has_a_row_for_each_frame(jp_fetch, connect) -> None:
    hello = await watched(connect)
    text = (await export(jp_fetch, format="csv")).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) >= 10
    gpu = hello["devices"][0]["id"]
    watts = [float(cell) for row in rows if (cell := row[f"{gpu} power_watts"])]
    assert watts and min(watts) > 0
    assert rows[0]["host cpu_ratio"] == "", "not known at first, so not zero"
    # nor known where two looks fall into one tick of the system's clock
    known = [float(row["host cpu_ratio"]) for row in rows if row["host cpu_ratio"]]
    assert known and all(0 <= ratio <= 1 for ratio in known)
    times = [float(row["time_ms"]) for row in rows]
    assert times == sorted(times)


async def test_who_goes_away_meanwhile_is_no_error(
    jp_fetch, jp_serverapp, connect, caplog
) -> None:
    await watched(connect)
    _, writer = await asyncio.open_connection("127.0.0.1", jp_serverapp.port)
    path = f"{jp_serverapp.base_url}{'/'.join(EXPORT)}?format=chrome"
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: token {jp_serverapp.identity_provider.token}\r\n\r\n".encode()
    )
    await writer.drain()
    # abort: the server is told at once, and not when it has sent everything
    writer.transport.abort()
    await export(jp_fetch, format="chrome")
    assert "Uncaught exception" not in caplog.text


async def test_jsonl_is_a_recording(jp_fetch, connect, tmp_path: Path) -> None:
    hello = await watched(connect)
    path = tmp_path / "history.jsonl"
    path.write_bytes(await export(jp_fetch, format="jsonl"))
    recording = read_recording(path)
    assert recording.problem is None
    assert len(recording.frames) >= 10
    assert [d.id for d in recording.hello.devices] == [
        d["id"] for d in hello["devices"]
    ]


async def test_chrome_counters_are_json_with_unix_time(jp_fetch, connect) -> None:
    hello = await watched(connect)
    trace = json.loads(await export(jp_fetch, format="chrome"))
    names = {e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    assert "NVIDIA H200 (replay)" in names
    counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
    power = [e for e in counters if e["name"] == "Power" and e["pid"] == 0]
    assert len(power) >= 10
    assert power[-1]["args"]["watts"] > 0
    assert abs(power[-1]["ts"] / 1000 - hello["time_ms"]) < 60_000


async def test_a_span_is_cut_out(jp_fetch, connect) -> None:
    await watched(connect)
    whole = (await export(jp_fetch, format="csv")).decode("utf-8-sig")
    times = [row["time_ms"] for row in csv.DictReader(io.StringIO(whole))]
    part = await export(jp_fetch, format="csv", from_ms=times[3], to_ms=times[6])
    cut = [
        row["time_ms"] for row in csv.DictReader(io.StringIO(part.decode("utf-8-sig")))
    ]
    assert cut == times[3:7]


@pytest.mark.parametrize(
    "params", [{}, {"format": "xml"}, {"format": "csv", "from_ms": "yesterday"}]
)
async def test_a_wrong_request_is_refused(jp_fetch, params) -> None:
    with pytest.raises(HTTPClientError) as refused:
        await export(jp_fetch, **params)
    assert refused.value.code == 400


async def test_nothing_is_exported_without_a_token(jp_fetch) -> None:
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch(*EXPORT, params={"format": "csv"}, headers={"Authorization": ""})
    assert refused.value.code == 403
