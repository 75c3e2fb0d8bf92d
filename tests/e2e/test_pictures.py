"""A report's roofline, memory over time and telemetry, drawn in the drawer."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_reports import ATTACK, HAND_IN, show
from tests.programs import wait_for

#: over a time in which the recorded GPUs were read
PICTURED = f"""\
from warpbook_profiler.model.pictures import MemoryCurve
time.sleep(3)
curve = MemoryCurve(
    0, (0, 600_000_000, 900_000_000, 2_000_000_000), (2**30, 5 * 2**30, 2**30, 2**30),
    (2**32, 6 * 2**30, 6 * 2**30, 6 * 2**30), 2, 5 * 2**30, 600_000_000,
    "aten::linear > {ATTACK}", 4)
figures = profile("train_fp32", memory_curves=(curve,), wall_ns=2_000_000_000)
points = tuple(
    msgspec.structs.replace(each, operands={ATTACK!r}) for each in figures.roofline)
now = time.time() * 1000
post(CellReport(
    id=f"pictured-{{kernel_id[:8]}}", protocol=PROTOCOL_VERSION, kernel_id=kernel_id,
    notebook="train.ipynb",
    cell_id="c", execution_count=8, title="pictured()", started_ms=now - 2500,
    ended_ms=now - 500, status="ok",
    profile=msgspec.structs.replace(figures, roofline=points)))
"""


def test_a_reports_pictures_are_drawn(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    page.open(lab_url, lab.write_notebook("pictures.ipynb", [HAND_IN, PICTURED]))
    page.wait_moving(page.dashboard)
    page.run(0)
    page.run(1)
    show(page, "pictured()")
    page.open_part(page.drawer, "Timeline")
    figures = page.drawer.locator(".wb-figure")
    # of each recorded GPU on the cell's axis, then of memory
    for figure in (figures.nth(0), figures.nth(1), figures.nth(2)):
        figure.scroll_into_view_if_needed()
        page.wait_for_figure(figure)
    page.page.screenshot(path=screenshots / "report-memory.png")

    # they move together: the wheel over memory zooms into the telemetry too
    telemetry, memory = figures.nth(1), figures.nth(2)
    before = telemetry.screenshot()

    def zoomed() -> bool | None:
        memory.hover()
        page.page.keyboard.down("Control")
        page.page.mouse.wheel(0, -400)
        page.page.keyboard.up("Control")
        page.page.wait_for_timeout(500)
        return telemetry.screenshot() != before or None

    # without Ctrl it is the page's
    memory.hover()
    page.page.mouse.wheel(0, -40)
    page.page.wait_for_timeout(500)
    assert telemetry.screenshot() == before
    wait_for("telemetry that moves too", zoomed)

    page.open_part(page.drawer, "Kernels and operators")
    tab = page.drawer.get_by_role("tabpanel", name="Kernels and operators")
    roofline = tab.locator(".wb-figure")
    page.wait_for_figure(roofline)
    roofline.scroll_into_view_if_needed()
    canvas = roofline.locator("canvas").first.bounding_box()
    assert canvas is not None
    for n in range(1, 12):
        # over the points: tool tips are made of their names
        page.page.mouse.move(
            canvas["x"] + canvas["width"] * n / 12, canvas["y"] + canvas["height"] * 0.6
        )
    table = page.drawer.locator("table", has_text="Operators under the roofline")
    expect(table).to_contain_text("FP32")
    expect(table).to_contain_text("TFLOP/s")
    page.page.screenshot(path=screenshots / "report-roofline.png")
    assert page.page.evaluate("() => window.attacked") is None
    assert page.page.locator("img[src=x]").count() == 0
