"""Requests of assistants: who may answer, in what order, and when they end."""

import asyncio

import pytest
from msgspec.structs import replace

from warpbook.mcp.marked import Own
from warpbook.protocol import ActAnswer, ActRequest
from warpbook.server.consent import acts as module
from warpbook.server.consent.acts import MOST_REQUESTS

PROFILE = ActRequest("", "profile_cell", "editor", "kernel", "cell")
CHECK = ActRequest("", "lab_check", "editor", lab="Add", source="def add(): ...")


@pytest.fixture
def acts(jp_serverapp):
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    return app._acts


class Page:
    """A page that says how it stands with what was asked."""

    def __init__(self, client) -> None:
        self.client = client
        self.request: dict = {}

    async def asked(self) -> dict:
        self.request = await self.client.next("act_request")
        return self.request

    async def says(self, state: str, **more) -> None:
        message = {"type": "act_answer", "id": self.request["id"], "state": state}
        await self.client.send(message | more)


@pytest.fixture
def opened(connect):
    async def open_page() -> Page:
        page = Page(await connect())
        # all that a new page is sent has come
        await page.client.catch_up()
        return page

    return open_page


def asking(acts, request=PROFILE, run_s: float = 60) -> asyncio.Task:
    return asyncio.create_task(acts.ask(request, run_s))


async def test_who_gives_up_in_the_moment_in_which_it_is_shown(acts, opened) -> None:
    page = await opened()
    asked = asking(acts)
    request = await page.asked()
    acts.answer(page, ActAnswer(request["id"], "shown"))
    asked.cancel()
    await page.client.next("act_closed")
    assert asked.cancelled()


async def test_a_page_shows_allows_and_does_it(acts, opened) -> None:
    page, other = await opened(), await opened()
    asked = asking(acts)
    request = await page.asked()
    assert request | {"id": ""} == {
        "type": "act_request",
        "id": "",
        "act": "profile_cell",
        "assistant": "editor",
        "kernel_id": "kernel",
        "cell_id": "cell",
        "change": "",
        "lab": "",
        "source": "",
    }
    await other.asked()
    for each in (page, other):
        await each.says("shown")
    await page.says("allowed")
    # the dialog on the other page is of no use any more, and its answer neither
    await other.client.next("act_closed")
    await other.says("done", words="by the other")
    await other.client.next("act_closed")
    await page.says("done", report="r-1", words="Applied.")
    outcome = await asked
    assert (outcome.state, outcome.report) == ("done", "r-1")
    # a page's words may be the cell's, and are marked
    assert outcome.words == "Applied." and not isinstance(outcome.words, Own)
    assert (await page.client.next("act_closed"))["id"] == request["id"]


async def test_nobody_is_asked_without_a_page_or_without_the_notebook(
    acts, opened, monkeypatch
) -> None:
    assert (await acts.ask(PROFILE, 60)).state == "no page"
    monkeypatch.setattr(module, "_SHOWN_S", 0.2)
    page = await opened()
    outcome = await acts.ask(PROFILE, 60)
    assert outcome.state == "not open"
    assert "open it in JupyterLab" in outcome.words
    # what comes too late is told so
    await page.asked()
    await page.client.next("act_closed")
    await page.says("allowed")
    await page.client.next("act_closed")


async def test_a_refusal_holds_for_a_while(acts, opened) -> None:
    page = await opened()
    asked = asking(acts)
    await page.asked()
    await page.says("shown")
    await page.says("refused")
    assert (await asked).state == "refused"
    # the page is not asked again
    assert (await acts.ask(PROFILE, 60)).state == "refused"
    # nor by this about anything else
    asked = asking(acts, CHECK)
    assert (await page.asked())["source"] == CHECK.source
    await page.says("shown")
    await page.says("allowed")
    assert (await asked).state == "allowed"


async def test_a_refusal_ends_all_questions_about_the_same(acts, opened) -> None:
    page = await opened()
    asked = [
        asking(acts, replace(PROFILE, act=act))
        for act in ("profile_cell", "try_change", "apply_change")
    ]
    for _ in asked:
        await page.asked()
        await page.says("shown")
    await page.says("refused")
    assert [(await one).state for one in asked] == ["refused"] * 3
    outcome = await acts.ask(replace(PROFILE, act="try_change"), 60)
    assert outcome.state == "refused"


