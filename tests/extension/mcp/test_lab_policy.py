"""What a course says of assistants holds for the tools, and each call is listed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.extension.server.test_difference import profiled
from tests.hub.core.test_hub_client import Front
from warpbook import class_hub
from warpbook.ai_calls import ai_log
from warpbook.ai_policy import AiPolicies, LabPolicy
from warpbook.hub_protocol import LabAiPolicy
from warpbook.mcp import lab_policy
from warpbook.mcp.lab_policy import LabRefused, allow
from warpbook.protocol import ActRequest
from warpbook.server.assistants.server_actor import ServerActor
from warpbook.server.consent.acts import Acts
from warpbook.server.stream.kernels import RunningKernel
from warpbook_monitors.plain_text import bounded


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[Front]:
    """A hub that has started this server, whose course says what is set."""
    front = Front()
    thread = threading.Thread(target=front.server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv(class_hub.URL, front.url)
    monkeypatch.setenv(class_hub.SERVER_TOKEN, "token")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(class_hub, "_SILENT_S", 0.0)
    monkeypatch.setattr(lab_policy, "_POLICIES", AiPolicies())
    yield front
    front.server.shutdown()
    thread.join()
    front.server.server_close()


async def lab_report(ingest) -> None:
    """A report of a lab's notebook, and one of another."""
    of_lab = {**profiled("of-lab", "tiny_kernels", 1_000.0)}
    of_lab["notebook"] = "labs/vector-add/vector-add.ipynb"
    await ingest("/v1/reports", of_lab)
    other = {**profiled("other", "graph_replay", 9_000.0), "notebook": "mine.ipynb"}
    await ingest("/v1/reports", other)


async def test_off_refuses_a_labs_reports_and_no_others(
    ingest, assistant, hub, jp_root_dir
) -> None:
    hub.answer = [LabAiPolicy("gpu101", "vector-add", "off")]
    await lab_report(ingest)
    async with assistant() as it:
        for tool in ("report", "kernels", "checklist"):
            words = await it.refused(tool, report="of-lab")
            assert "gpu101" in words and "off" in words
        assert "gpu101" in await it.refused("explain", term="vector-add")
        path = "labs/vector-add/step.pt.trace.json"
        Path(jp_root_dir, path).parent.mkdir(parents=True)
        Path(jp_root_dir, path).touch()
        assert "gpu101" in await it.refused("lines", trace=path)
        assert (await it.ask("report", report="other"))["id"] == "other"
        listed = await it.ask("cells")
        labs = await it.ask("labs", tokens=20_000)
        others = await it.ask("labs", track="memory")
    assert not [row for row in labs["rows"] if "vector-add" in row["lab"]]
    assert "off in their labs: 1." in str(labs["unknown"])
    assert others["rows"] and "unknown" not in others
    assert "vector-add" not in str(listed["rows"])
    assert "off in their labs: 1." in str(listed["unknown"])
    told = ai_log("vector-add", 0)
    assert {call.tool: call.is_refused for call in told.calls} == {
        "report": True,
        "kernels": True,
        "checklist": True,
        "explain": True,
        "lines": True,
    }
    assert all(call.asked_bytes and call.answered_bytes for call in told.calls)
    # the one about another notebook, and the three lists
    assert told.others == 4


@pytest.mark.parametrize(
    "path", ["log/t.json", "log/../t.json", "link.json", "../../vector_add/t.json"]
)
async def test_a_trace_is_the_labs_however_it_is_named(
    assistant, hub, jp_root_dir, path
) -> None:
    hub.answer = [LabAiPolicy("gpu101", "vector-add", "off")]
    folder = Path(jp_root_dir, "labs", "vector-add")
    for place in (folder / "log", Path(jp_root_dir, "vector_add")):
        place.mkdir(parents=True)
        Path(place, "t.json").touch()
    Path(folder, "t.json").touch()
    Path(jp_root_dir, "link.json").symlink_to(folder / "t.json")
    asked = path if path == "link.json" else f"labs/vector-add/{path}"
    async with assistant() as it:
        assert "gpu101" in await it.refused("report", trace=asked)


async def test_a_change_is_not_named_of_a_lab_that_is_off(
    ingest, assistant, hub
) -> None:
    hub.answer = [LabAiPolicy("gpu101", "vector-add", "off")]
    await lab_report(ingest)
    async with assistant() as it:
        words = await it.refused("try_change", report="of-lab", change="none")
    assert "gpu101" in words


async def test_a_notebook_deep_below_a_lab_is_the_labs(
    hub, jp_serverapp, tmp_path
) -> None:
    hub.answer = [LabAiPolicy("gpu101", "vector-add", "off")]
    path = f"labs/vector_add/{'deep/' * 30}cells.ipynb"

    async def kernels():
        return [RunningKernel("k", 1, bounded(path), "idle", 0.0, path)]

    async def may() -> bool:
        return True

    acts = Acts(None, lambda kernel_id: False)
    actor = ServerActor(acts, kernels, tmp_path, "editor", may)
    assert await actor.kernel(path) == "k"
    with pytest.raises(LabRefused, match="gpu101"):
        await actor.act(ActRequest("", "profile_cell", "", "k"), 1)


async def test_a_hub_that_hangs_holds_none_of_the_servers_threads(monkeypatch) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr(
        lab_policy._POLICIES, "of", lambda lab: goes_on.wait(60) and LabPolicy("on")
    )
    asking = [asyncio.create_task(allow("vector-add", "see")) for _ in range(100)]
    await asyncio.sleep(0)
    # before any of them has ended
    assert await asyncio.to_thread(goes_on.is_set) is False
    assert not any(one.done() for one in asking)
    goes_on.set()
    await asyncio.gather(*asking)


async def test_checking_only_shows_reports_and_explains_no_lab(
    ingest, assistant, hub
) -> None:
    hub.answer = [LabAiPolicy("gpu101", "vector-add", "checking")]
    await lab_report(ingest)
    async with assistant() as it:
        assert (await it.ask("report", report="of-lab"))["id"] == "of-lab"
        words = await it.refused("explain", term="vector-add")
        assert "for checking only" in words
        # a lab of no course, and a word that is no lab
        await it.ask("explain", term="tiled-transpose")
        await it.ask("explain", term="launch-bound")
    assert ai_log("vector-add", 0).count == 2
    assert ai_log("tiled-transpose", 0).count == 1


async def test_a_hub_that_is_away_leaves_labs_off_and_the_rest_on(
    ingest, assistant, hub, monkeypatch
) -> None:
    monkeypatch.setenv(class_hub.URL, "http://127.0.0.1:9/")
    await lab_report(ingest)
    async with assistant() as it:
        assert "is not known" in await it.refused("report", report="of-lab")
        assert (await it.ask("report", report="other"))["id"] == "other"
        await it.ask("gpus_now")
