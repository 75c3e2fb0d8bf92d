"""`GET api/v1/trace?path=`: a trace file's report, and what it refuses to read."""

import asyncio
import contextlib
import gzip
import json
import os
import shutil
from pathlib import Path

import psutil
import pytest
from jupyter_server.services.contents.manager import ContentsManager
from tornado.httpclient import HTTPClientError

from tests.extension.server.test_ingest import report
from tests.programs import ROOT

TRACES = ROOT / "tests" / "data" / "traces"
TINY = TRACES / "tiny_kernels.json.gz"


@pytest.fixture
def root(jp_root_dir: Path) -> Path:
    """The folder that the server shows, with a trace in it."""
    shutil.copy(TINY, jp_root_dir / "tiny.pt.trace.json.gz")
    return jp_root_dir


@pytest.fixture
def ask(jp_fetch):
    """Ask for what is below the API."""

    async def ask(route: str, **params):
        answer = await jp_fetch(
            "warpbook", "api", "v1", *route.split("/"), params=params
        )
        return json.loads(answer.body)

    return ask


@pytest.fixture
def refused(jp_fetch):
    """Ask for a file that has no report; give status, the fault's name and words."""

    async def refused(path: str) -> tuple[int, str | None, str]:
        with pytest.raises(HTTPClientError) as refusal:
            await jp_fetch("warpbook", "api", "v1", "trace", params={"path": path})
        answer = json.loads(refusal.value.response.body)
        return refusal.value.code, answer["reason"], answer["message"]

    return refused


async def test_a_trace_has_report_timeline_and_figures(root, ask) -> None:
    answer = await ask("trace", path="tiny.pt.trace.json.gz")
    assert answer["type"] == "cell_report"
    assert answer["profile"]["verdict"]["kind"] == "launch-bound"
    assert answer["title"] == answer["file"] == "tiny.pt.trace.json.gz"
    assert answer["notebook"] is answer["cell_id"] is None
    below = f"reports/{answer['id']}"
    window = await ask(f"{below}/timeline", steps="100")
    assert sum(row["events"] for row in window["rows"]) == answer["timeline_events"]
    assert (await ask(f"{below}/figure", kind="roofline"))["doc"]


def test_the_page_knows_the_folder_and_how_much_is_read(root, jp_serverapp) -> None:
    page = jp_serverapp.web_app.settings["page_config_data"]
    assert page["warpbookRoot"] == str(root)
    assert page["warpbookTraceBytes"] == str(1 << 30)


async def test_a_file_is_read_again_only_if_it_changed(root, ask, monkeypatch) -> None:
    started = []
    start = asyncio.create_subprocess_exec

    async def counted(*command, **options):
        started.append(command)
        return await start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", counted)
    path = root / "tiny.pt.trace.json.gz"
    first, again = await asyncio.gather(
        ask("trace", path=path.name), ask("trace", path=f"/{path.name}")
    )
    assert first == again
    assert len(started) == 1
    shutil.copy(TRACES / "graph_replay.json.gz", path)
    changed = await ask("trace", path=path.name)
    assert changed["id"] != first["id"]
    assert changed["profile"]["wall_ns"] < first["profile"]["wall_ns"]


async def test_who_waits_is_told_how_far_it_is(root, ask) -> None:
    name = "tiny.pt.trace.json.gz"
    report, told = asyncio.ensure_future(ask("trace", path=name)), set()
    while not report.done():
        told.add((await ask("trace/progress", path=f"/{name}"))["stage"])
    assert told & {"Starting to read the trace", "Predicting changes"}
    assert (await report)["title"] == name
    assert (await ask("trace/progress", path=name))["stage"] == ""


async def test_two_files_are_compared(root, ask) -> None:
    shutil.copy(TRACES / "graph_replay.json.gz", root / "graph.json.gz")
    os.utime(root / "tiny.pt.trace.json.gz", (1, 1))
    eager = await ask("trace", path="tiny.pt.trace.json.gz")
    graph = await ask("trace", path="graph.json.gz")
    comparison = await ask(f"reports/{graph['id']}/difference", before=eager["id"])
    assert comparison["sentence"].startswith("82 % less time: ")


async def test_no_other_view_and_no_disk_is_told_of_it(root, ask, connect) -> None:
    await ask("trace", path="tiny.pt.trace.json.gz")
    client = await connect()
    await client.next("hello")
    await client.subscribe()
    while (message := await client.receive())["type"] != "frame":
        assert message["type"] != "cell_report"
    assert (await ask("records", kind="report"))["records"] == []


