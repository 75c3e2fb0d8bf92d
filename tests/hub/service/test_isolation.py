"""Whether learners are kept apart is tried, and not believed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from warpbook_hub.cli.checks import hub_checks
from warpbook_hub.running.isolation import try_all
from warpbook_hub.running.plan import HubPlan, Users, write_plan

SECRETS = ("hub/hub.sqlite", "hub/service_token", "hub/keeper_token", "course/hub.db")


def planned(folder: Path, users: Users = "system") -> HubPlan:
    plan = HubPlan(
        str(folder),
        users,
        "127.0.0.1",
        8000,
        "/",
        "gpu",
        "GPU programming",
        ("grace",),
        ("node", "proxy"),
    )
    for secret in SECRETS:
        file = folder / secret
        file.parent.mkdir(mode=0o700, exist_ok=True, parents=True)
        file.write_text("secret")
        file.chmod(0o644)
    folder.chmod(0o711)
    write_plan(plan)
    return plan


def leaks_of(plan: HubPlan) -> list[str]:
    """What is told of this hub; another one of this machine may be open."""
    return [leak for leak in try_all(plan).leaks if plan.folder in leak]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes other accounts")
def test_other_accounts_are_tried(tmp_path: Path) -> None:
    # pytest's own folders let nobody else in, which would prove nothing
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    plan = planned(tmp_path / "hub")
    assert "nobody" in try_all(plan).accounts
    assert leaks_of(plan) == []
    plan.course_folder.chmod(0o755)
    leaks = leaks_of(plan)
    assert f"nobody can open {plan.course_folder}/hub.db" in leaks
    assert not [leak for leak in leaks if str(plan.hub_folder) in leak]


def test_own_hub_is_open_to_oneself(tmp_path: Path, monkeypatch) -> None:
    """A learner who has the hub's account finds that out."""
    plan = planned(tmp_path / "hub")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert any(leak.endswith("hub.db") for leak in leaks_of(plan))


def test_doctor_calls_a_demo_a_demo(tmp_path: Path, monkeypatch) -> None:
    planned(tmp_path / "hub", "shared")
    monkeypatch.setenv("WARPBOOK_HUB_FOLDER", str(tmp_path / "hub"))
    checks = {check.what: check for check in hub_checks()}
    assert checks["Hub isolation"].state == "absent"
    assert "not isolated" in checks["Hub isolation"].message
    assert "--users system" in checks["Hub isolation"].remedy


def test_doctor_tells_where_no_hub_is(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("WARPBOOK_HUB_FOLDER", str(tmp_path))
    (check,) = hub_checks()
    assert (check.what, check.state) == ("Hub", "absent")
