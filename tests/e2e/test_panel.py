"""The side panel: each GPU now, who holds its memory, and its health."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for
from tests.stub_nvml import LOST, StubNvml

GIB = 1 << 30
#: what JupyterLab has saved as being in front on the right
SAVED_ON_THE_RIGHT = """async () => {
    const { workspaces } = window.jupyterapp.serviceManager;
    const { data } = await workspaces.fetch("default");
    return data["layout-restorer:data"]?.right?.current ?? "";
}"""


@pytest.fixture(scope="module")
def stub(stub_nvml_library, tmp_path_factory: pytest.TempPathFactory) -> StubNvml:
    state = tmp_path_factory.mktemp("stub") / "state"
    stub = StubNvml(stub_nvml_library, state, "h200", "a100", "h200")
    stub.set(2, mig=1)
    stub.make_instance(2, 0, 3, SM_UTIL=40.0)
    return stub


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, stub: StubNvml) -> Lab:
    return Lab(tmp_path_factory.mktemp("panel"), **stub.env)


@pytest.fixture(scope="module")
def live_url(lab: Lab) -> Iterator[str]:
    with lab.serve() as url:
        yield url


def test_an_idle_kernel_that_holds_memory_is_named_opened_and_restarted(
    page: LabPage, lab: Lab, live_url: str, stub: StubNvml, screenshots: Path
) -> None:
    name = "holder.ipynb"
    cells = ["import os\nkept = os.getpid()\nprint(kept)", "kept"]
    page.open(live_url, lab.write_notebook(name, cells))
    page.show_panel()
    held = page.panel.locator(".wb-holder", has_text=name)
    restart = held.get_by_role("button", name=f"Restart kernel of {name}")
    dialog = page.page.get_by_role("dialog")
    tab = page.page.get_by_role("tab", name=name)

    def hold() -> None:
        page.run(0)
        (shown,) = page.cells()[0]["outputs"]
        pid = int(shown["text"])
        stub.hold(0, (pid, 12 * GIB), (os.getpid(), 3 * GIB))
        expect(held).to_contain_text("12.0 GiB")
        expect(held).to_contain_text("idle for")

    def variables_are_lost() -> None:
        stub.hold(0)
        expect(held).to_have_count(0)
        page.wait_idle()
        page.run(1)
        (shown,) = page.cells()[1]["outputs"]
        assert shown["output_type"] == "error", shown

    def close() -> None:
        page.execute("docmanager:save")
        page.execute("application:close")
        expect(tab).to_have_count(0)

    def restart_it() -> None:
        """Say so in the dialog, and wait: a kernel that ends may still be idle."""
        with page.page.expect_response("**/api/kernels/*/restart*") as restarting:
            dialog.get_by_role("button", name="Restart").click()
        assert restarting.value.ok
        expect(dialog).to_have_count(0)

    hold()
    others = page.panel.locator(".wb-holder", has_text="3.00 GiB")
    expect(others).to_contain_text(f"PID {os.getpid()}")
    expect(others.get_by_role("button")).to_have_count(0)
    for theme in ("Light", "Dark"):
        page.set_theme(f"JupyterLab {theme}")
        page.page.wait_for_timeout(500)
        page.page.screenshot(path=screenshots / f"panel-{theme.lower()}.png")
    restart.click()
    expect(dialog).to_contain_text("12.0 GiB")
    expect(dialog).to_contain_text("variables are lost")
    page.page.screenshot(path=screenshots / "panel-restart.png")
    dialog.get_by_role("button", name="Cancel").click()
    page.run(1)
    assert page.cells()[1]["outputs"][0]["output_type"] == "execute_result"
    restart.click()
    restart_it()
    variables_are_lost()

    # a notebook that is closed is opened by the row
    hold()
    close()
    held.get_by_role("button", name=name, exact=True).click()
    expect(tab).to_be_visible()
    page.wait_idle()
    page.run(1)
    assert page.cells()[1]["outputs"][0]["output_type"] == "execute_result"
    # and its kernel is restarted while it is closed; the row goes with the process
    close()
    restart.click()
    restart_it()
    page.execute("docmanager:open", path=name)
    expect(tab).to_be_visible()
    variables_are_lost()


class TestOnePage:
    """What the panel shows, and what settings change in it without a reload."""

    @pytest.fixture(scope="class")
    @classmethod
    def page(cls, profile: BrowserContext, live_url: str) -> Iterator[LabPage]:
        with fresh_page(profile) as page:
            page.open(live_url, TOUR)
            page.show_panel()
            yield page

    def test_each_gpu_and_instance_is_told_in_figures_or_in_words(
        self, page: LabPage, stub: StubNvml
    ) -> None:
        stub.set(0, power_mw=456_000, temperature_celsius=61)
        h200, a100, split, instance = (
            page.panel.locator(".wb-gpu").nth(n) for n in range(4)
        )
        expect(h200).to_contain_text("SM active")
        expect(h200).to_contain_text("456 W of 700 W")
        expect(h200).to_contain_text("61 °C")
        expect(a100).to_contain_text("GPU util. (NVML)")
        expect(split).to_contain_text("GPU 2")
        expect(instance).to_contain_text("MIG 2:")
        expect(instance).to_contain_text("3g.")
        expect(instance).to_contain_text("40 %")
        expect(instance).not_to_contain_text("not reported")
        expect(instance).not_to_contain_text("Power")
        expect(page.status_item).to_contain_text("MIG 2:")
        expect(page.panel.locator(".wb-badge").first).to_have_text("LIVE")
        stub.set(1, rc=LOST)
        expect(a100.get_by_role("status")).to_contain_text("GPU 1: lost")
        stub.set(1, rc=0)
        expect(a100).to_contain_text("GPU util. (NVML)")

    def test_an_alert_and_an_xid_are_told_with_what_to_do(
        self, page: LabPage, stub: StubNvml
    ) -> None:
        health = page.panel.locator(".wb-panel-section", has_text="Health")
        expect(health).to_contain_text("No alerts now.")
        stub.ring(0, 8, 95)
        # once: the alert says all that the event says
        expect(health.get_by_label("Alerts")).to_contain_text("GPU 0, XID 95: Memory")
        expect(health.get_by_label("Events")).to_be_hidden()
        expect(page.panel.locator(".wb-panel-section").first).to_contain_text("Health")
        stub.set(0, memory_used_bytes=139 * GIB)
        expect(health.get_by_label("Alerts")).to_contain_text("memory is almost full")
        stub.set(0, memory_used_bytes=GIB)

    def test_settings_hold_at_once(self, page: LabPage) -> None:
        page.execute("settingeditor:open", query="Warpbook")

        def field(name: str) -> Locator:
            return page.page.locator(f"[id='jp-SettingsEditor-warpbook:plugin_{name}']")

        page.page.locator(".jp-PluginList-entry", has_text="Warpbook").click()

        field("rate_hz").fill("3")
        wait_for(
            "a subscription at the new rate",
            lambda: (
                page.page.wait_for_timeout(100)
                or any(message.get("rate_hz") == 3 for message in page.sent)
                or None
            ),
        )
        field("window_s").fill("120")
        expect(page.dashboard.get_by_label("Time window")).to_have_value("120")
        field("panel").uncheck()
        expect(page.panel).to_have_count(0)
        field("status_bar").uncheck()
        expect(page.status_item).to_be_hidden()
        field("panel").check()
        expect(page.panel).to_be_attached()
        page.show_panel()
        field("status_bar").check()
        expect(page.status_item).to_be_visible()
        # for the tests that come after
        field("rate_hz").fill("10")
        field("window_s").fill("60")
        expect(page.dashboard.get_by_label("Time window")).to_have_value("60")


def test_panel_and_launcher_lead_to_everything(
    page: LabPage, live_url: str, screenshots: Path
) -> None:
    page.open(live_url, TOUR)
    expect(page.dashboard).to_be_visible()
    page.page.locator(".jp-Notebook").click()
    page.page.keyboard.press("Control+Alt+Shift+G")
    expect(page.panel).to_be_visible()
    page.execute("launcher:create")
    tiles = page.page.locator(".jp-LauncherCard")
    expect(tiles.filter(has_text="GPU Tour")).to_be_visible()
    page.page.screenshot(path=screenshots / "launcher.png")
    tiles.filter(has_text="GPU Dashboard").click()
    expect(page.page.get_by_label("Time window")).to_be_focused()
    # a reload brings the panel back, once JupyterLab has saved its layout
    wait_for(
        "a saved layout",
        lambda: "warpbook" in page.page.evaluate(SAVED_ON_THE_RIGHT) or None,
    )
    page.reload()
    expect(page.panel.locator(".wb-gpu").first).to_be_visible()
