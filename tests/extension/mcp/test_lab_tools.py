"""`lab_check` and `lab_submit` through the judge, with a page that is asked."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.extension.server.test_acts import Page
from warpbook.ai_calls import ai_log
from warpbook.ai_policy import LabPolicy
from warpbook.mcp import lab_policy
from warpbook_labs.lab.catalogues import folder_of, read_lab
from warpbook_labs.lab.languages.table import language_of

LAB = "occupancy"
TITLE = "Occupancy is not the goal"


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch) -> None:
    """What is handed in is kept in a folder of this test's."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def asked(assistant, connect):
    """Call a tool with a page that answers; give what the page was sent, too."""

    async def ask(answer: str, tool: str, **arguments):
        page = Page(await connect())
        await page.client.catch_up()
        async with assistant() as it:
            call = asyncio.create_task(it.ask(tool, **arguments))
            request = await page.asked()
            await page.says("shown")
            await page.says(answer)
            return request, await call

    return ask


def source(name: str) -> str:
    return Path(folder_of(LAB), name).read_text()


async def test_a_check_says_what_the_learner_reads(asked) -> None:
    request, said = await asked(
        "allowed", "lab_check", lab=LAB, source=source("starter.py")
    )
    assert (request["lab"], request["source"]) == (TITLE, source("starter.py"))
    assert said["state"] == "done" and said["passed"] is False
    lines = "\n".join(said["rows"])
    assert "failed  shown  resident_blocks" in lines and "hidden" not in lines


async def test_the_persons_own_file_is_checked_where_none_is_given(
    asked, jp_root_dir
) -> None:
    language = language_of(read_lab(Path(folder_of(LAB), "lab.toml")))
    file = jp_root_dir / "labs" / LAB / language.source_name
    file.parent.mkdir(parents=True)
    file.write_text(source("reference.py"))
    request, said = await asked("allowed", "lab_check", lab=LAB)
    assert request["source"] == source("reference.py")
    assert said["passed"] is True


async def test_a_submission_is_kept_and_tells_no_hidden_case(asked, jp_fetch) -> None:
    _, said = await asked("allowed", "lab_submit", lab=LAB, source=source("starter.py"))
    assert said["passed"] is False
    answer = await jp_fetch("warpbook", "api", "v1", "labs", LAB, "cards")
    (card,) = json.loads(answer.body)["cards"]
    assert card["passed"] is False
    assert not any("Call:" in row and "hidden" in row for row in said["rows"])
    # it is listed before it is handed in, and once
    (call,) = ai_log(LAB, 0).calls
    assert (call.tool, call.answered_bytes) == ("lab_submit", None)


async def test_nothing_is_judged_that_was_refused(asked, assistant, jp_fetch) -> None:
    _, said = await asked("refused", "lab_submit", lab=LAB, source="x = 1")
    assert said["state"] == "refused" and "rows" not in said
    answer = await jp_fetch("warpbook", "api", "v1", "labs", LAB, "cards")
    assert json.loads(answer.body)["cards"] == []
    async with assistant() as it:
        words = await it.refused("lab_check", lab="no-such-lab", source="x = 1")
        assert "There is no lab" in words
        words = await it.refused("lab_check", lab=LAB)
        assert "give the source itself" in words
        words = await it.refused("lab_check", lab=LAB, source="x = '\0'")
        assert "NUL character" in words


@pytest.mark.parametrize(
    ("policy", "tool"), [("off", "lab_check"), ("checking", "lab_submit")]
)
async def test_a_course_that_does_not_allow_it_is_asked_before_the_person(
    assistant, monkeypatch, tmp_path, policy, tool
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    of = LabPolicy(policy, "cuda")
    monkeypatch.setattr(lab_policy._POLICIES, "of", lambda lab: of)
    async with assistant() as it:
        words = await it.refused(tool, lab=LAB, source="x = 1")
    assert "not for AI assistants" in words and "cuda" in words
    (call,) = ai_log(LAB, 0).calls
    assert (call.tool, call.is_refused) == (tool, True)
