"""Trace files as documents, and reports of cells as tabs of the main area."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from benchmarks.trace_file import write_trace
from tests.e2e.conftest import fresh_page
from tests.e2e.lab import BASE_URL, Lab
from tests.e2e.lab_page import LabPage
from tests.e2e.test_accessible import serious
from tests.e2e.test_reports import HAND_IN, TRACES
from tests.programs import wait_for
from warpbook_profiler.compare.compare import compare
from warpbook_profiler.files.file_profile import read_profile

SAVED_LAYOUT = """async () => {
    const { workspaces } = window.jupyterapp.serviceManager;
    const { data } = await workspaces.fetch("default");
    return JSON.stringify(data["layout-restorer:data"] ?? "");
}"""
EAGER, GRAPH = TRACES / "tiny_kernels.json.gz", TRACES / "graph_replay.json.gz"


@pytest.fixture
def opened(page: LabPage, lab: Lab, lab_url: str) -> LabPage:
    return with_traces(page, lab, lab_url)


def with_traces(page: LabPage, lab: Lab, lab_url: str) -> LabPage:
    """JupyterLab with traces and other files in its file browser."""
    lab.notebooks.mkdir(parents=True, exist_ok=True)
    shutil.copy(EAGER, lab.notebooks / "eager.pt.trace.json.gz")
    shutil.copy(GRAPH, lab.notebooks / "graph.json.gz")
    text = gzip.decompress(EAGER.read_bytes())
    (lab.notebooks / "plain.pt.trace.json").write_bytes(text)
    (lab.notebooks / "exported.json").write_bytes(text)
    (lab.notebooks / "cut.pt.trace.json").write_bytes(text[:9_000])
    (lab.notebooks / "settings.json").write_text('{"colour": "green"}')
    page.open(lab_url, lab.write_notebook("traces.ipynb", [HAND_IN]))
    return page


def listed(page: LabPage, name: str) -> Locator:
    """A file in the file browser, which is asked for what is there now."""
    page.execute("filebrowser:refresh")
    return page.page.locator(".jp-DirListing-item").filter(has_text=name)


def tab(page: LabPage) -> Locator:
    """The report that is in front."""
    return page.page.locator(".wb-report-tab:visible")


def tabs(page: LabPage, name: str) -> Locator:
    """Tabs of the main area."""
    return page.page.locator("#jp-main-dock-panel .lm-TabBar-tab").filter(has_text=name)


class TestOnePage:
    """Traces that are opened one after the other on one page."""

    @pytest.fixture(scope="class")
    @classmethod
    def opened(
        cls, profile: BrowserContext, lab: Lab, lab_url: str
    ) -> Iterator[LabPage]:
        with fresh_page(profile) as page:
            yield with_traces(page, lab, lab_url)

    def test_a_double_click_opens_the_report_of_a_trace(
        self, opened: LabPage, screenshots: Path
    ) -> None:
        figures = read_profile(str(EAGER)).profile
        assert figures.verdict is not None
        for name in ("eager.pt.trace.json.gz", "plain.pt.trace.json"):
            listed(opened, name).dblclick()
            report = tab(opened)
            verdict = report.locator(".wb-cell-verdict")
            expect(verdict.locator(".wb-pill")).to_have_text("launch-bound")
            expect(verdict).to_contain_text(figures.verdict.cause)
            expect(report.get_by_role("heading", name=name)).to_be_visible()
            expect(tabs(opened, name)).to_have_count(1)
        opened.page.screenshot(path=screenshots / "trace-document-causes.png")
        opened.open_part(report, "Kernels and operators")
        flame = report.get_by_role("region", name="Flame graph")
        expect(flame.get_by_role("button", name="GPU time")).to_be_visible()
        call = flame.get_by_role("button", name="aten::add: ").first
        call.click()
        expect(flame.get_by_role("status")).to_contain_text("of the GPU’s work")
        opened.page.screenshot(path=screenshots / "trace-document-flame.png")
        flame.get_by_role("button", name="Show all").press("Enter")
        opened.open_part(report, "Timeline")
        timeline = report.get_by_role("tabpanel", name="Timeline")
        expect(timeline).to_contain_text(" events.")
        opened.wait_for_figure(timeline)
        expect(report.get_by_text("A trace file…")).to_be_visible()
        opened.page.screenshot(path=screenshots / "trace-document.png")
        opened.set_theme("JupyterLab Dark")
        opened.wait_for_figure(report)
        opened.page.screenshot(path=screenshots / "trace-document-dark.png")

    def test_a_report_has_its_checklist(
        self, opened: LabPage, lab: Lab, screenshots: Path
    ) -> None:
        trace = json.loads(
            gzip.decompress((TRACES / "train_fp32.json.gz").read_bytes())
        )
        for event in trace["traceEvents"]:
            if event.get("name") == "aten::addmm":
                event["name"] = "aten::addmm<img src=x onerror=window.attacked=1>"
        (lab.notebooks / "train.pt.trace.json").write_text(json.dumps(trace))
        listed(opened, "train.pt.trace.json").dblclick()
        report = tab(opened)
        section = report.locator("details").filter(has_text="Checklist").first
        missing = section.get_by_role("list", name="No: not used")
        expect(section).to_be_visible()
        expect(missing).to_have_count(0)
        # by keyboard alone
        section.locator("summary").first.press("Enter")
        expect(missing).to_contain_text("Are products in half precision (AMP)?")
        expect(missing).to_contain_text(re.compile(r"About [\d.]+\u00a0ms .* as fast"))
        hidden = section.get_by_role("list", name="Not applicable")
        expect(hidden).to_have_count(0)
        for theme in ("Light", "Dark"):
            opened.page.set_viewport_size({"width": 1024, "height": 1000})
            opened.set_theme(f"JupyterLab {theme}")
            missing.scroll_into_view_if_needed()
            opened.page.wait_for_timeout(500)
            opened.page.screenshot(path=screenshots / f"checklist-{theme}.png")
            assert serious(opened, ".wb-report-tab") == [], theme
        section.get_by_text("Not applicable (").press("Enter")
        expect(hidden).to_contain_text("Is input copied from pinned memory?")
        with opened.page.expect_download() as download:
            report.get_by_role("button", name="Save as HTML").click()
        page = Path(download.value.path()).read_text()
        assert "No: not used, though it applies (2)" in page and "<img" not in page
        assert opened.page.evaluate("() => window.attacked") is None
        missing.get_by_role("button", name="mixed-precision").click()
        expect(tabs(opened, "mixed-precision")).to_have_count(1)

    def test_names_of_a_trace_are_text(self, opened: LabPage, lab: Lab) -> None:
        content = json.loads(gzip.decompress(EAGER.read_bytes()))
        for event in content["traceEvents"]:
            if event.get("cat") in ("kernel", "cpu_op"):
                event["name"] = "<img src=x onerror=window.attacked=1>"
        (lab.notebooks / "attack.pt.trace.json").write_text(json.dumps(content))
        listed(opened, "attack.pt.trace.json").dblclick()
        expect(tab(opened)).to_contain_text("<img src=x")
        opened.open_part(tab(opened), "Timeline")
        opened.wait_for_figure(tab(opened))
        assert opened.page.evaluate("() => window.attacked") is None
        for width_px, theme in ((1500, "Light"), (1024, "Dark")):
            opened.page.set_viewport_size({"width": width_px, "height": 1000})
            opened.set_theme(f"JupyterLab {theme}")
            opened.page.wait_for_timeout(500)
            assert serious(opened, ".wb-report-tab") == [], theme


def test_a_large_trace_says_how_far_it_is_until_its_tab_is_closed(
    opened: LabPage, lab: Lab, screenshots: Path
) -> None:
    name = "large.pt.trace.json"
    write_trace(lab.notebooks / name, 250_000)
    # the answer is held back: a fast machine has it before anybody sees the bar
    opened.page.route("**/api/v1/trace?*", lambda route: route.fetch(timeout=0))
    listed(opened, name).dblclick()
    report = tab(opened)
    report.locator("progress").wait_for()
    opened.page.screenshot(path=screenshots / "trace-document-progress.png")
    words = re.compile(
        r"(Reading the trace|Predicting changes).*\d of \d.*, [\d.<\s]+%"
    )
    expect(report).to_have_text(words)
    with opened.page.expect_event(
        "requestfailed", lambda request: "api/v1/trace?" in request.url
    ):
        tabs(opened, name).locator(".lm-TabBar-tabCloseIcon").click()


def test_other_files_keep_their_viewers_and_bad_ones_say_what_is_wrong(
    opened: LabPage,
) -> None:
    for name in ("settings.json", "exported.json"):
        listed(opened, name).dblclick()
        expect(tabs(opened, name)).to_have_count(1)
        expect(opened.page.locator(".jp-RenderedJSON:visible")).to_be_visible()
    listed(opened, "exported.json").click(button="right")
    items = opened.page.locator(".lm-Menu-item")
    items.filter(has_text="Open With").hover()
    items.filter(has_text="warpbook report").click()
    expect(tab(opened).locator(".wb-pill").first).to_have_text("launch-bound")

    opened.execute("docmanager:open", path="settings.json", factory="warpbook report")
    alert = tab(opened).get_by_role("alert")
    expect(alert).to_contain_text("no trace of torch.profiler")
    tab(opened).get_by_role("button", name="Open as text").click()
    expect(opened.page.locator(".jp-FileEditor:visible")).to_contain_text("colour")
    listed(opened, "cut.pt.trace.json").dblclick()
    expect(alert).to_contain_text("a damaged trace")
    # the browser says it of every answer of that kind
    opened.errors = [error for error in opened.errors if "422" not in error]


def follow_links(page: LabPage, report: Locator) -> None:
    """Go from a cause to a row of it, to its slices, and all the way back."""
    page.open_part(report, "Causes")
    causes = report.get_by_role("list", name="What explains the time")
    cause = causes.get_by_role("listitem").first
    rows = cause.locator(".wb-links", has_text="Rows:")
    rows.get_by_role("button").first.press("Enter")
    row = report.locator("tr:focus")
    expect(row).to_contain_text("sm80_xmma_gemm")
    kernels = report.get_by_role("table", name="Kernels").first
    expect(kernels.get_by_role("columnheader")).to_have_text(
        ["Kernel", "Calls", "Total", "Share", "Mean", "Most", "Grid"]
        + ["Occupancy", "Of its roof", "Part of"]
    )
    row.get_by_role("button", name="Show sm80").press("Enter")
    pinned = report.get_by_role("region", name="Pinned event")
    expect(pinned).to_contain_text("sm80_xmma_gemm")
    # its keys go on from there
    expect(report.get_by_role("group", name="Events over time")).to_be_focused()
    pinned.get_by_role("button", name="Its row in the tables").press("Enter")
    expect(row).to_contain_text("sm80_xmma_gemm")
    # what it is part of, and what acts on that
    row.get_by_role("button", name="compute-bound").press("Enter")
    expect(cause).to_be_focused()
    changes = cause.locator(".wb-links", has_text="Changes:")
    changes.get_by_role("button", name="bf16").press("Enter")
    expect(report.locator("li:focus")).to_contain_text("Multiply in bfloat16")


def test_a_trace_is_opened_by_its_path_by_upload_and_by_a_drop(
    opened: LabPage, lab: Lab, tmp_path: Path, screenshots: Path
) -> None:
    lab.notebooks.joinpath("runs").mkdir(exist_ok=True)
    shutil.copy(TRACES / "train_fp32.json.gz", lab.notebooks / "runs" / "deep.json.gz")
    mine = tmp_path / "mine.json"
    mine.write_bytes(gzip.decompress(EAGER.read_bytes()))
    dialog = opened.page.locator(".jp-Dialog")

    def ask() -> None:
        # the command ends with the dialog
        opened.page.evaluate(
            "() => void window.jupyterapp.commands.execute('warpbook:open-trace')"
        )

    ask()
    opened.page.screenshot(path=screenshots / "open-a-trace.png")
    dialog.get_by_role("textbox").fill("runs/gone.json")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog).to_contain_text("runs/gone.json could not be opened")
    expect(dialog).to_contain_text("If it is elsewhere, upload it.")
    dialog.get_by_role("button").last.click()
    # by keyboard alone, and back to where one was
    keyboard = opened.page.keyboard
    cell = opened.page.locator(".jp-Notebook .jp-Cell")
    cell.focus()
    keyboard.press("Control+Shift+C")
    keyboard.type("open a trace")
    keyboard.press("Enter")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    keyboard.type(str(lab.notebooks / "runs" / "deep.json.gz"))
    keyboard.press("Enter")
    deep = tab(opened)
    expect(deep.get_by_role("heading", name="deep.json.gz")).to_be_visible()
    expect(deep.get_by_role("tab", name="Causes")).to_be_visible()
    opened.tab_to(deep.get_by_role("tab", name="Causes"))
    keyboard.press("ArrowRight")
    expect(deep.get_by_role("table", name="Kernels").first).to_be_visible()
    follow_links(opened, deep)
    keyboard.press("Alt+w")
    expect(deep).to_be_hidden()
    expect(cell).to_be_focused()
    ask()
    with opened.page.expect_file_chooser() as chooser:
        dialog.get_by_role("button", name="Upload…").click()
    chooser.value.set_files(mine)
    expect(tab(opened).get_by_role("heading", name="mine.json")).to_be_visible()
    opened.execute("warpbook:dashboard")
    dropped = opened.page.evaluate_handle(
        """() => {
            const dropped = new DataTransfer();
            dropped.items.add(new File(['{"traceEvents": [', '{"ph'], 'cut.json'));
            return dropped;
        }"""
    )
    for event in ("dragover", "drop"):
        opened.page.dispatch_event(
            "#warpbook-dashboard .wb-root", event, {"dataTransfer": dropped}
        )
    expect(tab(opened).get_by_role("alert")).to_contain_text("damaged trace")
    opened.errors = [
        error for error in opened.errors if "422" not in error and "404" not in error
    ]


def test_a_file_to_compare_with_is_first_looked_for_beside_the_trace(
    opened: LabPage, lab: Lab
) -> None:
    folder = lab.notebooks / "two-runs"
    folder.mkdir()
    shutil.copy(EAGER, folder / "before.json.gz")
    shutil.copy(GRAPH, folder / "after.json.gz")
    opened.execute("filebrowser:open-path", path=folder.name)
    listed(opened, "after.json.gz").dblclick()
    tab(opened).get_by_role("button", name="A trace file…").click()
    beside = opened.page.locator(".jp-Dialog .jp-DirListing-item")
    expect(beside.filter(has_text="before.json.gz")).to_be_visible()


def test_a_trace_is_compared_with_another_and_downloaded(opened: LabPage) -> None:
    urls: list[str] = []
    opened.page.on("request", lambda request: urls.append(request.url))
    eager, graph = (read_profile(str(path)).profile for path in (EAGER, GRAPH))
    listed(opened, "graph.json.gz").dblclick()
    report = tab(opened)
    expect(report.locator(".wb-pill").first).to_be_visible()
    compared = report.get_by_role("region", name="Compare", exact=True)
    compared.get_by_role("button", name="A trace file…").click()
    dialog = opened.page.locator(".jp-Dialog")
    dialog.locator(".jp-DirListing-item").filter(
        has_text="eager.pt.trace.json.gz"
    ).click()
    dialog.locator("button.jp-mod-accept").click()
    sentence = compared.locator("strong").first
    # the file takes the free place
    expect(sentence).to_have_text(compare(eager, graph).sentence)
    compared.get_by_role("button", name="Swap").click()
    expect(sentence).to_have_text(compare(graph, eager).sentence)

    # for Perfetto: nothing is sent to it
    opened.open_part(report, "Timeline")
    report.get_by_text("Open in Perfetto").click()
    with opened.page.expect_download() as download:
        report.get_by_role("button", name="Download the trace").click()
    assert download.value.suggested_filename == "graph.json.gz"
    assert Path(download.value.path()).read_bytes() == GRAPH.read_bytes()
    link = report.get_by_role("link", name="ui.perfetto.dev")
    assert link.get_attribute("href") == "https://ui.perfetto.dev"
    with opened.page.expect_download() as download:
        report.get_by_role("button", name="Save as HTML").click()
    assert download.value.suggested_filename.startswith("warpbook-graph.json.gz-")
    page = Path(download.value.path()).read_text()
    assert "graph.json.gz" in page and "Kernels by their limit" in page
    hosts = {urlsplit(url).hostname for url in urls if url.startswith("http")}
    assert hosts == {urlsplit(opened.page.url).hostname}
    # on a phone its tables scroll, and the page does not; its policy is its own tab's
    phone = opened.page.context.new_page()
    phone.set_viewport_size({"width": 360, "height": 800})
    phone.set_content(page)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_cells_report_opens_in_a_tab_and_stays_in_the_drawer(
    page: LabPage, lab: Lab, lab_url: str
) -> None:
    # a cell's receipt is called by its first line, and stands in a list of its own
    hand_in = "# a report\nhand_in('tabbed', 'in_tab()', 3, profile('train_fp32'))"
    page.open(lab_url, lab.write_notebook("tabbed.ipynb", [HAND_IN, hand_in]))
    page.run(0)
    page.run(1)
    page.open_report("in_tab()")
    button = page.drawer.get_by_role("button", name="Open in a tab")
    button.click()
    report = tab(page)
    expect(report.locator(".wb-pill").first).to_have_text("compute-bound")
    expect(tabs(page, "train.ipynb [7]")).to_have_count(1)
    page.execute("warpbook:dashboard")
    expect(page.drawer).to_contain_text("in_tab()")
    button.click()
    expect(tabs(page, "train.ipynb [7]")).to_have_count(1)


def test_documents_come_back_with_the_page(opened: LabPage, lab_url: str) -> None:
    listed(opened, "graph.json.gz").dblclick()
    expect(tab(opened).locator(".wb-pill").first).to_be_visible()
    # JupyterLab saves its layout a moment later
    wait_for(
        "a saved layout",
        lambda: "graph.json.gz" in opened.page.evaluate(SAVED_LAYOUT) or None,
    )
    url = urlsplit(lab_url)
    opened.page.goto(f"{url.scheme}://{url.netloc}{BASE_URL}lab?{url.query}")
    expect(tabs(opened, "graph.json.gz")).to_have_count(1)
    tabs(opened, "graph.json.gz").click()
    expect(tab(opened).locator(".wb-pill").first).to_be_visible()
