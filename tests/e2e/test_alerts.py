"""Alerts as notifications, also for a page that is hidden; the end of a long cell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.programs import wait_for
from tests.stub_nvml import StubNvml

RULES = """
[built_in.temperature]
for_s = 0
clear_s = 0
"""
NOTEBOOK = "alerts.ipynb"
#: it is long, from when the page is known to have heard that it began
LONG = """\
import pathlib, time
print("begun", flush=True)
while not pathlib.Path("heard").exists(): time.sleep(0.1)
pathlib.Path("heard").unlink()
time.sleep(1.5)"""
SETTINGS = "home/.jupyter/lab/user-settings/warpbook/plugin.jupyterlab-settings"


@pytest.fixture(scope="module")
def stub(stub_nvml_library, tmp_path_factory: pytest.TempPathFactory) -> StubNvml:
    state = tmp_path_factory.mktemp("stub") / "state"
    return StubNvml(stub_nvml_library, state, "h200")


@pytest.fixture(scope="module")
def lab(stub: StubNvml, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder: Path = tmp_path_factory.mktemp("alerts")
    lab = Lab(folder, **stub.env)
    lab.write_notebook(NOTEBOOK, [LONG])
    (folder / "home" / ".jupyter" / "warpbook-alerts.toml").write_text(RULES)
    settings = folder / SETTINGS
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"notify_long_cell_s": 1, "status_bar": False}))
    return lab


@pytest.fixture(scope="module")
def alerts_url(lab: Lab) -> Iterator[str]:
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


def run_long_cell(page: LabPage, lab: Lab) -> None:
    page.run(0, wait=False)
    expect(page.output(0)).to_have_text("begun")
    (lab.notebooks / "heard").touch()


def test_a_hidden_page_is_notified_and_told_when_it_is_over(
    page: LabPage, alerts_url: str, stub: StubNvml
) -> None:
    page.open(alerts_url, NOTEBOOK)
    page.wait_moving(page.dashboard)
    hide(page)
    page.wait_quiet()
    frames = page.frames
    stub.set(0, temperature_celsius=99)
    page.wait_for_toast("GPU 0 is hot")
    stub.set(0, temperature_celsius=40)
    page.wait_for_toast("Over: GPU 0 is hot")
    assert page.frames == frames
    # no way to the dashboard is offered where it is open
    expect(page.dashboard).to_be_visible()
    assert not [words for words in page.toasts() if "Open" in words]


def test_an_alert_that_was_seen_is_not_told_again_after_a_reload(
    page: LabPage, lab: Lab, alerts_url: str, stub: StubNvml
) -> None:
    page.open(alerts_url, NOTEBOOK)
    stub.set(0, temperature_celsius=98)
    page.wait_for_toast("GPU 0 is hot")
    page.received.clear()
    page.reload()
    page.page.wait_for_function(
        "() => window.jupyterapp.commands.hasCommand('warpbook:notify-long-cells')"
    )

    def is_told() -> bool | None:
        page.page.wait_for_timeout(100)
        kinds = {message["type"] for message in page.received}
        return "alerts" in kinds or None

    wait_for("the alert that holds", is_told)
    run_long_cell(page, lab)
    page.wait_for_toast("alerts.ipynb [1] is done")
    assert not [words for words in page.toasts() if "GPU 0 is hot" in words]
    stub.set(0, temperature_celsius=40)


def test_the_browser_itself_tells_the_end_of_a_long_cell_where_nobody_looks(
    page: LabPage, lab: Lab, alerts_url: str
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
    run_long_cell(page, lab)
    page.page.wait_for_function("() => window.told.length === 1")
    notification = page.page.evaluate("window.told[0]")
    assert re.search(r"alerts\.ipynb \[1\] is done: After \d", notification)


def test_a_rule_from_the_form_is_an_alert_without_a_gpu_too(
    page: LabPage, tmp_path: Path, screenshots: Path
) -> None:
    lab = Lab(tmp_path)
    notebook = lab.write_notebook("rules.ipynb", ["pass"])
    with lab.serve() as url:
        page.open(url, notebook)
        rules = page.dashboard.locator(".wb-rules")
        rules.locator("summary").click()
        rules.get_by_role("button", name="Add a rule").click()
        rules.get_by_label("Name", exact=True).fill("busy_cpu")
        rules.get_by_label("Title of the alert").fill("The CPU is busy")
        rules.get_by_label("Metric").select_option("cpu_ratio")
        rules.get_by_label("Threshold").fill("0.1")
        rules.get_by_label("Begins after, in s").fill("0")
        rules.get_by_label("Of", exact=True).select_option("host")
        page.page.screenshot(path=screenshots / "rule-form.png")
        rules.get_by_role("button", name="Save").click()
        # GPUs are a recording's, which raises none; the host is live
        page.wait_for_toast("Host: The CPU is busy")
        page.show_panel()
        expect(page.panel).to_contain_text("The CPU is busy")
        # the words have the row's width, not that of a column of figures
        words = page.panel.locator(".wb-finding", has_text="The CPU is busy")
        share = "node => node.firstElementChild.offsetWidth / node.offsetWidth"
        assert words.first.evaluate(share) > 0.9
        page.page.screenshot(path=screenshots / "rule-alert.png")
        row = rules.locator("li", has_text="busy_cpu")
        row.get_by_role("button", name="Delete").click()
        row.get_by_role("button", name="Yes").click()
        page.wait_for_toast("Over: Host: The CPU is busy")
