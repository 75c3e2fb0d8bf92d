"""Alerts as notifications, also for a page that is hidden; the end of a long cell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.lab import Lab, LabPage
from tests.programs import wait_for
from tests.stub_nvml import StubNvml

RULES = """
[built_in.temperature]
for_s = 0
clear_s = 0
"""
NOTEBOOK = "alerts.ipynb"
#: what toasts said; those of good news are gone after seconds
REMEMBER_TOASTS = """
window.toasts = new Set();
new MutationObserver(() => {
    document.querySelectorAll(".Toastify__toast").forEach(
        toast => window.toasts.add(toast.textContent));
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
SETTINGS = "home/.jupyter/lab/user-settings/warpbook/plugin.jupyterlab-settings"


@pytest.fixture(scope="module")
def stub(stub_nvml_library, tmp_path_factory: pytest.TempPathFactory) -> StubNvml:
    state = tmp_path_factory.mktemp("stub") / "state"
    return StubNvml(stub_nvml_library, state, "h200")


@pytest.fixture(scope="module")
def alerts_url(
    stub: StubNvml, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("alerts")
    lab = Lab(folder, **stub.env)
    # longer than a busy page may take to hear that a cell began, and a second
    lab.write_notebook(NOTEBOOK, ["import time; time.sleep(5)"])
    (folder / "home" / ".jupyter" / "warpbook-alerts.toml").write_text(RULES)
    settings = folder / SETTINGS
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"notify_long_cell_s": 1, "status_bar": False}))
    with lab.serve() as url:
        yield url


def hide(page: LabPage) -> None:
    """Make the page believe that its tab is in the background."""
    page.page.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { get: () => true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )


def wait_for_toast(page: LabPage, words: str) -> None:
    """Wait until a toast has said this, however soon it went."""
    page.page.wait_for_function(
        "words => [...window.toasts].some(each => each.includes(words))", arg=words
    )


def test_a_hidden_page_is_notified_and_told_when_it_is_over(
    page: LabPage, alerts_url: str, stub: StubNvml
) -> None:
    page.page.add_init_script(REMEMBER_TOASTS)
    page.open(alerts_url, NOTEBOOK)
    page.wait_moving(page.dashboard)
    hide(page)
    # the page gives its frames back after a while
    wait_for(
        "a page that takes no more frames",
        lambda: (
            page.page.wait_for_timeout(100)
            or page.sent[-1]["type"] == "unsubscribe"
            or None
        ),
    )
    page.wait_quiet()
    frames = page.frames
    stub.set(0, temperature_celsius=99)
    toast = page.page.locator(".jp-toast-message, .Toastify__toast")
    expect(toast.filter(has_text="GPU 0 is hot").first).to_be_visible()
    # no way to the dashboard is offered where it is open
    expect(page.dashboard).to_be_visible()
    expect(page.page.locator(".Toastify__toast button", has_text="Open")).to_have_count(
        0
    )
    assert page.frames == frames
    stub.set(0, temperature_celsius=40)
    wait_for_toast(page, "Over: GPU 0 is hot")


def test_an_alert_that_was_seen_is_not_told_again_after_a_reload(
    page: LabPage, alerts_url: str, stub: StubNvml
) -> None:
    page.page.add_init_script(REMEMBER_TOASTS)
    page.open(alerts_url, NOTEBOOK)
    stub.set(0, temperature_celsius=98)
    toast = page.page.locator(".Toastify__toast").filter(has_text="GPU 0 is hot")
    expect(toast.first).to_be_visible()
    page.page.reload()
    page.wait_idle()
    page.page.wait_for_function(
        "() => window.jupyterapp.commands.hasCommand('warpbook:notify-long-cells')"
    )
    page.run(0)
    wait_for_toast(page, "alerts.ipynb [1] is done")
    expect(toast).to_have_count(0)
    stub.set(0, temperature_celsius=40)


def test_the_browser_itself_tells_the_end_of_a_long_cell_where_nobody_looks(
    page: LabPage, alerts_url: str
) -> None:
    page.page.add_init_script(
        """
        window.told = [];
        window.asked = 0;
        window.Notification = class {
            static permission = "default";
            static async requestPermission() {
                window.asked += 1;
                return (window.Notification.permission = "granted");
            }
            constructor(title, { body }) { window.told.push(`${title}: ${body}`); }
        };
        """
    )
    page.open(alerts_url, NOTEBOOK)
    assert page.page.evaluate("window.asked") == 0
    page.page.evaluate(
        "() => window.jupyterapp.commands.execute('warpbook:notify-long-cells')"
    )
    page.page.wait_for_function("() => window.asked === 1")
    hide(page)
    page.run(0)
    page.page.wait_for_function("() => window.told.length === 1")
    notification = page.page.evaluate("window.told[0]")
    assert re.search(r"alerts\.ipynb \[1\] is done: After \d", notification)
