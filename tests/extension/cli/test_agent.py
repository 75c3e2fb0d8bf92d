"""`warpbook agent` as a person and as Prometheus meet it."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.programs import free_port
from tests.promtool import check_metrics
from tests.stub_nvml import StubNvml


@pytest.fixture
def agent(stub_nvml: StubNvml) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command on one stub H200, and its address."""
    port = free_port()
    command = [sys.executable, "-m", "warpbook.cli.main", "agent", f"--port={port}"]
    command.append("--dcgm-aliases")
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, **stub_nvml.env}, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "Serving" in line
    yield process, f"http://127.0.0.1:{port}/metrics"
    process.kill()
    process.wait()
    process.stdout.close()


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def scrape(url: str) -> dict[str, float]:
    families = text_string_to_metric_families(page(url))
    return {s.name: s.value for f in families for s in f.samples}


def test_it_serves_the_gpus_and_ends_when_asked(agent, stub_nvml: StubNvml) -> None:
    process, url = agent
    opened = stub_nvml.calls()
    time.sleep(0.5)
    assert stub_nvml.calls() == opened, "nobody scraped, and it reads"
    assert scrape(url)["warpbook_last_collect_success"] == 0
    deadline_s = time.monotonic() + 60
    while "warpbook_gpu_sm_active_ratio" not in (values := scrape(url)):
        assert time.monotonic() < deadline_s, values
        time.sleep(0.1)
    assert values["warpbook_gpu_power_watts"] > 0
    assert values["DCGM_FI_DEV_POWER_USAGE"] == values["warpbook_gpu_power_watts"]
    # a label of DCGM's own that the checker does not like
    check_metrics(page(url).replace("modelName=", "model_name="))
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0


def test_metrics_are_at_one_path(agent, stub_nvml: StubNvml) -> None:
    _, url = agent
    root = url.removesuffix("metrics")
    opened = stub_nvml.calls()
    assert page(root) == "warpbook agent: the metrics are at /metrics.\n"
    with pytest.raises(urllib.error.HTTPError) as refused:
        page(f"{root}metricsx")
    refused.value.close()
    assert refused.value.code == 404
    time.sleep(0.5)
    assert stub_nvml.calls() == opened, "that was no scrape"
    assert "warpbook_last_collect_success" in page(f"{url}?a=b")


def test_a_port_that_is_taken_is_told_in_a_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "warpbook.cli.main", "agent"]
        done = subprocess.run(
            [*command, f"--port={port}"], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr
