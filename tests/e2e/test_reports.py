"""A cell's report in the drawer: verdict, causes, lines, tables, comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_accessible import serious
from tests.programs import ROOT, wait_for
from warpbook_profiler.compare.compare import compare
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.verdict.analysis import analyse

TRACES = ROOT / "tests" / "data" / "traces"
STALLS = ROOT / "tests" / "data" / "stalls" / "cell_h200.json.gz"

ATTACK = "<img src=x onerror=window.attacked=1>"
#: what a kernel with an H200 would hand in, from traces of one
HAND_IN = f"""\
import gzip, msgspec, os, time
from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook_profiler.verdict.analysis import analyse
from warpbook_profiler.model.cell_profile import CellProfile, LineRow
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.compare.compare import compare
traces = {str(TRACES)!r}
# a kernel speaks for itself only
kernel_id = os.environ["WARPBOOK_INGEST_SECRET"].rpartition(".")[0]

def profile(name, **changes):
    figures = analyse(*read_chrome_trace(f"{{traces}}/{{name}}.json.gz"))
    return msgspec.structs.replace(figures, **changes)

def recorded():
    # a cell that ran on an H200 with --stalls
    kept = gzip.decompress(open({str(STALLS)!r}, "rb").read())
    return msgspec.json.decode(kept, type=CellProfile)

def post(report):
    # a kernel gives a server two seconds; a report that comes again takes its own place
    for _ in range(10):
        try:
            return ServerLink().post(report)
        except LinkError as problem:
            print(problem)
            time.sleep(1)

def hand_in(name, title, seconds_ago, profile, previous=None):
    ended = time.time() * 1000 - seconds_ago * 1000
    found = None if previous is None else compare(previous, profile)
    post(CellReport(
        id=f"{{name}}-{{kernel_id[:8]}}", protocol=PROTOCOL_VERSION,
        kernel_id=kernel_id, notebook="train.ipynb",
        cell_id=name, execution_count=7, title=title, started_ms=ended - 20,
        ended_ms=ended, status="ok", profile=profile, difference=found,
        notes=() if found is None else ("Against its run before: " + found.sentence,)))
"""
TRAIN = f"""\
lines = (
    LineRow(1, "for x, y in loader:  # {ATTACK}", 3, 900_000, 0, 0, 0, 0, 600_000),
    LineRow(2, "    loss = model(x)", 2, 5_500_000, 20, 8_250_000, 0, 0, 250_000),
    LineRow(3, "    loss.backward()", 2, 2_500_000, 39, 6_250_000, 70_000, 1_500_000,
        None))
hand_in("train", "fit({ATTACK})", 9, profile("train_fp32", lines=lines))
eager = profile("tiny_kernels")
hand_in("eager", "eager()", 6, eager)
hand_in("graph", "graph()", 3, profile("graph_replay"), previous=eager)
kept, new = recorded(), msgspec.structs.replace
files = tuple(new(file, name={ATTACK!r}) for file in kept.stalls.files)
stalls = new(kept.stalls, files=files)
hand_in("stalls", "gather_rows()", 2, new(kept, stalls=stalls))
"""


#: names without a place to break, in all that a notebook shows as tables
NAMES = """\
import warpbook
from IPython.display import HTML, display
from warpbook.kernel.runs.profile import Difference
from warpbook.reports.html import report_html
name = "W" * 1500
def long(rows):
    return (msgspec.structs.replace(rows[0], name=name), *rows[1:])
before = profile("train_fp32")
figures = msgspec.structs.replace(before, kernels=long(before.kernels),
    annotations=long(before.annotations), operators=long(before.operators))
