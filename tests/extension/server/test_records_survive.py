"""What a view has been shown is there after `kill -9`, a restart, and a bad disk."""

import time
from pathlib import Path

import pytest

from tests.extension.server.test_difference import profiled
from tests.extension.server.test_ingest import report
from tests.extension.server.test_timelines import EVENTS, packed
from tests.programs import wait_for
from tests.server_process import ServerProcess, View, server
from warpbook.protocol import PROTOCOL_VERSION

RULES = """
[built_in.temperature]
for_s = 0
clear_s = 0
"""


def now_ms() -> float:
    return time.time() * 1000


def whose(running: ServerProcess) -> dict:
    return {"protocol": PROTOCOL_VERSION, "kernel_id": running.kernel_id}


def hand_in_report(running: ServerProcess, view: View, number: int) -> tuple[str, str]:
    name = f"r-{number}"
    times = {"started_ms": now_ms() - 500, "ended_ms": now_ms()}
    body = report(name, **times, **whose(running))
    running.ingest_in_background("/v1/reports", body)
    while view.next("cell_report")["id"] != name:
        pass
    return "report", name


def hand_in_cell(running: ServerProcess, view: View, number: int) -> tuple[str, str]:
    name = f"c-{number}"
    body = {
        **whose(running),
        "id": name,
        "notebook": "a.ipynb",
        "cell_id": "c",
        "execution_count": number,
        "title": "train()",
        "started_ms": now_ms() - 300,
        "ended_ms": now_ms(),
        "status": "ok",
    }
    running.ingest_in_background("/v1/cells", body)
    while view.next("receipt")["cell"]["id"] != name:
        pass
    return "receipt", name


def run_out(running: ServerProcess, view: View, number: int) -> tuple[str, str]:
    failed = dict.fromkeys(
        (
            "free_bytes",
            "total_bytes",
            "allocated_bytes",
            "reserved_bytes",
            "device_index",
            "device_uuid",
        )
    )
    body = {
        **whose(running),
        "notebook": "a.ipynb",
        "cell_id": f"oom-{number}",
        "failed": {**failed, "asked_bytes": number},
    }
    running.ingest_in_background("/v1/out-of-memory", body)
    while (message := view.next("post_mortem"))["cell_id"] != f"oom-{number}":
        pass
    return "post_mortem", f"{message['time_ms']:.3f}-{running.kernel_id}"


def grow_hot(running: ServerProcess, view: View, number: int) -> tuple[str, str]:
    """An alert that began after this server did."""
    while True:
        for alert in view.next("alerts")["alerts"]:
            if alert["until_ms"] is None:
                return "alert", alert["id"]


def see_cell(running: ServerProcess, view: View, number: int) -> tuple[str, str]:
    band = {
        "id": f"b_{number}",
        "kernel_id": running.kernel_id,
        "notebook": "a.ipynb",
        "cell_id": None,
        "execution_count": None,
        "title": "train()",
        "started_ms": now_ms(),
        "ended_ms": None,
        "status": "running",
    }
    assert running.post("warpbook/api/v1/cells", [band]).status_code == 204
    return "cell", band["id"]


@pytest.mark.timeout(600)
def test_no_kill_loses_what_a_view_has_seen(tmp_path: Path, make_stub_nvml) -> None:
    stub = make_stub_nvml("h200")
    stub.set(0, temperature_celsius=99)
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    option = f"--WarpbookApp.alert_rules={rules}"
    happenings = (hand_in_report, hand_in_cell, run_out, grow_hot, see_cell)
    seen: list[tuple[str, str]] = []
    for number, happen in enumerate(happenings):
        with server(tmp_path, stub, option) as running:
            for kind, record_id in seen[-1:]:
                running.record(kind, record_id)
            running.start_kernel()
            view = running.view()
            seen.append(happen(running, view, number))
            running.kill()
    with server(tmp_path, stub, option) as running:
        for kind, record_id in seen:
            running.record(kind, record_id)
        # a page that is opened sees the newest, and what was cut off has an end
        view = running.view()
        assert ("report", view.next("cell_report")["id"]) in seen
        assert ("receipt", view.next("receipt")["cell"]["id"]) in seen
        for kind in ("cell", "alert"):
            kept = [
                record
                for record in running.records(kind=kind)
                if (kind, record["id"]) in seen
            ]
            assert len(kept) == 1
            assert all(record["ended_ms"] is not None for record in kept)
        assert {record["status"] for record in running.records(kind="cell")} == {
            "interrupted"
        }


def test_a_report_of_before_the_restart_is_compared_drawn_and_zoomed_into(
    tmp_path: Path,
) -> None:
    with server(tmp_path) as running:
        running.start_kernel()
        before = profiled(
            "before",
            "tiny_kernels",
            now_ms() - 1000,
            timeline_events=EVENTS,
            **whose(running),
        )
        assert running.ingest("/v1/reports", before).status_code == 204
        live = report(
            "live",
            status="running",
            started_ms=now_ms() - 2000,
            ended_ms=now_ms(),
            **whose(running),
        )
        assert running.ingest("/v1/reports", live).status_code == 204
        response = running.ingest("/v1/reports/before/timeline", packed())
        assert response.status_code == 204
        running.kill()
    with server(tmp_path) as running:
        running.start_kernel()
        after = profiled("after", "graph_replay", now_ms(), **whose(running))
        assert running.ingest("/v1/reports", after).status_code == 204
        response = running.get(
            "warpbook/api/v1/reports/after/difference", before="before"
        ).json()
        assert response["sentence"].startswith("82 % less time")
        window = running.get("warpbook/api/v1/reports/before/timeline").json()
        assert window["rows"][0]["events"] == EVENTS
        figure = running.get("warpbook/api/v1/reports/before/figure")
        assert figure.json()["doc"]
        cut_off = running.record("report", "live")
        assert cut_off["status"] == "interrupted"
        assert "ended while this cell ran" in cut_off["notes"][-1]


