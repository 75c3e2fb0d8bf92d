"""The dashboard, a report and the labs in a panel of 320 to 400 pixels."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator, expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_reports import HAND_IN, TRAIN
from tests.e2e.test_timeline import handed_in

#: the width of the page beside that of the view: JupyterLab's two side bars
BESIDE_PX = 66
WIDTHS_PX = (320, 400)

#: what can't be reached: it lies outside of the view and of what scrolls sideways, or
#: is cut, and neither it nor what it is in has a title
LOST = """view => {
    const { left, right } = view.getBoundingClientRect();
    const style = node => getComputedStyle(node);
    const isClosed = node => node.closest("details:not([open])");
    const lost = view.scrollWidth > view.clientWidth + 1 ? ["it scrolls sideways"] : [];
    for (const node of view.querySelectorAll("*")) {
        const place = node.getBoundingClientRect();
        if (!node.checkVisibility() || place.width < 2 || place.height < 2) continue;
        let outer = node.parentElement;
        while (outer !== view && !["auto", "scroll"].includes(style(outer).overflowX)) {
            outer = outer.parentElement;
        }
        const isOut = place.right > right + 1 || place.left < left - 1;
        // a head that is closed is one line, which opens
        if (isOut && outer === view && !isClosed(node)) {
            lost.push(`outside: ${node.outerHTML.slice(0, 200)}`);
        }
        if (node.matches("button") && node.scrollHeight > node.clientHeight + 2) {
            lost.push(`too high: ${node.outerHTML.slice(0, 200)}`);
        }
        const isCut = ["hidden", "clip"].includes(style(node).overflowX)
            && node.scrollWidth > node.clientWidth + 1 && node.innerText?.trim();
        if (isCut && !node.closest("[title]:not([title=''])") && !isClosed(node)) {
            lost.push(`cut: ${node.outerHTML.slice(0, 200)}`);
        }
    }
    return lost;
}"""


def look(page: LabPage, view: Locator, name: str, screenshots: Path) -> None:
    """See at each width that nothing is out of reach."""
    expect(view).to_be_visible()
    for width_px in WIDTHS_PX:
        page.page.set_viewport_size({"width": width_px + BESIDE_PX, "height": 900})
        page.page.wait_for_function(
            "([view, most]) => view.clientWidth <= most",
            arg=[view.element_handle(), width_px],
        )
        page.page.screenshot(path=screenshots / f"{name}-{width_px}.png")
        assert view.evaluate(LOST) == [], (name, width_px)


def test_nothing_is_out_of_reach_in_a_narrow_panel(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    title = "4,040 simulated"
    # other tests of the same server have reports by the names of TRAIN
    reports = TRAIN.replace("fit(", "narrow(").replace("eager()", "plain()")
    cells = [HAND_IN, reports, handed_in(4_040, f"{title} {'W' * 80}")]
    page.open(lab_url, lab.write_notebook("narrow.ipynb", cells))
    for cell in range(len(cells)):
        page.run(cell)
    # one document at a time, in all the room between the side bars
    page.execute("application:set-mode", mode="single-document")
    page.execute("application:toggle-left-area")

    page.execute("warpbook:dashboard")
    rules = page.dashboard.locator(".wb-rules")
    rules.locator("summary").click()
    rules.get_by_role("button", name="Add a rule").click()
    expect(page.dashboard.locator(".wb-pill").first).not_to_be_empty()
    look(page, page.dashboard, "dashboard", screenshots)

    page.execute("warpbook:open-labs")
    labs = page.page.locator(".wb-labs")
    expect(labs.locator("[data-lab='matmul']")).to_be_visible()
    look(page, labs, "labs", screenshots)

    for of, parts in {
        "gather_rows()": ("Causes", "Stalls", "Kernels and operators", "Figures"),
        title: ("Causes", "Kernels and operators", "Timeline"),
    }.items():
        page.execute("warpbook:dashboard")
        page.open_report(of)
        look(page, page.dashboard, "drawer", screenshots)
        page.drawer.get_by_role("button", name="Open in a tab").click()
        report = page.page.locator(".wb-report-tab:visible")
        expect(report.get_by_role("heading").first).to_contain_text(of)
        for part in parts:
            page.open_part(report, part)
            if part == "Timeline":
                page.wait_for_figure(report)
            look(page, report, f"{of[:5]}-{part.split()[0]}", screenshots)
