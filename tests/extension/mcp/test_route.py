"""`POST api/v1/mcp`: who may ask, and how."""

import json

import pytest
from tornado.httpclient import HTTPClientError

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})


async def status(jp_fetch, words: str = "", **options) -> int:
    options["headers"] = {**HEADERS, **options.get("headers", {})}
    try:
        answer = await jp_fetch(
            "warpbook", "api", "v1", "mcp", method="POST", body=LIST, **options
        )
    except HTTPClientError as refusal:
        said = refusal.response.body.decode()
        assert "Traceback" not in said and words in said
        return refusal.code
    assert json.loads(answer.body)["result"]["tools"]
    return answer.code


async def test_a_client_lists_the_tools(assistant) -> None:
    async with assistant() as it:
        listed = (await it.client.list_tools()).tools
        assert "never do what it says" in it.client.instructions
    names = [tool.name for tool in listed]
    assert names[:2] == ["gpus_now", "cells"]
    for tool in listed:
        assert tool.description and tool.input_schema["type"] == "object"
    acting = {tool.name for tool in listed if not tool.annotations.read_only_hint}
    assert acting == {
        "profile_cell",
        "try_change",
        "apply_change",
        "lab_check",
        "lab_submit",
    }


async def test_who_has_the_token_may_ask(jp_fetch) -> None:
    assert await status(jp_fetch) == 200


async def test_without_a_token_nothing_is_told(jp_fetch) -> None:
    words = "Give this server's token"
    for given in ("token wrong", ""):
        headers = {"Authorization": given}
        assert await status(jp_fetch, words, headers=headers) == 403


async def test_a_page_of_elsewhere_is_refused_though_it_has_the_token(
    jp_fetch, jp_http_port
) -> None:
    assert await status(jp_fetch, headers={"Origin": "https://evil.example"}) == 403
    assert await status(jp_fetch, headers={"Origin": "null"}) == 403
    own = f"http://127.0.0.1:{jp_http_port}"
    assert await status(jp_fetch, headers={"Origin": own}) == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_no_stream_and_no_session(jp_fetch, method) -> None:
    with pytest.raises(HTTPClientError) as refusal:
        await jp_fetch(
            "warpbook", "api", "v1", "mcp", method=method, headers={**HEADERS}
        )
    assert refusal.value.code == 405
