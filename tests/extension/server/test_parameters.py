"""Each route says what it may be asked, and nothing else reaches it."""

import ast
import itertools
import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tornado.httpclient import HTTPClientError
from tornado.web import RequestHandler

import warpbook.server
from warpbook.server.stream_socket import AuthorizedSocket
from warpbook.server.web.parameters import Parameters
from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.history.energy import Power
from warpbook_monitors.history.readings import Readings

SERVER = Path(warpbook.server.__file__).parent
#: the years 1970 to 2100: a century of seconds is 25 GB as an array
CENTURY = {"from_ms": "0", "to_ms": "4.1e12"}
#: what no number is, or no route can serve
HOSTILE = (
    "nan",
    "inf",
    "-1e308",
    "1e400",
    "9" * 400,
    "-1",
    "",
    "0x10",
    "²",
    "1;2",
    "%00",
    "<script>",
    "\x00",
)
#: what every route can serve
GOOD = {
    "from_ms": "1.7e12",
    "to_ms": "1.8e12",
    "device": "host",
    "metrics": "cpu_ratio",
    "format": "csv",
    "from_ns": "0",
    "to_ns": "5",
    "at_ns": "0",
    "text": "x",
    "before": "report",
}


@pytest.fixture
def application(jp_serverapp):
    (application,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    return application


def handlers(application) -> list[tuple[str, type[RequestHandler]]]:
    """All routes of page and ingest, as they are registered."""
    page = [(rule[0], rule[1]) for rule in application.handlers]
    ingest = application._ingest._server.request_callback.wildcard_router.rules
    return page + [(rule.matcher.regex.pattern, rule.target) for rule in ingest]


def test_every_route_has_a_checked_query_and_says_its_cost(application) -> None:
    checked = 0
    for pattern, handler in handlers(application):
        # files out of a package, which Jupyter itself serves
        if handler.__module__.startswith("warpbook."):
            assert issubclass(handler, Parameters | AuthorizedSocket), pattern
            assert "Cost: " in (handler.__doc__ or ""), f"{pattern}: {handler}"
        if issubclass(handler, Parameters):
            checked += 1
            assert issubclass(handler.query_type, msgspec.Struct), pattern
    assert checked > 25


def test_no_route_reads_its_query_by_itself() -> None:
    for path in SERVER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                name = node.attr
                assert not re.fullmatch(r"get_(query_|body_)?arguments?", name), path


def urls(application) -> list[tuple[str, type[Parameters]]]:
    """Each route of the page that answers a GET, as one can ask it."""
    urls_by_handler = []
    for pattern, handler in handlers(application):
        if "/warpbook/api/" in pattern and issubclass(handler, Parameters):
            path = re.sub(r"\([^/]*\)", "report", pattern.partition("/warpbook/")[2])
            if handler.get is not RequestHandler.get:
                urls_by_handler.append((path.rstrip("$"), handler))
    return urls_by_handler


async def test_a_hostile_query_is_refused_and_never_a_fault(
    application, jp_fetch
) -> None:
    refused = 0
    for path, handler in urls(application):
        names = handler.query_type.__struct_encode_fields__
        for name, value in itertools.product(names, HOSTILE):
            query = {known: GOOD[known] for known in names if known in GOOD}
            code = await status(jp_fetch, path, {**query, name: value})
            assert code in (200, 400, 404), (path, name, value, code)
            refused += code == 400
    assert refused > 200


async def test_a_parameter_that_comes_twice_or_is_no_text_is_refused(jp_fetch) -> None:
    span = [("from_ms", "1"), ("to_ms", "2")]
    for query in ([*span, ("to_ms", "3")], [*span[:1], ("to_ms", b"\xff\xfe")]):
        assert await status(jp_fetch, "api/v1/history/span", query) == 400
    assert await status(jp_fetch, "api/v1/history/span", span) == 200


async def status(jp_fetch, path: str, query) -> int:
    try:
        answer = await jp_fetch("warpbook", *path.split("/"), params=query)
    except HTTPClientError as refusal:
        return refusal.code
    return answer.code


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("history/span", {}),
        ("receipt", {"to_ms": "1.7e12"}),
        ("history/figure", {"device": "host"}),
        ("history/detail", {"device": "host", "metrics": "cpu_ratio"}),
        ("history/export", {"format": "csv"}),
    ],
)
async def test_a_century_costs_what_is_held_of_it(
    connect, jp_fetch, path: str, more: dict
) -> None:
    """At 4c6eb8b a receipt of it was a MemoryError, or took all there was."""
    client = await connect()
    await client.subscribe()
    await client.next("frame")
    device = next(
        device for device in (await described(jp_fetch)) if device["id"] == "host"
    )
    metric = device["metrics"][0]["name"]
    more = {k: metric if k == "metrics" else v for k, v in more.items()}
    answer = await jp_fetch(
        "warpbook", "api", "v1", *path.split("/"), params={**CENTURY, **more}
    )
    assert answer.code == 200


async def described(jp_fetch) -> list[dict]:
    answer = await jp_fetch("warpbook", "api", "v1", "capabilities")
    return json.loads(answer.body)["devices"]


async def test_a_span_without_a_length_is_refused(jp_fetch, ingest) -> None:
    """5e-324 ms is the least number that there is; divided by, it is 0."""
    query = {"from_ms": "0", "to_ms": "5e-324"}
    for path in ("history/span", "history/detail", "history/figure"):
        more = {} if path == "history/span" else {"device": "host"}
        more |= {"metrics": "cpu_ratio"} if path == "history/detail" else {}
        assert await status(jp_fetch, f"api/v1/{path}", {**query, **more}) == 400
    assert (await ingest("/v1/span?from_ms=0&to_ms=5e-324")).code == 400


async def test_the_ingest_answers_a_century_and_no_deep_nest(ingest) -> None:
    answer = await ingest("/v1/span?from_ms=0&to_ms=4.1e12")
    assert answer.code == 200
    for path in ("/v1/reports", "/v1/cells", "/v1/watch", "/v1/out-of-memory"):
        deep = await ingest(path, b'{"protocol":' + b"[" * 15_000)
        assert deep.code == 400, path
        bad = await ingest(path, b'{"protocol":1,"kernel_id":"\xff\xfe"}')
        assert bad.code == 400, path


async def test_a_message_of_the_stream_that_is_no_text_is_refused(connect) -> None:
    client = await connect()
    await client.next("hello")
    for message in (b"\xff\xfe", b'{"type":"\xff"}', "[" * 4000, '{"type":1}'):
        await client.send(message)
        assert (await client.next("error"))["code"] == "garbage"
    await client.subscribe()
    await client.next("frame")


def test_joules_of_a_century_are_those_of_what_was_read() -> None:
    device = Device(
        "gpu:a",
        "gpu",
        "H200",
        0,
        "live",
        (Metric("power_watts", "watts", "Power"),),
        {"compute_capability": "9.0"},
    )
    ends_ms = 1.8e12 + np.arange(0.0, 60_000, 100)
    table = np.full((len(ends_ms), 1), 250.0)
    reasons = np.full((len(ends_ms), 0), np.nan)
    readings = Readings(ends_ms - 100, ends_ms, table, table, table, reasons)
    power = Power(device, readings)
    assert power.joules(0.0, 4.1e12) is None, "most of it was not seen"
    assert power.joules(1.8e12, 1.8e12 + 59_000) == pytest.approx(250 * 59, rel=0.02)
