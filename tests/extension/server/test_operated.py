"""What a hub, Kubernetes and an administrator need: probes, an end, and logs."""

import json
import signal
import threading
from pathlib import Path

import pytest
import requests
from tornado.httpclient import HTTPClientError

from tests.extension.server.test_ingest import report
from tests.programs import wait_for
from tests.server_process import TOKEN, ServerProcess, server
from tests.stub_nvml import StubNvml
from warpbook.protocol import PROTOCOL_VERSION

PROBES = "warpbook/api/v1/"


def whose(running: ServerProcess) -> dict:
    return {"protocol": PROTOCOL_VERSION, "kernel_id": running.kernel_id}


def test_probes_need_no_credentials_and_tell_nothing_else(tmp_path: Path) -> None:
    option = "--WarpbookApp.archive_folder=/proc/nowhere"
    with server(tmp_path, None, option, answers=(200, 503)) as running:

        def probe(name: str, **headers: str) -> dict:
            answer = requests.get(
                f"{running.url}/{PROBES}{name}", headers=headers, timeout=60
            )
            assert answer.status_code == 200
            assert len(answer.content) < 1000
            return answer.json()

        assert probe("health") == {"healthy": True}
        # a disk that can't be written stops nobody, and is told
        problem = wait_for("it", lambda: probe("ready")["problems"].get("archive"))
        assert problem == "stopped", "paths and processes are nobody's business"
        for token, is_told in ((TOKEN, True), ("wrong", False)):
            problems = probe("ready", Authorization=f"token {token}")["problems"]
            assert ("/proc/nowhere" in problems["archive"]) is is_told


async def test_a_server_that_stops_takes_no_new_work(
    jp_fetch, jp_serverapp, connect, ingest
) -> None:
    (application,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    client = await connect()
    await client.next("hello")
    application._readiness.is_draining = True
    refusals = []
    for path in ("state", "history/span", "ready"):
        with pytest.raises(HTTPClientError) as refusal:
            await jp_fetch("warpbook", "api", "v1", *path.split("/"))
        refusals.append(refusal.value)
    with pytest.raises(HTTPClientError) as refusal:
        await connect()
    refusals.append(refusal.value)
    assert [refused.code for refused in refusals] == [503] * 4
    assert refusals[0].response.headers["Retry-After"]
    assert (await jp_fetch("warpbook", "api", "v1", "health")).code == 200
    handed_in = await ingest("/v1/reports", report())
    assert handed_in.code == 503 and "stopping" in handed_in.body.decode()
    application._readiness.is_draining = False


@pytest.mark.parametrize("hangs", [False, True])
def test_sigterm_ends_the_server_and_keeps_what_was_handed_in(
    tmp_path: Path, stub_nvml: StubNvml, hangs: bool
) -> None:
    """Also with a driver that hangs, and a view that never reads."""
    with server(tmp_path, stub_nvml) as running:
        running.start_kernel()
        view = running.view()
        view.next("hello")
        view.send({"type": "subscribe", "protocol": PROTOCOL_VERSION, "rate_hz": 10})
        last_ms = view.next("frame")["time_ms"]
        if hangs:
            stub_nvml.fault("nvmlDeviceGetPowerUsage", delay_ms=3_600_000)
        answers = []
        body = report("last", started_ms=last_ms, ended_ms=last_ms, **whose(running))
        hand_in = threading.Thread(
            target=lambda: answers.append(running.ingest("/v1/reports", body))
        )
        hand_in.start()
        hand_in.join(60)
        running.process.send_signal(signal.SIGTERM)
        # a process that waits for a thread that hangs would never end
        running.process.wait(60)
        assert answers[0].status_code == 204
    with server(tmp_path) as again:
        assert again.record("report", "last")["id"] == "last"
        span = again.get(
            f"{PROBES}history/span", from_ms=last_ms - 60_000, to_ms=last_ms
        ).json()
        assert span["to_ms"] == last_ms


def test_log_lines_are_json_with_a_request_id_and_no_token(tmp_path: Path) -> None:
    with server(tmp_path, None, "--WarpbookApp.json_logs=True") as running:
        refused = requests.get(
            f"{running.url}/{PROBES}history/span",
            params={"from_ms": "nan", "to_ms": "\x1b[31m\n", "token": TOKEN},
            headers={"X-Request-Id": "from-a-proxy.1"},
            timeout=60,
        )
        assert refused.status_code == 400
        assert refused.headers["X-Request-Id"] == "from-a-proxy.1"
        odd = requests.get(
            f"{running.url}/{PROBES}reports/no-such-report/figure",
            params={"token": TOKEN},
            headers={"X-Request-Id": "no plain id"},
            timeout=60,
        )
        assert odd.status_code == 404
        assert odd.headers["X-Request-Id"] != "no plain id"
        encoded = {"caller%20text%2Fhere/more": 404, "caller%FF%FE": 400}
        for number, (path, status) in enumerate(encoded.items()):
            refused = requests.get(
                f"{running.url}/{PROBES}records/report/{path}",
                headers={
                    "X-Request-Id": f"e{number}",
                    "Authorization": f"token {TOKEN}",
                },
                timeout=60,
            )
            assert refused.status_code == status
        # the last line may come after its answer
        log = tmp_path / "server.log"
        wait_for("the last line", lambda: '"e1"' in log.read_text() or None)
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    of_requests = {
        line["request_id"]: line
        for line in lines
        if line["logger"].endswith("requests")
    }
    line = of_requests["from-a-proxy.1"]
    assert line["route"] == "/warpbook/api/v1/history/span" and line["status"] == 400
    other = of_requests[odd.headers["X-Request-Id"]]
    assert other["route"] == "/warpbook/api/v1/reports/*/figure"
    for number, route in enumerate(("records/*/*", "records/report/*")):
        assert of_requests[f"e{number}"]["route"] == f"/warpbook/api/v1/{route}"
    assert "caller" not in "".join(line["message"] for line in lines)
    ours = [line for line in text.splitlines() if "warpbook/api" in line]
    assert ours and not any(f"token={TOKEN}" in line for line in ours)
    assert "\x1b" not in text
