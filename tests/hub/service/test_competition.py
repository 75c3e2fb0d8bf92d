"""A competition from its opening to its final, where a test is the GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.hub.core.course import timed
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    HOUR_MS,
    ROSTER,
    ClassHub,
    Visitor,
    publish,
)
from tests.programs import wait_for
from warpbook.hub_client import HubAway, HubClient
from warpbook.hub_protocol import (
    GRADERS,
    Device,
    Hello,
    JobOrder,
    JobResult,
    LeaseName,
    Receipt,
    Welcome,
    Work,
    WorkRequest,
)

GPU = "GPU-racer"
Answer = TypeVar("Answer", JobOrder, Receipt)


class Racer:
    """A grader that says how fast a source is, and asks again while the hub is away."""

    def __init__(self, hub: ClassHub, token: str) -> None:
        self._client = HubClient(hub.inner_url, token, GRADERS)
        self._client.ask("hello", Welcome, Hello(0, (Device(GPU, "H100"),)))

    def lease(self) -> JobOrder:
        def leased() -> JobOrder | None:
            jobs = self._client.ask("lease", Work, WorkRequest(0, (GPU,))).jobs
            return jobs[0] if jobs else None

        return wait_for("a job on the GPU", lambda: _answered(leased))

    def finish(self, order: JobOrder) -> None:
        middle = 3.0 if "fast" in order.source else 2.0
        result = JobResult(
            LeaseName(order.job, order.fence),
            timed(middle),
            order.lab_digest,
            order.source_digest,
            1000,
        )

        def handed_over() -> Receipt:
            return self._client.ask("result", Receipt, result)

        receipt = wait_for("the hub", lambda: _answered(handed_over))
        assert receipt.is_accepted, receipt.reason


def _answered(ask: Callable[[], Answer | None]) -> Answer | None:
    try:
        return ask()
    except HubAway:
        return None


def test_a_competition_is_opened_frozen_measured_again_and_ended(hub: ClassHub) -> None:
    names = ("grace", "ada", "bob")
    grace, ada, bob = (Visitor(hub, name).log_in() for name in names)
    course = f"courses/{COURSE}"
    grace.done(f"{course}/roster", {"csv": ROSTER})
    opened_ms = int(time.time() * 1000)
    lab = publish(grace, opened_ms)
    without_gpu = "No grader with a GPU takes jobs: nobody gets a time."
    assert without_gpu in grace.page(f"{course}/labs/{lab}/board").text
    opal = Visitor(hub, "opal").log_in(is_staff=True)
    token = opal.done("hub/graders", {"name": "racer"})["token"]
    racer = Racer(hub, token)
    assert without_gpu not in grace.page(f"{course}/labs/{lab}/board").text
    api, page = f"{course}/labs/{lab}/competition", f"{course}/labs/{lab}"
    assert "Competition" not in ada.page(page).text
    assert f"{page}/board" in grace.page(page).text
    grace.done(api, {"freezes_ms": opened_ms + HOUR_MS})
    assert "You are not on the board" in ada.page(f"{page}/board").text
    assert ada.done(f"{api}/join", {"pseudonym": "Warp  Nine"}) == {
        "pseudonym": "Warp Nine"
    }
    assert bob.post(f"{api}/join", {"pseudonym": "warp nine"}).status_code == 409
    bob.done(f"{api}/join", {"pseudonym": "O'Neil"})
    assert "You are on it as <b>Warp Nine</b>" in ada.page(page).text
    for person, word in ((ada, "fast"), (bob, "slow")):
        source = f"// {word} secret\n{GOOD.read_text()}"
        person.done(f"{page}/submissions", {"source": source})
        racer.finish(racer.lease())
    shown = bob.page(f"{page}/board").text
    assert "Warp Nine" in shown
    assert "You are not on the board" not in shown
    assert "O&#x27;Neil" in shown or "O&#39;Neil" in shown
    assert "secret" not in shown
    assert "<td>ada</td>" not in shown
    assert "<td>ada</td>" in grace.page(f"{page}/board").text

    def is_taken() -> bool | None:
        # a busy hub hears of it when it is over
        soon = {"freezes_ms": int(time.time() * 1000) + 2000}
        return grace.post(api, soon).ok or None

    wait_for("a freeze that is still to come", is_taken)

    def frozen() -> bool | None:
        return ada.get(api).json()["phase"] == "frozen" or None

    wait_for("the freeze", frozen)
    assert ada.post(f"{api}/join", {"pseudonym": "another"}).status_code == 409
    # the lab is due, as an instructor says now
    due_ms = int(time.time() * 1000)
    publish(grace, due_ms - HOUR_MS)

    def final_form() -> str | None:
        # on a busy machine a pause of the hub may have moved the date
        _, _, form = grace.page(f"{page}/board").text.partition('name="grader" value="')
        return form.split('"', 1)[0] or None

    where = wait_for("the end of the lab", final_form, 240)
    body = {"grader": where, "device": GPU, "rounds": 3}
    assert ada.post(f"{api}/final", body).status_code == 403
    assert grace.done(f"{api}/final", body)["jobs"] == 6
    racer.finish(racer.lease())
    order = racer.lease()
    # a date that may lie in an outage is moved to a whole minute after it
    hub.wait_for_note(due_ms)
    hub.kill("warpbook_hub.service")
    racer.finish(order)
    for _ in range(4):
        racer.finish(racer.lease())
    assert ada.get(api).json()["final"] is None
    # a busy hub may have paused before that
    wait_for("the end", lambda: grace.post(f"{api}/end").ok or None, 240)
    board = bob.get(api).json()
    ranks = [(one["rank"], one["pseudonym"]) for one in board["final_entries"]]
    assert (board["phase"], ranks) == ("final", [(1, "Warp Nine"), (2, "O'Neil")])
    assert board["final"]["done"] == 6
    assert "Final</h2>" in bob.page(f"{page}/board").text
