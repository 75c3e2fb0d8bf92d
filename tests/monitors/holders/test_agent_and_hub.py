"""The agent that tells a hub: as a process, killed and lied to."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.monitors.holders.agent import (
    Receiver,
    agent,
    process_of,
    token_file,
)
from tests.programs import environment, wait_for
from tests.promtool import check_metrics
from tests.stub_nvml import StubNvml
from warpbook_monitors.holders.node_protocol import GpuShare
from warpbook_monitors.python_path import own_path


@pytest.fixture
def hub() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def options(hub: Receiver, folder: Path) -> list[str]:
    given = ["--hub", hub.url, "--token-file", str(token_file(folder)), "--every", "1"]
    return [*given, "--spool", str(folder / "spool")]


def test_pids_are_told_only_while_the_hub_asks_for_them(
    hub: Receiver, stub_nvml: StubNvml, tmp_path: Path
) -> None:
    with (
        process_of(None) as pid,
        agent(tmp_path, stub_nvml, *options(hub, tmp_path)),
    ):
        stub_nvml.work(0, (pid, 70))

        def pids() -> tuple[int, ...] | None:
            shares = [m.intervals[-1].gpus for m in hub.messages]
            holders = shares[-1][0].holders if shares and shares[-1] else ()
            return holders[0].pids if holders else None

        assert wait_for("a holder", pids) == ()
        # an older hub would refuse a field that it does not know
        assert b"holder" in hub.newest_body and b"pids" not in hub.newest_body
        hub.wants_pids = True
        wait_for("the PID", lambda: pids() == (pid,) or None)
        hub.wants_pids = False
        wait_for("no PID", lambda: pids() == () or None)


def test_a_hub_is_told_and_a_scrape_sees_the_same(
    hub: Receiver, stub_nvml: StubNvml, tmp_path: Path
) -> None:
    with (
        process_of(None, JUPYTERHUB_USER="ada") as pid,
        agent(tmp_path, stub_nvml, *options(hub, tmp_path), "--holders") as (
            process,
            url,
        ),
    ):
        stub_nvml.work(0, (pid, 70))
        stub_nvml.set_gpm(0, SM_UTIL=60)
        joules = iter(range(10_000, 1_000_000, 1000))

        def newest() -> GpuShare | None:
            stub_nvml.set(0, energy_mj=12_000_000 + next(joules))
            shares = [m.intervals[-1].gpus for m in hub.messages]
            gpu = shares[-1][0] if shares and shares[-1] else None
            names = {s.holder.hub_user for s in gpu.holders} if gpu else set()
            is_whole = gpu is not None and gpu.sm_ms and gpu.energy_mj
            return gpu if is_whole and names == {"ada"} else None

        gpu = wait_for("an interval with a holder", newest)
        (share,) = gpu.holders
        assert share.energy_mj == gpu.energy_mj
        assert share.busy_ms == pytest.approx(0.7 * share.held_ms, abs=2)
        assert gpu.sm_ms == pytest.approx(0.6 * gpu.read_ms, rel=0.5)

        def scraped() -> dict[str, Sample] | None:
            """What a scrape sees; a busy machine may just have no reading."""
            text = urllib.request.urlopen(url, timeout=60).read().decode()
            check_metrics(text)
            families = text_string_to_metric_families(text)
            samples = {s.name: s for family in families for s in family.samples}
            return samples if "warpbook_gpu_holder_busy_ratio" in samples else None

        busy = wait_for("a scrape", scraped)["warpbook_gpu_holder_busy_ratio"]
        assert (busy.labels["hub_user"], busy.value) == (
            "ada",
            pytest.approx(0.7, abs=0.01),
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_nothing_is_lost_or_told_of_as_new_whatever_is_killed(
    hub: Receiver, stub_nvml: StubNvml, tmp_path: Path
) -> None:
    hub.status = 503
    with agent(tmp_path, stub_nvml, *options(hub, tmp_path)) as (process, _):
        spool = tmp_path / "spool"

        def has_kept() -> bool | None:
            return spool.exists() and len(spool.read_bytes().splitlines()) >= 2 or None

        wait_for("intervals in the spool", has_kept)
        process.kill()
        process.wait()
    kept = len(spool.read_bytes().splitlines())
    hub.status, hub.loses_answers = 200, True
    with agent(tmp_path, stub_nvml, *options(hub, tmp_path)):
        wait_for("a message", lambda: len(hub.messages) >= 2 or None)
        hub.loses_answers = False
        wait_for("an empty spool", lambda: spool.read_bytes() == b"" or None)
    first = hub.numbers[0][0]
    # what had no answer came again with the number that it had
    assert hub.numbers.count((first, 1)) >= 2
    assert {n for stream, n in hub.numbers if stream == first} == set(
        range(1, kept + 1)
    )
    # the second agent's are another stream's
    assert len({stream for stream, _ in hub.numbers}) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--hub", "http://hub.example.org/"], "https"),
        (["--hub", "ftp://127.0.0.1/"], "no address of a hub"),
        (["--hub", "http://[/"], "no address of a hub"),
        (["--every", "0"], "1 to 60"),
        (["--spool", "spool"], "name one"),
    ],
)
def test_what_can_not_be_is_told_in_a_line(
    tmp_path: Path, given: list[str], words: str
) -> None:
    if "--hub" in given:
        given = [*given, "--token-file", str(token_file(tmp_path))]
    assert words in refused(tmp_path, *given)


def test_a_token_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    path = token_file(tmp_path)
    path.chmod(0o640)
    given = ["--hub", "https://hub.example.org/", "--token-file", str(path)]
    assert "chmod 600" in refused(tmp_path, *given)
    assert "go together" in refused(tmp_path, *given[:2])


def refused(folder: Path, *given: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "warpbook.cli.main", "agent", *given],
        env=environment(PYTHONPATH=own_path()),
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    return done.stderr