hand_in("names", "W" * 200, 9, figures)
display(HTML(report_html(figures, "names", is_open=True)))
display(Difference(compare(before, figures), "names"))
display(warpbook.labs.list())"""
#: tables whose names have less room than 24 letters, or than the longest of them
NARROW = """view => [...view.querySelectorAll("table")].flatMap(table => {
    if (!table.checkVisibility()) return [];
    const cells = [...table.querySelectorAll("tbody td:first-child")];
    const letters = cell => {
        const context = document.createElement("canvas").getContext("2d");
        context.font = getComputedStyle(cell).font;
        const text = cell.innerText.trim();
        return Math.min(context.measureText("0").width * 24,
            context.measureText(text).width);
    };
    const wanted = Math.max(0, ...cells.map(letters));
    const has = cells[0]?.getBoundingClientRect().width ?? 0;
    return has + 1 < wanted ? [`${table.innerText.slice(0, 80)}: ${has}`] : [];
})"""


def profile(name: str) -> CellProfile:
    """What the kernel computes too, from the same trace."""
    return analyse(*read_chrome_trace(str(TRACES / f"{name}.json.gz")))


def show(page: LabPage, title: str) -> None:
    page.open_report(title)
    page.open_part(page.drawer, "Timeline")
    page.wait_for_figure(page.drawer)
    page.open_part(page.drawer, "Causes")


def table(page: LabPage, caption: str) -> Locator:
    caption_node = page.page.locator("caption", has_text=caption)
    return page.drawer.locator("table", has=caption_node)


#: hands in thirty reports
MANY = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.many_events import hand_in
for number in range(30): hand_in(40, f"the {{number}}th of many", whole=False)"""


class TestOnePage:
    """Reports that come one after the other."""

    @pytest.fixture(scope="class")
    @classmethod
    def page(cls, profile: BrowserContext, lab: Lab, lab_url: str) -> Iterator[LabPage]:
        handed = [
            f"hand_in('{name}', '{name}()', {ago}, profile('tiny_kernels'))"
            for name, ago in (("pressed", 6), ("later", 3), ("latest", 1))
        ]
        cells = [HAND_IN, *handed, MANY]
        with fresh_page(profile) as page:
            page.open(lab_url, lab.write_notebook("press.ipynb", cells))
            yield page

    def test_a_click_that_has_begun_survives_a_new_report(self, page: LabPage) -> None:
        page.run(0)
        page.run(1)
        listed = page.dashboard.get_by_role("region", name="Cell reports", exact=True)
        link = listed.get_by_role("button", name="pressed()")
        expect(link).to_be_visible()

        def is_pressed() -> bool | None:
            # the lists are written soon after what comes, and move what is below
            page.page.wait_for_timeout(1_500)
            link.hover()
            page.page.mouse.down()
            if link.evaluate("link => link.matches(':active')"):
                return True
            page.page.mouse.up()
            return None

        wait_for("a press of it", is_pressed)
        page.run(2)

        def is_told() -> bool | None:
            page.page.wait_for_timeout(100)
            reports = [m for m in page.received if m["type"] == "cell_report"]
            return any(report["title"] == "later()" for report in reports) or None

        wait_for("the later report", is_told)
        page.page.wait_for_timeout(1_500)
        expect(listed).not_to_contain_text("later()")
        page.page.mouse.up()
        expect(page.drawer).to_contain_text("pressed()")
        expect(listed).to_contain_text("later()")
        # a release that no browser tells, as over a scrollbar
        page.dashboard.locator(".wb-body").dispatch_event("pointerdown")
        page.run(3)
        page.page.mouse.move(300, 300)
        expect(listed).to_contain_text("latest()")

    def test_every_report_that_is_kept_can_be_opened(self, page: LabPage) -> None:
        page.run(4)
        for number in (0, 29):
            page.open_report(f"the {number}th of many")


