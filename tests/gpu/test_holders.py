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
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitors.holders.agent import Receiver, token_file
from tests.programs import environment, free_port, python_path, running, wait_for
from warpbook_monitors.holders.node_protocol import GpuShare, HolderShare

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
    hub = Receiver()
    command = [sys.executable, "-m", "warpbook.cli.main", "agent", "--every", "5"]
    command += [f"--port={free_port()}", "--hub", hub.url]
    command += ["--token-file", str(token_file(tmp_path))]
    env = environment(PYTHONPATH=python_path(), HOME=str(tmp_path))

    def both() -> tuple[GpuShare, dict[str, HolderShare]] | None:
        for message in reversed(hub.messages):
            for gpu in message.intervals[-1].gpus:
                shares = {share.holder.account: share for share in gpu.holders}
                # an interval that both have been there for
                if {WORKER, IDLER} <= shares.keys() and all(
                    share.held_ms > 4000 for share in shares.values()
                ):
                    return gpu, shares
        return None

    try:
        with holder(WORKER, "works"), holder(IDLER, "waits"):
            with running(command, env, tmp_path / "agent.log"):
                gpu, shares = wait_for("an interval", both, 60)
    finally:
        hub.close()
    print(f"\n{gpu.name}: {gpu.energy_mj} mJ in {gpu.read_ms} ms, SM {gpu.sm_ms} ms")
    print("| account | uid | claim | memory MiB | busy ms | mJ | idle since |")
    print("|---|---|---|---|---|---|---|")
    for account, share in shares.items():
        memory_mib = (share.memory_bytes or 0) >> 20
        print(
            f"| {account} | {share.holder.uid} | {share.holder.hub_user} | "
            f"{memory_mib} | {share.busy_ms} | {share.energy_mj} | "
            f"{share.idle_since_ms} |"
        )
    worker, idler = shares[WORKER], shares[IDLER]
    for account, share in ((WORKER, worker), (IDLER, idler)):
        assert share.holder.uid == pwd.getpwnam(account).pw_uid
        assert share.holder.hub_user == f"{account}-claims"
        assert (share.memory_bytes or 0) > 8192 * 8192 * 2
    assert sum(share.energy_mj or 0 for share in gpu.holders) == gpu.energy_mj
    assert worker.idle_since_ms is None and idler.idle_since_ms is not None
    assert (worker.energy_mj or 0) > 20 * (idler.energy_mj or 0)
