"""The past as a chart and a person ask for it, from a real server."""

import asyncio
import json
import time
from types import SimpleNamespace

import msgspec
import pytest
from tornado.httpclient import HTTPClientError

from warpbook.protocol import Detail, Device, Frame, SpanStatistics
from warpbook.server.past.history import Past
from warpbook_monitors.frames import Reading

SPAN = ("warpbook", "api", "v1", "history", "span")
DETAIL = ("warpbook", "api", "v1", "history", "detail")
FIGURE = ("warpbook", "api", "v1", "history", "figure")


@pytest.fixture
def warpbook_config() -> dict:
    # what is put into the history must come before what is read now
    return {"alerts": "watched"}


@pytest.fixture
def past(connect, jp_serverapp):
    return lambda: forty_minutes(connect, jp_serverapp)


async def forty_minutes(connect, jp_serverapp) -> tuple[Device, float]:
    """Put forty minutes into the history, of which nobody watched one.

    The first GPU's SM go from 0 to 1 and back each ten seconds, but for a minute in
    which it was stale.
    """
    client = await connect()
    hello = await client.next("hello")
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    broadcaster = app._broadcaster
    broadcaster.history._begin_ms = 0.0  # as if the server ran for long
    device = msgspec.convert(hello["devices"][0], Device)
    names = [metric.name for metric in device.metrics]
    now_ms = time.time() * 1000 // 1000 * 1000
    begin_ms = now_ms - 2400e3
    for seq in range(23_400):
        at_ms = begin_ms + 100 * (seq + 1)
        second = seq // 10
        if 600 <= second < 660:
            reading = Reading(0, "stale", (), "No answer.")
        else:
            values = dict.fromkeys(names, 0.0)
            values["sm_active_ratio"] = float(second % 10 >= 5)
            values["power_watts"] = 300.0
            reading = Reading(0, "ok", tuple(values.values()))
        if not 1200 <= second < 1260:
            broadcaster._take(Frame(seq, at_ms, (reading,)))
    return device, begin_ms


async def ask(jp_fetch, route, kind, **params):
    body = (await jp_fetch(*route, params={k: str(v) for k, v in params.items()})).body
    return msgspec.json.decode(body, type=kind)


async def told_by_seconds(jp_fetch, device, begin_ms) -> None:
    answer = await ask(
        jp_fetch,
        SPAN,
        SpanStatistics,
        from_ms=begin_ms + 100e3,
        to_ms=begin_ms + 1100e3,
    )
    gpu = next(span for span in answer.devices if span.device == device.id)
    sm = gpu.metrics["sm_active_ratio"]
    assert sm.mean == pytest.approx(0.5, abs=0.01)
    assert (sm.least, sm.most) == (0.0, 1.0)
    assert sm.covered_ratio == pytest.approx(0.94, abs=0.01), "it was stale for 60 s"
    assert gpu.energy_basis == "power"
    assert gpu.energy_joules == pytest.approx(300_000, rel=0.01)
    assert answer.note == ""


async def told_by_frames(jp_fetch, device, begin_ms) -> None:
    answer = await ask(
        jp_fetch,
        SPAN,
        SpanStatistics,
        from_ms=begin_ms + 105e3,
        to_ms=begin_ms + 107.5e3,
    )
    gpu = next(span for span in answer.devices if span.device == device.id)
    assert gpu.metrics["sm_active_ratio"].mean == pytest.approx(1.0)
    assert gpu.metrics["sm_active_ratio"].covered_ratio == pytest.approx(1.0)


async def what_is_not_there_is_said(jp_fetch, device, begin_ms) -> None:
    future = await ask(
        jp_fetch, SPAN, SpanStatistics, from_ms=begin_ms + 4e6, to_ms=begin_ms + 5e6
    )
    assert "Not all of it" in future.note
    for device in future.devices:
        assert device.energy_joules is None
        assert all(metric.mean is None for metric in device.metrics.values())


async def steps_show_peaks_and_leave_breaks_empty(
    jp_fetch, device, begin_ms, span_s, steps
) -> None:
    from_ms = begin_ms if span_s == 2400 else begin_ms + 580e3
    detail = await ask(
        jp_fetch,
        DETAIL,
        Detail,
        device=device.id,
        metrics="sm_active_ratio,power_watts",
        from_ms=from_ms,
        to_ms=from_ms + 1000 * span_s,
        steps=steps,
    )
    column = detail.columns["sm_active_ratio"]
    assert len(column.mean) == len(column.least) == len(column.most) <= steps

    def at(second: float) -> int:
        return int((begin_ms + 1000 * second - detail.from_ms) / detail.step_ms)

    broken = slice(at(605), at(655))
    assert set(column.mean[broken]) == {None}
    assert set(detail.columns["power_watts"].most[broken]) == {None}
    if span_s == 2400:
        assert set(column.mean[at(1205) : at(1255)]) == {None}
        assert column.mean[at(100)] == pytest.approx(0.5, abs=0.11)
        assert (column.least[at(100)], column.most[at(100)]) == (0.0, 1.0)
    else:
        assert column.mean[at(585.5) : at(589.5)] == (1.0,) * 8