def test_a_report_says_what_held_the_cell_back(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    figures = profile("train_fp32")
    assert figures.verdict is not None
    page.open(lab_url, lab.write_notebook("reports.ipynb", [HAND_IN, TRAIN]))
    page.run(0)
    page.run(1)
    listed = page.dashboard.get_by_role("region", name="Cell reports", exact=True)
    expect(listed.locator("tr", has_text="fit(")).to_contain_text("compute-bound")
    show(page, "fit(")

    verdict = page.drawer.locator(".wb-cell-verdict")
    expect(verdict.locator(".wb-pill")).to_have_text("compute-bound")
    expect(verdict).to_contain_text(figures.verdict.cause)
    change = page.drawer.locator(".wb-cell-change")
    expect(change).to_have_text(figures.verdict.change)
    bar = page.drawer.get_by_role("list", name="Shares are of")
    expect(bar.get_by_role("listitem").first).to_contain_text("compute-bound")
    expect(page.drawer).to_contain_text("71 seen on the GPU")
    causes = page.drawer.get_by_role("list", name="What explains the time")
    expect(causes.get_by_role("listitem")).to_have_count(len(figures.findings))
    first = causes.get_by_role("listitem").first
    expect(first).to_contain_text(figures.findings[0].evidence)
    expect(first).to_contain_text("same dtype and bytes: 12.")
    expect(first).to_contain_text("Lab: mixed-precision.")

    changes = page.drawer.get_by_role("list", name="What to change")
    expect(changes.locator("li").first).to_contain_text("bfloat16")
    expect(changes.locator("li").first).to_contain_text("times as fast")
    lines = table(page, "Lines of the cell")
    expect(lines.locator("tbody tr")).to_have_count(3)
    expect(lines.locator("tbody tr").first).to_contain_text(ATTACK)
    unknown = lines.locator("tbody tr").last.locator("td").last
    expect(unknown).to_have_text("not known")
    assert lines.locator(".wb-length").count() == 9
    lines.get_by_role("button", name="Kernels").focus()
    page.page.keyboard.press("Enter")
    expect(lines.locator("[aria-sort=descending]")).to_have_text("Kernels")
    expect(lines.locator("tbody tr").first).to_contain_text("loss = model(x)")
    page.page.keyboard.press("Enter")
    expect(lines.locator("tbody tr").first).to_contain_text("for x, y in loader")
    lines.get_by_role("button", name="GPU idle").click()
    expect(lines.locator("tbody tr").last).to_contain_text("loss.backward()")

    page.page.screenshot(path=screenshots / "report.png")
    # the keyboard goes from tab to tab
    page.drawer.get_by_role("tab", name="Causes").press("ArrowRight")
    expect(first).to_be_hidden()
    by_time = table(page, "Kernels").first
    expect(by_time.locator("tbody tr")).to_have_count(10)
    by_time.get_by_role("button", name="all 27").click()
    expect(by_time.locator("tbody tr")).to_have_count(27)
    for title in (
        *("Kernels by their limit", "What the CPU did", "Copies and memsets"),
        *("GPU work by operators", "Operators on the host"),
        "Stream idle time by cause",
    ):
        expect(table(page, title)).to_be_visible()
    page.page.screenshot(path=screenshots / "report-kernels.png")
    page.open_part(page.drawer, "Timeline")
    # twenty milliseconds: a sentence stands where the figure would
    expect(page.drawer).to_contain_text("too short for telemetry")
    page.open_part(page.drawer, "Figures")
    bare = page.drawer.get_by_role("region", name="Without the profiler")
    expect(bare).to_contain_text("the GPU")
    time = page.drawer.get_by_role("region", name="As recorded, with the profiler")
    expect(time).to_contain_text("– the host was in operators")
    expect(time).to_contain_text("– less the profiler's part")
    kernels = page.drawer.get_by_role("region", name="Kernels", exact=True)
    expect(kernels).to_contain_text("48.4 TFLOP/s")
    assert page.page.evaluate("() => window.attacked") is None

    # from a kernel's row to the lines at which its warps wait, and back
    page.open_report("gather_rows(")
    page.open_part(page.drawer, "Kernels and operators")
    row = page.drawer.get_by_role("row", name="gather_rows").first
    row.get_by_role("button", name="where its warps wait").press("Enter")
    stalls = page.drawer.get_by_role("region", name="gather_rows")
    expect(stalls.get_by_role("heading", name="gather_rows")).to_be_focused()
    line = stalls.get_by_role("row", name="total += value * value")
    expect(line).to_contain_text("75 %device memory (75 %)")
    assert line.locator(".wb-length").count() == 1
    page.page.screenshot(path=screenshots / "report-stalls.png")
    assert serious(page, ".wb-drawer") == []
    stalls.get_by_role("button", name="gather_rows").press("Enter")
    expect(row).to_be_focused()
    assert page.page.evaluate("() => window.attacked") is None

    # the lab that teaches the change is opened from there
    page.open_report("fit(")
    page.open_part(page.drawer, "Causes")
    first.get_by_role("button", name="mixed-precision").click()
    tab = page.page.locator(".lm-TabBar-tabLabel", has_text="mixed-precision.ipynb")
    expect(tab).to_be_visible()


def test_a_name_is_read_in_every_table(page: LabPage, lab: Lab, lab_url: str) -> None:
    cells = [HAND_IN, NAMES, "%load_ext warpbook\n%gpu"]
    page.open(lab_url, lab.write_notebook("names.ipynb", cells))
    for cell in range(len(cells)):
        page.run(cell)
    expect(page.output(1)).to_contain_text("area-codes")
    page.open_report("W" * 60)
    shown = (page.output(1), page.output(2), page.dashboard)
    for width_px in (1440, 1280):
        page.page.set_viewport_size({"width": width_px, "height": 1000})
        for part in ("Causes", "Kernels and operators"):
            page.open_part(page.drawer, part)
            for view in shown:
                expect(view.locator("table").first).to_be_attached()
                assert view.evaluate(NARROW) == [], width_px
        for view in (*shown, page.drawer):
            assert view.evaluate("view => view.scrollWidth <= view.clientWidth")
    # the whole of it by pointer, by keyboard and for a screen reader, and in a copy
    for view in (page.output(1), page.drawer):
        # a key does one thing: in a notebook Enter begins to edit the cell, too
        fold = view.locator("summary").first
        was_open = fold.evaluate("fold => fold.parentElement.open")
        fold.press("Enter")
        assert fold.evaluate("fold => fold.parentElement.open") is not was_open
        expect(fold).to_be_focused()
        fold.press("Enter")
        name = view.get_by_role("cell", name="W" * 1500).first
        expect(name).to_have_attribute("title", "W" * 1500)
        assert name.text_content() == "W" * 1500
        height = (name.bounding_box() or {})["height"]
        name.focus()
        assert (name.bounding_box() or {})["height"] > 5 * height


def test_runs_are_compared_with_the_one_before_and_with_any_other(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    page.open(lab_url, lab.write_notebook("compare.ipynb", [HAND_IN, TRAIN]))
    page.run(0)
    page.run(1)
    show(page, "graph()")
    train, eager, graph = map(profile, ("train_fp32", "tiny_kernels", "graph_replay"))
    expect(page.drawer).to_contain_text(
        f"Against its run before: {compare(eager, graph).sentence}"
    )
    comparison = page.drawer.get_by_role("region", name="Comparison")
    expect(comparison).to_contain_text("Too few runs or steps")
    expect(bars(comparison)).to_have_count(2)
    largest = table(page, "Largest differences")
    launched = largest.locator("tr", has_text="GPU idle: the host launched")
    expect(launched).to_contain_text("-8.15 ms")
    expect(table(page, "GPU work by operators").last).to_contain_text("400 → 0")
    expect(comparison).to_contain_text(
        "Before: the cell's run before. After: train.ipynb"
    )

    with page.page.expect_download() as download:
        page.drawer.get_by_role("button", name="Save as HTML").click()
    saved = Path(download.value.path()).read_text()
    assert "After: 1.66 ms" in saved and "Largest differences" in saved

    # of other work nothing is concluded, in the words of the terminal
    choose(comparison, "Before", "fit(")
    runs = re.compile(
        r"Before: train.ipynb \[7\]: fit\(.*After: train.ipynb \[7\]: graph"
    )
    expect(comparison).to_contain_text(runs)
    refused = compare(train, graph)
    assert refused.sentence.startswith("Not the same work")
    expect(comparison).to_contain_text(refused.sentence)
    expect(comparison).to_contain_text(refused.cautions[0])
    expect(bars(comparison)).to_have_count(2)
    comparison.scroll_into_view_if_needed()
    page.page.screenshot(path=screenshots / "comparison-refused.png")

    choose(comparison, "Before", "eager()")
    expect(comparison).to_contain_text(compare(eager, graph).sentence)
    widths = [drawn_px(bar) for bar in bars(comparison).all()]
    assert widths[1] / widths[0] == pytest.approx(1.66 / 9.23, abs=0.02)
    comparison.scroll_into_view_if_needed()
    page.page.screenshot(path=screenshots / "comparison.png")
    page.set_theme("JupyterLab Dark")
    page.page.screenshot(path=screenshots / "comparison-dark.png")
    choose(comparison, "Before", "graph()")
    expect(comparison).to_contain_text("Before and After are the same report.")
    choose(comparison, "Before", "eager()")
    # a person says which is which, whenever they ran
    comparison.get_by_role("button", name="Swap").click()
    expect(comparison).to_contain_text(compare(graph, eager).sentence)
    expect(comparison).to_contain_text("Before: train.ipynb [7]: graph()")


def test_an_edit_is_applied_below_its_cell(
    page: LabPage, lab: Lab, lab_url: str, screenshots: Path
) -> None:
    cell = """\
from IPython.display import display
from warpbook_profiler.model.trials import Edited
cell_id = get_ipython().get_parent()["metadata"]["cellId"]
figures = profile("train_fp32")
first = msgspec.structs.replace(
    figures.changes[0], line=2, code="%%gpuprof\\nfaster()", diff="-slow()\\n+faster()")
edited = Edited(
    "Better: 1 ms.", ("tf32", "fuse"), None, "fastest()", "+fastest()", "once()")
now = time.time() * 1000
report = CellReport(
    id=f"edited-{kernel_id[:8]}", protocol=PROTOCOL_VERSION, kernel_id=kernel_id,
    notebook="apply.ipynb", cell_id=cell_id, execution_count=2, title="slow()",
    started_ms=now - 20, ended_ms=now, status="ok", profile=msgspec.structs.replace(
        figures, changes=(first, *figures.changes[1:]), edited=edited))
mime = "application/vnd.warpbook.report+json"
display({mime: {"id": report.id}, "text/html": "<p>report</p>"}, raw=True)
post(report)"""
    page.open(lab_url, lab.write_notebook("apply.ipynb", [HAND_IN, cell, "last"]))
    page.run(0)
    page.run(1)
    # in the notebook, what was measured
    page.output(1).get_by_role("button", name="Apply tf32, fuse").click()
    page.open_report("slow()")
    page.open_part(page.drawer, "Causes")
    expect(page.drawer).to_contain_text("+fastest()")
    # in the drawer each change has its own
    changes = page.drawer.get_by_role("list", name="What to change")
    changes.get_by_role("button", name="Line 2").press("Enter")
    editor = page.page.locator(".jp-Notebook .jp-mod-active .cm-content")
    expect(editor).to_be_focused()
    cursor = """() => [...window.jupyterapp.shell.widgets("main")]
        .find(each => each.content?.notebookConfig)
        .content.activeCell.editor.getCursorPosition().line"""
    assert page.page.evaluate(cursor) == 1
    changes.get_by_role("button", name="Apply").click()
    page.page.screenshot(path=screenshots / "apply.png")
    sources = ["".join(cell["source"]) for cell in page.cells()]
    assert sources[2:] == ["faster()", "once()", "fastest()", "last"]


def choose(comparison: Locator, place: str, title: str) -> None:
    """Choose a report by its title: its id has the kernel's in it."""
    chooser = comparison.get_by_label(place, exact=True)
    other = chooser.locator("option", has_text=title).first
    chooser.select_option(other.get_attribute("value"))


def bars(comparison: Locator) -> Locator:
    return comparison.locator(".wb-time-parts")


def drawn_px(bar: Locator) -> float:
    """How wide the parts of a bar are together."""
    return sum(part.bounding_box()["width"] for part in bar.locator("span").all())


def by_keyboard(page: LabPage) -> None:
    """Run the cell that was run last once more, and open its report; leave it."""
    press = page.page.keyboard.press
    listed = page.dashboard.get_by_role("region", name="Cell reports", exact=True)
    reports = listed.get_by_role("row", name="lines.ipynb")
    expect(reports).to_have_count(1)
    cell = page.page.locator(".jp-Notebook .jp-Cell").nth(1)
    cell.press("Control+Enter")
    expect(reports).to_have_count(2)
    press("Control+Alt+r")
    report = page.page.locator(".wb-report-tab")
    expect(report.get_by_role("heading").first).to_be_focused()
    tabs = report.get_by_role("tab")
    page.tab_to(tabs.first)
    press("End")
    expect(tabs.last).to_be_focused()
    expect(report.get_by_role("tabpanel", name="Figures")).to_be_visible()
    press("Alt+w")
    expect(report).to_have_count(0)
    expect(cell).to_be_focused()

    # in the drawer, where keys move its tabs and not the charts
    press("Control+Alt+g")
    expect(page.page.get_by_label("Time window")).to_be_focused()
    press("Tab")
    press("r")
    opener = page.dashboard.locator("[data-opens]:focus")
    expect(opener).to_contain_text("a = torch.ones(64, 64)")
    press("Enter")
    expect(page.drawer).to_match_aria_snapshot(
        """
        - complementary "Explore":
          - heading /lines.ipynb .*a = torch.ones/
          - button "Open in a tab"
          - button "Close"
          - paragraph: /No GPU in this profile/
          - tablist "Parts of the report":
            - tab "Causes" [selected]
            - tab "Kernels and operators"
            - tab "Figures"
          - tabpanel "Causes":
            - table "Lines of the cell"
          - button "Save as HTML"
        """
    )
    expect(page.drawer.get_by_role("heading").first).to_be_focused()
    page.tab_to(page.drawer.get_by_role("tab").first)
    press("ArrowRight")
    expect(page.drawer.get_by_role("tab").nth(1)).to_be_focused()
    expect(page.page.locator(".wb-held")).to_have_count(0)
    press("Escape")
    expect(page.drawer).to_be_hidden()
    expect(opener).to_be_focused()


def test_a_real_cell_without_a_gpu_is_reported_with_its_lines(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    cell = """\
%%gpuprof --lines
import torch
for n in range(5):
    a = torch.ones(64, 64) @ torch.ones(64, 64)"""
    notebook = lab.write_notebook("lines.ipynb", ["%load_ext warpbook", cell])
    page.open(lab_url, notebook)
    page.run(0)
    page.run(1)
    by_keyboard(page)
    # else the newest might be the first run's, or another test's
    listed = page.dashboard.get_by_role("region", name="Cell reports", exact=True)
    runs = listed.get_by_role("row", name="lines.ipynb").locator(".wb-link")
    expect(runs.filter(has_text="a = torch.ones(64, 64)")).to_have_count(2)
    show(page, "a = torch.ones(64, 64)")
    expect(page.drawer).to_contain_text("No GPU in this profile")
    expect(page.drawer).to_contain_text("Against its run before")
    row = table(page, "Lines of the cell").locator("tr", has_text="torch.ones(64, 64)")
    expect(row.locator("td").nth(1)).to_have_text("5")
    expect(row.locator("td").last).to_have_text("not known")
    page.open_part(page.drawer, "Kernels and operators")
    expect(table(page, "Operators on the host").first).to_contain_text("aten::mm")
    expect(page.output(1)).to_contain_text("torch.ones(64, 64)")