@pytest.mark.parametrize(
    ("content", "status", "fault", "words"),
    [
        (b"# Notes", 422, "not_a_trace", "Choose a file of "),
        (b'{"cells": []}', 422, "not_a_trace", "no list of events"),
        (b'{"traceEvents": []}', 422, "not_a_trace", "no events of torch.profiler"),
        (gzip.decompress(TINY.read_bytes())[:9_000], 422, "damaged", "record anew"),
        (TINY.read_bytes()[:9_000], 422, "damaged", "end-of-stream"),
        (b"\x1f\x8b\x08\x00garbage", 422, "damaged", "can't be read"),
    ],
)
async def test_a_file_without_a_report_says_why(
    root, refused, content: bytes, status: int, fault: str, words: str
) -> None:
    (root / "t.json").write_bytes(content)
    code, reason, message = await refused("t.json")
    assert (code, reason) == (status, fault)
    assert words in message and str(root) not in message


async def test_only_what_jupyter_itself_shows_is_read(root, refused, tmp_path) -> None:
    outside = tmp_path / "outside.json.gz"
    shutil.copy(TINY, outside)
    (root / ".hidden").mkdir()
    shutil.copy(TINY, root / ".hidden" / "t.json.gz")
    shutil.copy(TINY, root / ".t.json.gz")
    up = os.path.relpath(outside, root)
    for path in (
        *("missing.json.gz", ".t.json.gz", ".hidden/t.json.gz", str(outside), up),
        *(f"x/../{up}", "../" * 20 + str(outside), "tiny.pt.trace.json.gz/..", "\x00"),
    ):
        assert (await refused(path))[0] in (400, 404), path
    (root / "folder").mkdir()
    assert (await refused("folder"))[0] == 400


async def test_a_loop_of_links_is_no_file(root, refused) -> None:
    (root / "a.json").symlink_to("b.json")
    (root / "b.json").symlink_to("a.json")
    for path in ("a.json", "x" * 3900, "a.json/x"):
        assert (await refused(path))[0] in (400, 404), path


async def test_a_pipe_is_refused_and_nobody_waits_for_it(root, refused) -> None:
    os.mkfifo(root / "pipe.json")
    code, reason, message = await refused("pipe.json")
    assert code in (400, 422), (reason, message)


@pytest.mark.parametrize("warpbook_config", [{"trace_megabytes": 1}])
async def test_a_large_file_is_refused_before_it_is_read(root, refused) -> None:
    with (root / "large.json").open("wb") as file:
        file.truncate(2 << 20)
    code, reason, message = await refused("large.json")
    assert (code, reason) == (413, "too_large")
    assert "at most 1 MiB" in message


async def test_a_file_that_takes_too_long_is_given_up(
    root, refused, jp_serverapp
) -> None:
    """No process starts so soon; what reads is gone when the answer is here."""
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    app._trace_files._max_s = 0.01
    with gzip.open(root / "slow.json.gz", "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents": [')
        event = b'{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1},'
        file.write(event * 20_000)
    code, reason, message = await refused("slow.json.gz")
    assert (code, reason) == (504, "too_slow")
    assert "0.01 s" in message
    while any(map(reads_a_file, psutil.Process().children(recursive=True))):
        await asyncio.sleep(0.1)


def reads_a_file(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return "file_profile" in " ".join(process.cmdline())
    return False


async def test_who_is_not_logged_in_or_may_not_read_files_gets_nothing(
    root, jp_fetch, jp_serverapp, refused, monkeypatch
) -> None:
    path = {"path": "tiny.pt.trace.json.gz"}
    with pytest.raises(HTTPClientError, match="403"):
        await jp_fetch(
            *("warpbook", "api", "v1", "trace"),
            params=path,
            headers={"Authorization": "token wrong"},
        )
    monkeypatch.setattr(
        jp_serverapp.authorizer,
        "is_authorized",
        lambda handler, user, action, resource: resource != "contents",
    )
    code, _, message = await refused(path["path"])
    assert code == 403 and "may not read files" in message


async def test_files_that_are_on_no_disk_are_told(
    root, refused, jp_serverapp, monkeypatch
) -> None:
    settings = jp_serverapp.web_app.settings
    monkeypatch.setitem(settings, "contents_manager", ContentsManager())
    code, _, message = await refused("tiny.pt.trace.json.gz")
    assert code == 409 and "warpbook.analyze" in message


async def test_a_kernel_has_no_say_in_files(ingest) -> None:
    answer = await ingest("/v1/reports", report(file="tiny.json"))
    assert answer.code == 400 and b"no file" in answer.body
