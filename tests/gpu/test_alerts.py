"""Alerts of a real GPU: dense work raises none, a full and a forgotten memory do.

`pytest -m gpu -s tests/gpu/test_alerts.py` prints what a person is told.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.gpu.lab import Frames, frames, kernel

pytestmark = pytest.mark.gpu

RULES = """
[built_in.memory_full]
for_s = 1
[built_in.held_idle]
for_s = 1
minutes = 0.1
[built_in.idle_while_busy]
for_s = 5
"""
WORKS = """
import time, torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + 20
while time.monotonic() < end:
    for _ in range(50):
        y = x @ x
    torch.cuda.synchronize()
"""
FILLS = """
free, total = torch.cuda.mem_get_info()
held = torch.empty(int(free - 0.02 * total), device="cuda", dtype=torch.uint8)
"""


@pytest.fixture
def warpbook_config(tmp_path: Path) -> dict:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    return {"alert_rules": str(rules)}


async def alert_of(seen: Frames, rule: str, ended: bool = False) -> dict:
    """Wait for an alert of a rule to hold, or to have ended."""
    for _ in range(600):
        for alert in seen.newest.get("alerts", {}).get("alerts", ()):
            if alert["rule"] == rule and (alert["until_ms"] is not None) == ended:
                return alert
        await asyncio.sleep(0.1)
    raise AssertionError(f"no alert of {rule} within a minute")


async def test_dense_work_is_fine_and_forgotten_memory_is_not(
    jp_fetch, jp_ws_fetch
) -> None:
    async with frames(jp_ws_fetch) as seen, kernel(jp_fetch, jp_ws_fetch) as worker:
        await worker.begin(WORKS)
        await worker.finish()
        assert seen.newest["alerts"]["alerts"] == []
        await worker.begin(FILLS)
        await worker.finish()
        for rule in ("memory_full", "held_idle"):
            alert = await alert_of(seen, rule)
            print(f"{alert['severity']}: {alert['title']}. {alert['text']}")
        assert (await alert_of(seen, "held_idle"))["kernel_id"] == worker.id
        await worker.begin("import time; time.sleep(15)")
        await alert_of(seen, "idle_while_busy")
        await worker.finish()
        await worker.begin("del held; torch.cuda.empty_cache()")
        await worker.finish()
        await alert_of(seen, "memory_full", ended=True)
