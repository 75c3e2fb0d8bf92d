"""Service, hub and grader are killed: nothing acknowledged is lost or graded twice."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil
import pytest
import requests

from tests.hub.postgres import PostgresServer
from tests.hub.service import class_hub as class_hubs
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    ROSTER,
    SUBMIT,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)
from tests.hub.service.test_live import connect, hear
from tests.programs import answers, wait_for


def is_up(hub: ClassHub) -> bool | None:
    return answers(f"{hub.service_url}health") and answers(f"{hub.url}hub/health")


def is_ours(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "warpbook" in " ".join(process.cmdline())
    return False


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_kills_lose_nothing(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    prepared = {"sqlite": bool, "postgres": postgres.use_for}
    monkeypatch.setattr(class_hubs, "prepare", prepared[kind])
    with class_hub(tmp_path) as hub:
        has_file = (hub.folder / "course" / "hub.db").exists()
        assert has_file == (kind == "sqlite")
        grace, ada = (Visitor(hub, name).log_in() for name in ("grace", "ada"))
        grace.done(f"courses/{COURSE}/roster", {"csv": ROSTER})
        lab = publish(grace, int(time.time() * 1000))
        ada_token = Visitor(hub, token=ada.token(SUBMIT))
        path = f"courses/{COURSE}/labs/{lab}/submissions"
        receipts = []
        kills = (("warpbook_hub.grader",), ("warpbook_hub.service",), ("jupyterhub",))
        for number, words in enumerate(kills):
            body = {
                "source": f"{GOOD.read_text()}\n// {number}",
                "request": f"number-{number}",
                "replace": True,
            }
            receipts.append((body, ada_token.done(path, body)))
            service = hub.process("warpbook_hub.service")
            hub.kill(*words)
            if words == ("jupyterhub",):
                # graders and receipts do not wait for the hub
                assert service is not None
                assert requests.get(f"{hub.inner_url}health", timeout=60).ok
                assert ada_token.done(path, body) == receipts[-1][1]
            wait_for("the hub once more", lambda: is_up(hub))
        for body, receipt in receipts:
            # an answer that was lost is asked for again
            assert ada_token.done(path, body) == receipt

        def graded() -> list[dict] | None:
            states = ada_token.get(path).json()
            is_over = {"graded", "replaced"}
            return states if all(one["state"] in is_over for one in states) else None

        states = wait_for("the results", graded, 120)
        assert [one["receipt"] for one in states] == [it for _, it in receipts]
        assert states[-1]["result"]["facts"]["verdict"] == "right"
        for receipt in (it for _, it in receipts):
            of = f"courses/{COURSE}/submissions/{receipt['submission']}/evidence"
            assert len(ada_token.get(of).json()["results"]) <= 1
        # who was logged in still is, and their page still works
        assert ada.post(path, receipts[0][0]).status_code == 201
        # a page of the class that was open meanwhile connects again, and has the class
        page = connect(grace, lab)
        people = {row["username"] for row in hear(page, "rows")["rows"]}
        page.close()
        assert {"ada", "bob"} <= people
        children = psutil.Process(hub.supervisor.pid).children(recursive=True)
        ours = [child for child in children if is_ours(child)]
        hub.supervisor.kill()
        assert psutil.wait_procs(ours, 120)[1] == []
