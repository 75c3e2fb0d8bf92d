"""What the disk does not take is answered so, and handed in until it does."""

import resource
import time
from pathlib import Path

import msgspec
import pytest

from tests.extension.server.test_ingest import report
from tests.extension.server.test_records_survive import whose
from tests.extension.server.test_timelines import EVENTS, packed
from tests.programs import wait_for
from tests.server_process import ServerProcess, server
from warpbook.kernel.link.server_link import NotKept, ServerLink
from warpbook.kernel.link.unkept import Unkept
from warpbook.protocol import ENV_INGEST_SECRET, ENV_INGEST_URL, CellReport, CellRun

#: Python would keep the beginning of what it compiles, and no process could import it
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


def limit_files(running: ServerProcess, size_bytes: int) -> None:
    """Have no file of the server's grow beyond a size: the disk is full."""
    of = running.process.pid, resource.RLIMIT_FSIZE
    _, hard = resource.prlimit(*of)
    resource.prlimit(*of, (size_bytes, hard))


def test_a_full_disk_is_said_and_the_kernel_hands_in_again(tmp_path: Path) -> None:
    with server(tmp_path, variables=NO_BYTECODE) as running:
        running.start_kernel()
        view = running.view()
        now_ms = time.time() * 1000
        body = report(
            "r-1",
            started_ms=now_ms - 500,
            ended_ms=now_ms,
            timeline_events=EVENTS,
            **whose(running),
        )
        band = {
            "id": "b-1",
            "kernel_id": running.kernel_id,
            "notebook": "a.ipynb",
            "cell_id": None,
            "execution_count": None,
            "title": "train()",
            "started_ms": now_ms,
            "ended_ms": now_ms,
            "status": "ok",
        }
        limit_files(running, 4096)
        # it is shown all the same, and nobody is told that it is kept
        answer = running.ingest("/v1/reports", body)
        assert (answer.status_code, bool(answer.json()["message"])) == (507, True)
        while view.next("cell_report")["id"] != "r-1":
            pass
        timeline = running.ingest("/v1/reports/r-1/timeline", packed())
        assert timeline.status_code == 507
        assert running.post("warpbook/api/v1/cells", [band]).status_code == 507
        url, secret = running.secrets
        link = ServerLink({ENV_INGEST_URL: url, ENV_INGEST_SECRET: secret})
        unkept = Unkept()
        with pytest.raises(NotKept, match="not kept on disk: .+") as problem:
            link.post(msgspec.convert(body, CellReport))
        assert "hands it in again" in unkept.hold(problem.value)
        with pytest.raises(NotKept) as problem:
            link.post_timeline("r-1", packed())
        unkept.hold(problem.value)
        run = CellRun(
            **whose(running),
            id="c-1",
            notebook="a.ipynb",
            cell_id="c",
            execution_count=1,
            title="train()",
            started_ms=now_ms - 300,
            ended_ms=now_ms,
            status="ok",
        )
        receipt, trouble = link.receipt(run)
        assert receipt.cell.id == "c-1" and trouble is not None
        unkept.hold(trouble)
        limit_files(running, resource.RLIM_INFINITY)

        def is_kept() -> bool | None:
            # what is on disk: memory is not listed
            listed = {record["id"] for record in running.records()}
            return True if {"r-1", "c-1"} <= listed else None

        wait_for("what was held", is_kept)
        running.kill()
    with server(tmp_path, variables=NO_BYTECODE) as running:
        window = running.get("warpbook/api/v1/reports/r-1/timeline").json()
        assert window["rows"][0]["events"] == EVENTS
