"""`GET api/v1/reports/ID/checklist`: what a report answers to the checklist."""

import json
from pathlib import Path

import msgspec
import pytest
from tornado.httpclient import HTTPClientError

from tests.extension.server.test_difference import profiled
from warpbook_profiler.checklist.view import view_of_checklist
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.techniques.registry import checklist

PAGE = Path(__file__).parents[3] / "frontend" / "src" / "dashboard"


@pytest.fixture
def answers(jp_fetch):
    """Ask for a report's checklist."""

    async def answers(report_id: str) -> dict:
        path = ("warpbook", "api", "v1", "reports", report_id, "checklist")
        return json.loads((await jp_fetch(*path)).body)

    return answers


def profile_of(report: dict) -> CellProfile:
    return msgspec.convert(report["profile"], CellProfile)


def plain(profile: CellProfile, source: str | None = None) -> dict:
    """What the command line draws, too."""
    view = view_of_checklist(checklist(profile, source))
    return json.loads(msgspec.json.encode(view))


async def test_without_its_code_a_profile_is_judged_when_it_is_asked(
    ingest, answers
) -> None:
    report = profiled("r-1", "train_fp32", 1_000.0)
    await ingest("/v1/reports", report)
    given = await answers("r-1")
    assert given == plain(profile_of(report))
    assert [group["answer"] for group in given["groups"]] == [
        *("no", "yes", "unknown", "not applicable")
    ]
    (missing, *_) = given["groups"]
    entries = {
        item["name"]: (entry, item)
        for entry in missing["entries"]
        for item in entry["items"]
    }
    entry, item = entries["mixed-precision"]
    assert "instead of about 14.8 ms" in entry["advice"]
    assert item["lab"] == "mixed-precision"
    with pytest.raises(HTTPClientError, match="404"):
        await answers("r-2")


async def test_what_the_kernel_answered_is_kept_and_not_in_the_stream(
    ingest, answers, connect, jp_fetch
) -> None:
    client = await connect()
    await client.next("hello")
    report = profiled("r-1", "train_fp32", 1_000.0)
    source = "loss = model(x)\nopt.zero_grad(set_to_none=False)\n"
    known = checklist(profile_of(report), source)
    gone = [msgspec.structs.replace(line, lab="gone") for line in known.lines]
    known = msgspec.structs.replace(known, lines=tuple(gone))
    report["checklist"] = json.loads(msgspec.json.encode(known))
    await ingest("/v1/reports", report)
    assert await answers("r-1") == plain(profile_of(report), source)
    assert (await client.next("cell_report"))["checklist"] is None
    page = await jp_fetch("warpbook", "api", "v1", "reports", "r-1", "page")
    assert "The code passes set_to_none=False (line 2)." in page.body.decode()


async def test_answers_of_a_kernel_are_text_and_no_more_than_a_list(
    ingest, jp_fetch
) -> None:
    report = profiled("r-1", "train_fp32", 1_000.0)
    known = checklist(profile_of(report))
    attack = "<script>alert(1)</script>"
    lying = msgspec.structs.replace(known.lines[0], question=attack, evidence=attack)
    lines = [json.loads(msgspec.json.encode(lying))]
    report["checklist"] = {"summary": attack, "lines": lines}
    await ingest("/v1/reports", report)
    page = await jp_fetch("warpbook", "api", "v1", "reports", "r-1", "page")
    assert b"<script" not in page.body and b"&lt;script&gt;" in page.body
    report["checklist"] = {"summary": "", "lines": lines * 101}
    assert (await ingest("/v1/reports", report)).code == 400


def test_every_question_can_be_translated() -> None:
    words = (PAGE / "parts" / "server_words.ts").read_text()
    for group in plain(profile_of(profiled("r-1", "train_fp32", 1_000.0)))["groups"]:
        assert f"mark('{group['title']}')" in words
        for entry in group["entries"]:
            for item in entry["items"]:
                assert f"'{item['question']}'" in words