def test_a_page_that_comes_back_to_a_new_server_gets_what_it_missed(
    tmp_path: Path, make_stub_nvml
) -> None:
    stub = make_stub_nvml("h200")
    since = {"type": "subscribe", "protocol": PROTOCOL_VERSION}
    with server(tmp_path, stub) as running:
        view = running.view()
        view.next("hello")
        view.send(since)
        before = [view.next("frame") for _ in range(30)]
        # what is older than a second is on disk
        running.kill()
    with server(tmp_path, stub) as running:
        view = running.view()
        restarted_ms = view.next("hello")["time_ms"]
        view.send({**since, "since_ms": before[4]["time_ms"]})
        messages = [view.next_of("frame", "gap") for _ in range(40)]
    place = [message["type"] for message in messages].index("gap")
    gap, later = messages[place], messages[place + 1 :]
    assert messages[:5] == before[5:10]
    assert gap["reason"] == "restarted"
    assert gap["from_ms"] == messages[place - 1]["time_ms"]
    # a second, and what a busy machine takes to write it: of frames, ten each second
    lost = [frame for frame in before if frame["time_ms"] > gap["from_ms"]]
    assert len(lost) < 20
    assert gap["to_ms"] <= restarted_ms
    assert {message["type"] for message in later} == {"frame"}
    assert all(message["time_ms"] > gap["to_ms"] for message in later)


def test_two_servers_of_one_user_keep_both_and_end_nothing_of_the_other(
    tmp_path: Path,
) -> None:
    with server(tmp_path) as one, server(tmp_path) as other:
        for running, name in ((one, "one"), (other, "other")):
            running.start_kernel()
            body = report(
                name,
                status="running",
                started_ms=now_ms() - 10,
                ended_ms=now_ms(),
                **whose(running),
            )
            assert running.ingest("/v1/reports", body).status_code == 204
        with server(tmp_path) as third:
            listed = third.records(kind="report")
            assert {record["id"]: record["status"] for record in listed} == {
                "one": "running",
                "other": "running",
            }
            other.kill()
        with server(tmp_path) as fourth:
            # what the other left open is ended once the archive is read
            wanted = {"one": "running", "other": "interrupted"}
            wait_for("its end", lambda: statuses(fourth) == wanted or None)


def statuses(running) -> dict[str, str]:
    records = running.records(kind="report")
    return {record["id"]: record["status"] for record in records}


def test_an_archive_of_a_newer_warpbook_is_left_alone_and_live_goes_on(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "archive"
    with server(tmp_path, None, f"--WarpbookApp.archive_folder={folder}") as running:
        running.start_kernel()
        body = report("r-1", started_ms=now_ms(), ended_ms=now_ms(), **whose(running))
        assert running.ingest("/v1/reports", body).status_code == 204
    path = folder / "archive.db"
    content = bytearray(path.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")  # the format, in SQLite's header
    path.write_bytes(content)
    option = f"--WarpbookApp.archive_folder={folder}"
    with server(tmp_path, None, option, answers=(503,)) as running:
        answer = running.get("warpbook/api/v1/records")
        assert "written by a newer warpbook" in answer.json()["message"]
        running.start_kernel()
        view = running.view()
        view.next("hello")
        later = {**body, "id": "r-2", **whose(running)}
        answer = running.ingest("/v1/reports", later)
        assert answer.status_code == 507
        assert "written by a newer warpbook" in answer.json()["message"]
        assert view.next("cell_report")["id"] == "r-2"
    assert path.read_bytes() == content


def test_a_damaged_archive_is_put_aside_and_what_can_be_read_is_kept(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "archive"
    option = f"--WarpbookApp.archive_folder={folder}"
    with server(tmp_path, None, option) as running:
        running.start_kernel()
        for number in range(120):
            times = {"started_ms": now_ms(), "ended_ms": now_ms()}
            body = report(f"r-{number}", **times, **whose(running))
            assert running.ingest("/v1/reports", body).status_code == 204
        running.process.terminate()
        running.process.wait(60)
    path = folder / "archive.db"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 3 * 4096] = b"\xff" * (3 * 4096)
    path.write_bytes(content)
    with server(tmp_path, None, option, answers=(200, 503)) as running:
        running.start_kernel()
        view = running.view()
        view.next("hello")

        def mended() -> list[dict] | None:
            # whoever reads comes upon the damage, and who writes mends it then
            answer = running.get("warpbook/api/v1/records", kind="report", limit=200)
            for number in range(120):
                running.get(f"warpbook/api/v1/records/report/r-{number}")
            is_aside = list(folder.glob("archive.damaged-*.db"))
            return answer.json()["records"] if is_aside and answer.ok else None

        kept = wait_for("the archive to be mended", mended)
        times = {"started_ms": now_ms(), "ended_ms": now_ms()}
        body = report("later", **times, **whose(running))
        assert running.ingest("/v1/reports", body).status_code == 204
        # the newest that could be read before may come first
        newest = {"r-119", *(record["id"] for record in kept)}
        assert view.next("cell_report")["id"] in {"later", *newest}
        assert running.record("report", "later")
    assert 20 < len(kept) < 120
