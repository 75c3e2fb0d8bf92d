"""What only a busy GPU would tell, said by hand over the real stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import BrowserContext, WebSocketRoute, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import TOUR
from tests.e2e.lab_page import LabPage
from warpbook.protocol import Device, Receipt
from warpbook.server.cells.receipt_view import view_of_receipt

GIB = 2**30
ATTACK = "<img src=x onerror=window.attacked=1>"


@pytest.fixture(scope="module")
def routes() -> list[WebSocketRoute]:
    """The page's stream, which goes on as it is, to say more over it."""
    return []


@pytest.fixture(scope="module")
def page(
    profile: BrowserContext, lab_url: str, routes: list[WebSocketRoute]
) -> Iterator[LabPage]:
    """The dashboard, for all tests of this module."""

    def follow(route: WebSocketRoute) -> None:
        route.connect_to_server()
        routes.append(route)

    with fresh_page(profile) as page:
        page.page.route_web_socket("**/warpbook/api/v1/stream*", follow)
        page.open(lab_url, TOUR)
        page.wait_moving(page.dashboard)
        yield page


def receipt(
    device: str, ended_ms: float, wall_ms: float, watts: float
) -> dict[str, Any]:
    cell = {
        "id": f"run-{wall_ms:.0f}",
        "protocol": 1,
        "kernel_id": "a-kernel-elsewhere",
        "notebook": "train.ipynb",
        "cell_id": "c",
        "execution_count": 7,
        "title": f"train({ATTACK})",
        "started_ms": ended_ms - wall_ms,
        "ended_ms": ended_ms,
        "status": "ok",
        "allocators": [
            {
                "index": 0,
                "uuid": None,
                "allocated_bytes": GIB,
                "reserved_bytes": 2 * GIB,
                "peak_allocated_bytes": 3 * GIB,
                "retries": 0,
            }
        ],
    }
    power = {"mean": watts, "least": watts, "most": watts, "covered_ratio": 1.0}
    span = {
        "device": device,
        "metrics": {"power_watts": power},
        "energy_joules": watts * wall_ms / 1000,
        "energy_basis": "counter",
        "conditions": [],
    }
    return {
        "type": "receipt",
        "cell": cell,
        "wall_ms": wall_ms,
        "devices": [{"span": span, "shared": False, "notes": []}],
        "line": f"{wall_ms / 1000:.1f} s",
        "previous": None,
        "view": None,
    }


def test_a_receipt_stands_beside_the_run_before(
    page: LabPage, routes: list[WebSocketRoute], screenshots: Path
) -> None:
    # more than one, if the page had to connect again
    *_, hello = (message for message in page.received if message["type"] == "hello")
    gpu, now_ms = hello["devices"][0]["id"], hello["time_ms"]
    # the list has only the newest, and the lab is shared
    sent = receipt(gpu, now_ms, 5_000, 690)
    sent["previous"] = receipt(gpu, now_ms - 60_000, 9_000, 300)
    devices = [msgspec.convert(device, Device) for device in hello["devices"]]
    view = view_of_receipt(msgspec.convert(sent, Receipt), devices)
    sent["view"] = msgspec.to_builtins(view)
    routes[-1].send(json.dumps(sent))
    link = page.dashboard.locator(".wb-cells .wb-link", has_text="train(<img")
    page.open_drawer(link.click)
    expect(page.drawer).to_contain_text(f"Receipt: train({ATTACK})")
    expect(page.drawer).to_contain_text("before: 9.00\u00a0s")
    power = page.drawer.locator("tr", has_text="Mean power")
    expect(power.locator("td")).to_have_text(["Mean power", "690\u00a0W", "300\u00a0W"])
    energy = page.drawer.locator("tr", has_text="Energy")
    expect(energy).to_contain_text("3,450\u00a0J, counted by the GPU")
    expect(page.drawer).to_contain_text("Nobody else held memory on it.")
    expect(page.drawer).to_contain_text("3.00\u00a0GiB")
    page.page.screenshot(path=screenshots / "receipt-previous.png")
    assert page.page.evaluate("() => window.attacked") is None


def test_a_cell_out_of_memory_is_told_with_who_held_what(
    page: LabPage, routes: list[WebSocketRoute], screenshots: Path
) -> None:
    # more than one, if the page had to connect again
    *_, hello = (message for message in page.received if message["type"] == "hello")
    holder = {
        "kind": "kernel",
        "name": f"{ATTACK}.ipynb",
        "used_bytes": 90 * GIB,
        "pids": [1],
        "kernel_id": "k",
        "user": None,
        "execution_state": "idle",
        "idle_s": 3600.0,
        "allocated_bytes": None,
        "reserved_bytes": None,
    }
    death = {
        "type": "post_mortem",
        "time_ms": hello["time_ms"],
        "kernel_id": "k2",
        "notebook": "train.ipynb",
        "cell_id": None,
        "device": hello["devices"][0]["id"],
        "asked_bytes": 20 * GIB,
        "holders": {"holders": [holder], "unattributed_bytes": GIB, "notes": []},
        "sentence": "An idle kernel held most of it: restart it.",
    }
    routes[-1].send(json.dumps(death))
    notice = page.dashboard.locator(".wb-notice")
    expect(notice).to_contain_text("train.ipynb ran out of memory on GPU 0.")
    expect(notice).to_contain_text("restart it")
    notice.get_by_role("button", name="Who held what").click()
    expect(page.drawer).to_contain_text("Asked for: 20.0\u00a0GiB.")
    row = page.drawer.locator("tbody tr").first
    expect(row).to_contain_text(ATTACK)
    expect(row).to_contain_text("90.0\u00a0GiB")
    expect(row).to_contain_text("idle")
    page.set_theme("JupyterLab Dark")
    page.page.screenshot(path=screenshots / "post-mortem-dark.png")
    assert page.page.evaluate("() => window.attacked") is None
