"""Calls that nobody makes: each has an answer that fits, or a refusal in words."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extension.server.test_difference import profiled
from warpbook.mcp import answer
from warpbook.mcp.answer import (
    DEFAULT_TOKENS,
    LEAST_TOKENS,
    MOST_TOKENS,
    Answer,
    encoded,
    fitted,
)
from warpbook.mcp.marked import CLOSE, OPEN, mark
from warpbook.mcp.tools import TOOLS

#: of the server; MCP_FUZZ_CALLS=1000 makes a thousand
CALLS = int(os.environ.get("MCP_FUZZ_CALLS", "100"))

NAMES = sorted(
    {name for tool in TOOLS.values() for name in tool.schema()["properties"]}
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=60)
    | st.sampled_from(["r-1", "Kernels", "../../etc/passwd", "llama-3-8b", "1e9"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(NAMES) | st.text(max_size=8), VALUES, max_size=4
)
TEXTS = st.text(max_size=3000)


def sent(value: object) -> bool:
    """Whether JSON can hold it."""
    try:
        json.dumps(value, allow_nan=False).encode()
    except (ValueError, UnicodeEncodeError):
        return False
    return True


async def test_no_call_ends_in_a_traceback(ingest, assistant, caplog) -> None:
    await ingest("/v1/reports", profiled("r-1", "tiny_kernels", 1_000.0))
    calls: list[tuple[str, dict]] = []

    @settings(max_examples=CALLS, database=None)
    @given(st.sampled_from([*TOOLS, "rm"]), ARGUMENTS)
    def collect(tool: str, arguments: dict) -> None:
        if sent(arguments):
            calls.append((tool, arguments))

    collect()
    assert len(calls) > CALLS // 2
    async with assistant() as it:
        for tool, arguments in calls:
            result = await it.client.call_tool(tool, arguments)
            (content,) = result.content
            assert "Traceback" not in content.text
            assert "fault of warpbook" not in content.text, (tool, arguments)
            if not result.is_error:
                most = result.structured_content
                assert len(content.text.encode()) <= 40_000 and most["note"]
    assert not [record for record in caplog.records if record.exc_info]


@given(st.lists(TEXTS, max_size=20), TEXTS, st.integers(500, 2000))
def test_pages_fit_and_leave_out_no_row(
    rows: list[str], title: str, tokens: int
) -> None:
    answer = Answer({"title": title}, rows)
    start, seen = 0, 0
    while True:
        page = fitted(answer, start, tokens)
        assert len(encoded(page).encode(errors="replace")) <= 2 * tokens
        seen += len(page.get("rows", ()))
        if "cursor" not in page:
            break
        assert int(page["cursor"]) > start
        start = int(page["cursor"])
    assert seen == len(rows)


@pytest.mark.parametrize("tokens", [LEAST_TOKENS, DEFAULT_TOKENS])
def test_a_gpu_that_many_hold_fits_and_says_what_is_left_out(tokens: int) -> None:
    holders = [{"name": "python", "pids": [100_000 + at]} for at in range(200)]
    page = fitted(Answer({}, [{"gpu": 0, "holders": holders}]), 0, tokens)
    assert len(encoded(page).encode()) <= 2 * tokens
    (row,) = page["rows"]
    *shown, rest = row["holders"]
    assert rest == f"{200 - len(shown)} more are left out"


def test_only_rows_of_the_page_are_marked(monkeypatch) -> None:
    """It is done on the event loop, where nothing may take long."""
    marked = []
    monkeypatch.setattr(answer, "plain", lambda *value: marked.append(1) or value[0])
    fitted(Answer({}, [["k" * 2000] * 9] * 3000), 0, MOST_TOKENS)
    assert len(marked) < 50


@given(TEXTS)
def test_a_text_ends_its_own_mark_never(text: str) -> None:
    marked = mark(text, 200)
    assert marked[0] == OPEN and marked[-1] == CLOSE
    inner = marked[1:-1]
    assert OPEN not in inner and CLOSE not in inner and len(inner) <= 200
    assert all(letter.isprintable() or letter == "\n" for letter in inner)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_a_schema_says_what_each_argument_is(tool) -> None:
    schema = tool.schema()
    assert schema["additionalProperties"] is False
    for name, described in schema["properties"].items():
        assert described.get("description") or "anyOf" in described, name
