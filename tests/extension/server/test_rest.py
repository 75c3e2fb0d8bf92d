"""The plain requests, the figures, and BokehJS from the wheel."""

import json
import subprocess
import sys
import time

import bokeh
import msgspec
import pytest
from tornado.httpclient import HTTPClientError

from warpbook_monitors.machine import this_machine

API = ("warpbook", "api", "v1")


async def refused(code: int, coroutine) -> str:
    with pytest.raises(HTTPClientError) as error:
        await coroutine
    assert error.value.code == code
    return error.value.response.body.decode()


async def test_capabilities_say_what_is_there_and_why_something_is_not(
    jp_fetch,
) -> None:
    answer = json.loads((await jp_fetch(*API, "capabilities")).body)
    assert answer["max_rate_hz"] == 10
    assert answer["bokeh"] == bokeh.__version__
    (nvml,) = [a for a in answer["absences"] if a["what"] == "NVML"]
    assert nvml["reason"] == "no_library"
    assert nvml["message"]
    assert nvml["remedy"]
    # by which a page knows a kernel that runs elsewhere
    assert answer["machine"] == msgspec.to_builtins(this_machine())


async def test_state_wakes_the_sampler_and_lets_it_rest_again(jp_fetch) -> None:
    began_ms = time.time() * 1000
    share = None
    # it needs a second look, for which a busy machine may not have had the time
    while share is None:
        answer = json.loads((await jp_fetch(*API, "state")).body)
        if answer["frame"]:
            host = [d["kind"] for d in answer["devices"]].index("host")
            values = answer["frame"]["readings"][host]["values"]
            share = values[0] if values else None
    assert 0 <= share <= 1
    assert answer["frame"]["time_ms"] >= began_ms


@pytest.mark.parametrize("route", ["capabilities", "state", "stream"])
async def test_nothing_is_told_without_a_token(jp_fetch, route) -> None:
    await refused(403, jp_fetch(*API, route, headers={"Authorization": ""}))


async def test_a_span_of_history_is_a_bokeh_figure(jp_fetch, connect) -> None:
    client = await connect()
    hello = await client.next("hello")
    await client.subscribe()
    frames = [await client.next("frame") for _ in range(6)]
    gpu = hello["devices"][0]
    params = {
        "device": gpu["id"],
        "from_ms": str(frames[0]["time_ms"]),
        "to_ms": str(frames[-1]["time_ms"]),
        "theme": "dark",
    }
    response = await jp_fetch(*API, "history", "figure", params=params)
    item = json.loads(response.body)
    assert item["version"] == bokeh.__version__
    text = response.body.decode()
    assert "REPLAY h200.jsonl.gz" in text
    assert "SM active" in text


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"device": "host", "from_ms": "a", "to_ms": "1"}, 400),
        ({"device": "host", "from_ms": "nan", "to_ms": "1"}, 400),
        ({"device": "host", "from_ms": "2", "to_ms": "1"}, 400),
        ({"device": "gpu:nowhere", "from_ms": "1", "to_ms": "2"}, 404),
        ({"from_ms": "1", "to_ms": "2"}, 400),
    ],
)
async def test_a_wrong_span_is_refused(jp_fetch, params, code) -> None:
    await refused(code, jp_fetch(*API, "history", "figure", params=params))


async def test_an_empty_span_is_an_empty_figure(jp_fetch) -> None:
    params = {"device": "host", "from_ms": "1", "to_ms": "2"}
    response = await jp_fetch(*API, "history", "figure", params=params)
    assert json.loads(response.body)["root_id"]


async def test_bokehjs_comes_from_the_installed_wheel(jp_fetch) -> None:
    body = (await jp_fetch("warpbook", "bokehjs", "bokeh.min.js")).body
    assert bokeh.__version__.encode() in body
    await refused(404, jp_fetch("warpbook", "bokehjs", "..%2F..%2F__init__.py"))


def test_loading_the_server_part_imports_neither_torch_nor_bokeh_nor_nvml() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import warpbook.server.app, warpbook\n"
        "warpbook._jupyter_server_extension_points()\n"
        "print(sorted({'torch', 'bokeh', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
