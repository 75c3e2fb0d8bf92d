"""The agent that serves who holds the GPUs, as a process."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.monitors.holders.agent import agent, process_of
from tests.programs import environment, wait_for
from tests.promtool import assert_answered, board_expressions, check_metrics
from tests.stub_nvml import StubNvml
from warpbook_monitors.python_path import own_path


def test_a_scrape_sees_who_holds_a_gpu_how_busy_and_at_what_energy(
    stub_nvml: StubNvml, tmp_path: Path
) -> None:
    with (
        process_of(None, JUPYTERHUB_USER="ada") as pid,
        agent(tmp_path, stub_nvml, "--holders", "--every", "1") as (process, url),
    ):
        stub_nvml.work(0, (pid, 70))
        joules = iter(range(10_000, 100_000_000, 1000))

        def scraped() -> dict[str, Sample] | None:
            """What a scrape sees, once an interval with ada is over."""
            stub_nvml.set(0, energy_mj=12_000_000 + next(joules))
            try:
                text = urllib.request.urlopen(url, timeout=60).read().decode()
            except OSError:
                return None
            check_metrics(text)
            families = text_string_to_metric_families(text)
            samples = {s.name: s for family in families for s in family.samples}
            busy = samples.get("warpbook_gpu_holder_busy_ratio")
            energy = samples.get("warpbook_gpu_holder_energy_joules_total")
            is_whole = busy and energy and energy.value
            return samples if is_whole and busy.labels["hub_user"] == "ada" else None

        busy = wait_for("a scrape", scraped)["warpbook_gpu_holder_busy_ratio"]
        assert busy.value == pytest.approx(0.7, abs=0.01)
        text = urllib.request.urlopen(url, timeout=60).read().decode()
        # as of one that only holds
        idle = re.sub(r"(holder_busy_ratio\{.*\}) .*", r"\1 0", text)
        ours = [our for our in board_expressions() if "warpbook_gpu_holder_" in our]
        assert_answered(ours, idle)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_who_connects_and_says_nothing_takes_no_more_than_a_share(
    stub_nvml: StubNvml, tmp_path: Path
) -> None:
    with agent(tmp_path, stub_nvml) as (process, url), ExitStack() as held:
        address = urlsplit(url)

        def connected() -> socket.socket | None:
            with suppress(OSError):
                return socket.create_connection((address.hostname, address.port))
            return None

        for _ in range(300):
            silent = held.enter_context(wait_for("the agent", connected))
            with suppress(OSError):
                silent.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert urllib.request.urlopen(url, timeout=60).status == 200

        def few() -> bool | None:
            return psutil.Process(process.pid).num_threads() < 100 or None

        wait_for("an end of most threads", few)


def test_an_interval_that_can_not_be_is_refused_in_a_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "warpbook.cli.main", "agent", "--every", "0"],
        env=environment(PYTHONPATH=own_path()),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "1 to 60" in done.stderr
