"""Who cuts the audit log of a hub is found out: at its start and end, by the doctor."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from tests.hub.core.test_audit_head import cut_tail
from tests.hub.postgres import DEFAULT_DATABASE
from tests.hub.service.class_hub import COURSE, ClassHub, Visitor, class_hub
from warpbook.cli.hub_checks import FOLDER, hub_checks
from warpbook.hub.audit import AuditHead
from warpbook.hub.keeping.kept_head import FILE, kept_head


def doctor(hub: ClassHub, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setenv(FOLDER, str(hub.folder))
    audit_check = {check.what: check for check in hub_checks()}["Hub audit log"]
    return audit_check.state, audit_check.message


def health(hub: ClassHub, number: int = 0) -> dict:
    url = f"{hub.inner_url}health?audit={number}"
    with requests.Session() as session:
        session.trust_env = False
        answer: dict = session.get(url, timeout=60).json()
    return answer


def log_page(hub: ClassHub) -> str:
    return Visitor(hub, "grace").log_in().page(f"courses/{COURSE}/log").text


@pytest.mark.skipif(DEFAULT_DATABASE != "sqlite", reason="it cuts a file")
def test_a_cut_tail_is_noticed_until_somebody_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--cpu-slots", "0")
    with class_hub(tmp_path, *options) as hub:
        grace = Visitor(hub, "grace").log_in()
        grace.done(f"courses/{COURSE}/queue/pause", {"reason": "something to hide"})
        head = AuditHead(**health(hub)["audit"])
        assert head.digest in grace.page(f"courses/{COURSE}/log").text
    # it is kept while the hub ends, where the service has no rights
    assert kept_head(hub.folder / "hub") == head
    assert doctor(hub, monkeypatch)[0] == "ok"
    command_log = tmp_path / "command.log"
    assert "AUDIT LOG" not in command_log.read_text()
    cut_tail(hub.folder / "course" / "hub.db")
    state, words = doctor(hub, monkeypatch)
    assert (state, "last ones were removed" in words) == ("broken", True)
    with class_hub(tmp_path, *options) as hub:
        assert "last ones were removed" in command_log.read_text()
        # the restart has written entries of its own over those that are gone
        assert health(hub, head.number)["audit_entry"]["digest"] != head.digest
        assert "removed" in log_page(hub) and "all of them fit" not in log_page(hub)
    assert kept_head(hub.folder / "hub") == head
    assert doctor(hub, monkeypatch)[0] == "broken"
    (hub.folder / "hub" / FILE).unlink()
    with class_hub(tmp_path, *options) as hub:
        assert "all of them fit" in log_page(hub)
        cut_tail(hub.folder / "course" / "hub.db")
    # while it ran, too
    output = command_log.read_text().rpartition("Open  ")[2]
    assert "AUDIT LOG" in output and str(hub.folder / "hub" / FILE) in output
    assert doctor(hub, monkeypatch)[0] == "broken"
