"""The agent's word on who holds a GPU: an account that works, and one that only holds.

pytest -m gpu -s tests/gpu/test_holders.py

As root, for processes of other accounts.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.programs import environment, free_port, python_path, running, wait_for

pytestmark = pytest.mark.gpu

WORKER, IDLER = "daemon", "games"
HOLD = """
import sys, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("ready", flush=True)
while sys.argv[1] == "works":
    a @ a
    torch.cuda.synchronize()
time.sleep(600)
"""


@contextlib.contextmanager
def holder(account: str, does: str) -> Iterator[None]:
    """Run a process of an account that has memory of the GPU."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, does],
        user=account,
        group=pwd.getpwnam(account).pw_gid,
        extra_groups=[],
        env={**os.environ, "HOME": "/tmp", "JUPYTERHUB_USER": f"{account}-claims"},
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        # its pipe, too, is closed
        process.communicate()


def test_who_works_and_who_only_holds(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "warpbook.cli.main", "agent", "--every", "5"]
    command += [f"--port={port}", "--holders"]
    env = environment(PYTHONPATH=python_path(), HOME=str(tmp_path))
    url = f"http://127.0.0.1:{port}/metrics"

    def both() -> dict[str, dict[str, Sample]] | None:
        """By account and by name of the metric, once both have used energy."""
        with contextlib.suppress(OSError):
            text = urllib.request.urlopen(url, timeout=60).read().decode()
            by_account: dict[str, dict[str, Sample]] = {WORKER: {}, IDLER: {}}
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    name = sample.name.removeprefix("warpbook_gpu_holder_")
                    if name != sample.name and sample.labels["account"] in by_account:
                        by_account[sample.labels["account"]][name] = sample
            values = [held.get("energy_joules_total") for held in by_account.values()]
            # intervals that both have been there for
            if all(values) and by_account[WORKER]["energy_joules_total"].value > 1000:
                return by_account
        return None

    with holder(WORKER, "works"), holder(IDLER, "waits"):
        with running(command, env, tmp_path / "agent.log"):
            accounts = wait_for("an interval", both, 120)
    print(
        "\n| account | uid | claim | memory MiB | busy | J |\n|---|---|---|---|---|---|"
    )
    for account, held in accounts.items():
        labels = held["processes"].labels
        print(
            f"| {account} | {labels['uid']} | {labels['hub_user']} | "
            f"{held['memory_bytes'].value / 2**20:.0f} | {held['busy_ratio'].value} | "
            f"{held['energy_joules_total'].value} |"
        )
        assert labels["uid"] == str(pwd.getpwnam(account).pw_uid)
        assert labels["hub_user"] == f"{account}-claims"
        assert held["memory_bytes"].value > 8192 * 8192 * 2
    worker, idler = accounts[WORKER], accounts[IDLER]
    assert worker["busy_ratio"].value > 0.5 and idler["busy_ratio"].value == 0
    joules = "energy_joules_total"
    assert worker[joules].value > 10 * idler[joules].value
