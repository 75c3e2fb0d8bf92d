"""A hub that grades on a real Ray cluster, from its command to a mark."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.ray.cluster import Cluster, cluster
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
from tests.programs import wait_for
from warpbook.cli.doctor.check import Check
from warpbook_hub.cli.cluster import cluster_check
from warpbook_hub.running.plan import FILE, read_plan

pytestmark = pytest.mark.ray


@pytest.fixture
def nothing_yet(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as begun:
        yield begun


def doctor_says(hub: ClassHub) -> Check:
    return cluster_check(read_plan(hub.folder / FILE))


def doctor_at_last(hub: ClassHub, words: str) -> Check:
    """Ask until a node that has started is known to the head."""

    def said() -> Check | None:
        check = doctor_says(hub)
        return check if words in check.message else None

    return wait_for(words, said, 60)


def graded(ada: Visitor, receipt: dict[str, str]) -> dict[str, Any]:
    """Wait for a submission's mark."""

    def state() -> dict[str, Any] | None:
        answer = ada.get(f"courses/{COURSE}/submissions/{receipt['submission']}").json()
        return answer if answer["state"] == "graded" else None

    return wait_for("the mark", state, 150)


def test_one_command_grades_on_a_cluster_that_comes_later(
    nothing_yet: Cluster, tmp_path: Path
) -> None:
    on_ray = ("--engine", "ray", "--ray-address", nothing_yet.address)
    on_ray += ("--ray-token-file", str(nothing_yet.token_file))
    with class_hub(tmp_path, *on_ray) as hub:
        grace, ada = (Visitor(hub, name).log_in() for name in ("grace", "ada"))
        grace.done(f"courses/{COURSE}/roster", {"csv": ROSTER})
        lab = publish(grace, int(time.time() * 1000))
        ada_token = Visitor(hub, token=ada.token(SUBMIT))
        path = f"courses/{COURSE}/labs/{lab}/submissions"
        receipt = ada_token.done(path, {"source": GOOD.read_text()})
        assert "SUBMISSIONS WAIT" in (tmp_path / "command.log").read_text()
        check = doctor_says(hub)
        assert check.state == "broken" and "--head" in check.message

        nothing_yet.start_head()
        check = doctor_says(hub)
        assert check.state == "broken" and "no node" in check.message
        assert nothing_yet.address in check.remedy
        nothing_yet.start_node(1, 1)
        check = doctor_at_last(hub, "1 CPU slots and no GPUs")
        assert check.state == "absent" and "Add a node" in check.remedy

        state = graded(ada_token, receipt)
        assert state["receipt"] == receipt
        assert state["result"]["facts"]["verdict"] == "right"
        assert state["result"]["points"]["points"] == 10
        queue = f"courses/{COURSE}/queue"
        # what the driver has is reported with its next heartbeat
        wait_for(
            "its slots on the page of the queue",
            lambda: "1 CPU slot, 0 GPUs" in grace.page(queue).text or None,
        )
        # a node with a GPU is added while all runs
        nothing_yet.start_node(2, 1, ("GPU-9",))
        check = doctor_at_last(hub, "2 CPU slots, 1 GPUs")
        assert (
            check.state == "ok" and os.fspath(nothing_yet.token_file) in check.message
        )
        # the supervisor starts the driver anew
        hub.kill("warpbook_hub.grader")
        once_more = {"source": f"{GOOD.read_text()}// 2", "replace": True}
        receipt = ada_token.done(path, once_more)
        assert graded(ada_token, receipt)["result"]["facts"]["verdict"] == "right"