async def test_a_burst_of_calls_asks_no_more_than_a_few_questions(
    acts, opened, monkeypatch
) -> None:
    page = await opened()
    is_busy = True
    monkeypatch.setattr(acts, "_runs_code", lambda kernel_id: is_busy)
    waiting = [asking(acts) for _ in range(50)]
    done, left = await asyncio.wait(waiting, timeout=0.2)
    assert {one.result().state for one in done} == {"too many"}
    assert len(left) == MOST_REQUESTS
    is_busy = False
    for _ in left:
        await page.asked()
    await page.says("shown")
    await page.says("refused")
    assert {(await one).state for one in left} == {"refused"}


async def test_who_may_only_look_allows_nothing(
    acts, opened, jp_serverapp, monkeypatch
) -> None:
    def may(handler, user, action, resource) -> bool:
        return action == "read"

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", may)
    monkeypatch.setattr(module, "_SHOWN_S", 0.5)
    page = await opened()
    asked = asking(acts, CHECK)
    await page.asked()
    await page.says("shown")
    await page.says("allowed")
    assert (await asked).state == "not open"


async def test_nothing_is_done_that_nobody_allowed(acts, opened, monkeypatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_S", 1.0)
    page, stranger = await opened(), await opened()
    asked = asking(acts)
    stranger.request = await page.asked()
    await page.says("shown")
    await page.says("done", words="without being asked")
    # neither a page that does not show it
    await stranger.says("allowed")
    await stranger.client.next("act_closed")
    # nor one that guesses
    stranger.request = {"id": "guess"}
    await stranger.says("allowed")
    assert (await stranger.client.next("act_closed"))["id"] == "guess"
    assert (await asked).state == "not answered"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["shown"], "Nothing was changed"),
        (["shown", "allowed"], "closed while the cell ran"),
    ],
)
async def test_a_page_that_is_closed_ends_it(
    acts, opened, monkeypatch, said, words
) -> None:
    monkeypatch.setattr(module, "_BACK_S", 0.2)
    page = await opened()
    asked = asking(acts)
    await page.asked()
    for state in said:
        await page.says(state)
    page.client.socket.close()
    outcome = await asked
    assert outcome.state == "page closed"
    assert words in outcome.words


async def test_a_page_whose_connection_comes_back_goes_on(acts, opened) -> None:
    page, other = await opened(), await opened()
    asked = asking(acts)
    request = await page.asked()
    await page.says("shown")
    page.client.socket.close()
    page = await opened()
    page.request = request
    await other.asked()
    await other.says("shown")
    await page.says("shown")
    await page.says("allowed")
    # it has been heard by then
    await other.client.next("act_closed")
    page.client.socket.close()
    page = await opened()
    page.request = request
    await page.says("shown")
    await page.says("done", report="r-1")
    assert (await asked).report == "r-1"


async def test_what_takes_longer_goes_on_by_itself(acts, opened) -> None:
    page = await opened()
    asked = asking(acts, run_s=0.2)
    await page.asked()
    await page.says("shown")
    await page.says("allowed")
    assert (await asked).state == "still running"


async def test_a_call_that_is_given_up_closes_its_question(acts, opened) -> None:
    page = await opened()
    asked = asking(acts)
    request = await page.asked()
    asked.cancel()
    assert (await page.client.next("act_closed"))["id"] == request["id"]


async def test_a_busy_kernel_and_too_many_questions_are_told(
    acts, opened, monkeypatch
) -> None:
    page = await opened()
    waiting = [asking(acts, CHECK) for _ in range(MOST_REQUESTS)]
    for _ in waiting:
        await page.asked()
    assert (await acts.ask(CHECK, 60)).state == "too many"
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    monkeypatch.setattr(module, "_IDLE_S", 0.0)
    monkeypatch.setattr(acts, "_runs_code", lambda kernel_id: kernel_id == "kernel")
    outcome = await acts.ask(PROFILE, 60)
    assert outcome.state == "busy"
    assert "gpus_now" in outcome.words


@pytest.mark.parametrize(
    "wrong", [{"state": "yes"}, {"words": "x" * 501}, {"report": "../x"}, {"more": 1}]
)
async def test_an_answer_of_another_form_is_refused(acts, opened, wrong) -> None:
    page = await opened()
    asked = asking(acts)
    await page.asked()
    await page.says("shown")
    await page.says(**({"state": "allowed"} | wrong))
    assert (await page.client.next("error"))["code"] == "garbage"
    await page.says("refused")
    assert (await asked).state == "refused"