async def figure_has_its_peaks(jp_fetch, device, begin_ms) -> None:
    params = {"device": device.id, "from_ms": begin_ms, "to_ms": begin_ms + 2400e3}
    answer = await jp_fetch(
        *FIGURE, params={key: str(value) for key, value in params.items()}
    )
    assert b"_most" in answer.body
    assert len(answer.body) < 4_000_000


async def test_a_past_is_told_as_a_span_in_steps_and_as_a_figure(
    jp_fetch, past
) -> None:
    # it is put there once, which takes seconds
    device, begin_ms = await past()
    await told_by_seconds(jp_fetch, device, begin_ms)
    await told_by_frames(jp_fetch, device, begin_ms)
    await what_is_not_there_is_said(jp_fetch, device, begin_ms)
    for span_s, steps in ((2400, 240), (100, 200)):
        await steps_show_peaks_and_leave_breaks_empty(
            jp_fetch, device, begin_ms, span_s, steps
        )
    await figure_has_its_peaks(jp_fetch, device, begin_ms)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"from_ms": "nan"}, "$.from_ms"),
        ({"from_ms": "-1e308", "to_ms": "1e308"}, "$.from_ms"),
        ({"from_ms": "2000", "to_ms": "1000"}, "before to_ms"),
        ({"steps": "0"}, "$.steps"),
        ({"steps": "1e9"}, "$.steps"),
        ({"steps": "99999999999999999999"}, "$.steps"),
        ({"steps": "²"}, "$.steps"),
        ({"metrics": "power_watts,<script>"}, "no metric '<script>'"),
        ({"metrics": ""}, "no metric"),
    ],
)
async def test_a_wrong_question_is_refused_in_words(
    jp_fetch, connect, params, why
) -> None:
    hello = await (await connect()).next("hello")
    query = {
        "device": hello["devices"][0]["id"],
        "metrics": "power_watts",
        "from_ms": "1000",
        "to_ms": "2000",
    }
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch(*DETAIL, params={**query, **params})
    assert refused.value.code == 400
    assert why in json.loads(refused.value.response.body)["message"]


async def test_a_device_that_is_not_there_is_named(jp_fetch) -> None:
    params = {"device": "gpu:x", "metrics": "power_watts", "from_ms": "1", "to_ms": "2"}
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch(*DETAIL, params=params)
    assert refused.value.code == 404


@pytest.mark.parametrize("route", [SPAN, DETAIL])
async def test_nothing_is_told_without_a_token(jp_fetch, route) -> None:
    with pytest.raises(HTTPClientError) as refused:
        await jp_fetch(*route, headers={"Authorization": ""})
    assert refused.value.code == 403


async def test_the_whole_past_comes_in_pieces_and_other_requests_are_served(
    jp_fetch, connect, past
) -> None:
    _, begin_ms = await past()
    client = await connect()
    await client.next("hello")
    await client.subscribe(since_ms=begin_ms, devices=None)
    first = await client.next("frame")
    assert first["time_ms"] == begin_ms + 100
    status, frames = await asyncio.gather(
        jp_fetch("api", "status"), count(client, begin_ms + 2339e3)
    )
    assert status.code == 200
    # but for the minute in which nobody watched
    assert frames == 10 * (2340 - 60) - 10


async def count(client, until_ms: float) -> int:
    """Frames up to a time, with the one that was received already."""
    frames = 1
    while (await client.next("frame"))["time_ms"] <= until_ms:
        frames += 1
    return frames


def test_a_view_of_a_new_server_is_sent_no_more_than_a_memory_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before the first frame, all that the archive holds was sent."""
    now_ms, asked_ms = 1.8e12, []
    broadcaster = SimpleNamespace(
        history=SimpleNamespace(begin_ms=now_ms, seconds=3600),
        devices=(),
        attach=lambda part: None,
    )
    archive = SimpleNamespace(wait_until_opened=lambda timeout_s: True)

    def archived(archive, from_ms, to_ms, devices):
        asked_ms.append(from_ms)
        return iter(())

    monkeypatch.setattr("warpbook.server.past.history._archived", archived)
    past = Past(broadcaster, archive)
    assert list(past.before_memory(0.0)) == []
    assert asked_ms == [pytest.approx(now_ms - 3_600_000)]
