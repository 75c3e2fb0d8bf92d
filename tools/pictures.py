"""Take the pictures of the docs anew: `make pictures`, or some of them by name.

    python tools/pictures.py [--only dashboard chart ...] [--to docs/pictures]

The pages are the product's own, in Chromium. There is no GPU: what is live is the
recording that ships, which each view labels REPLAY, and reports are of traces from real
GPUs in tests/data. Pictures have at most 150 KB each.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in (".", "extension", "labs", "monitors")]

from PIL import Image
from playwright.sync_api import Browser, Locator, expect, sync_playwright
from terminal_picture import terminal_svg

from tests.e2e.lab import BASE_URL, TOUR, Lab
from tests.e2e.lab_page import TIMEOUT_MS, LabPage
from tests.e2e.test_reports import HAND_IN
from tests.hub.service.class_hub import (
    COURSE,
    Visitor,
    class_hub,
    publish,
)
from tests.programs import program, wait_for

SIZE = {"width": 1440, "height": 900}
MOST_BYTES = 150_000
#: how many colours a picture keeps that is too large with all of them
_COLOURS = 256
#: of three parts up to 255: how far the parts of a line's colour are apart
_VIVID = 60
TRACE = "attention.pt.trace.json.gz"
TRACE_FILE = ROOT / "tests/data/exam_h100/attention_by_hand.json.gz"
LAB_SOLUTIONS = ROOT / "labs/catalogue/kernels/vector_add/solutions"
CLOSE_DASHBOARD = """() => [...window.jupyterapp.shell.widgets("main")]
    .filter(each => each.node.querySelector(".wb-dashboard")
        || each.node.classList.contains("wb-dashboard"))
    .forEach(each => each.close())"""


class Pictures:
    """Where pictures go, and which are wanted."""

    def __init__(self, folder: Path, only: list[str]) -> None:
        """Take the folder; without names all are wanted."""
        self._folder, self._only = folder, only
        folder.mkdir(parents=True, exist_ok=True)

    def wants(self, *names: str) -> bool:
        """Whether any of these is wanted."""
        return not self._only or any(name in self._only for name in names)

    def keep(self, name: str, png: bytes) -> None:
        """Keep a picture with all its colours, or with fewer where it is too large."""
        if not self.wants(name):
            return
        image = Image.open(io.BytesIO(png)).convert("RGB")
        packed = _packed(image)
        if len(packed) > MOST_BYTES:
            packed = _packed(_with_few_colours(image))
        if len(packed) > MOST_BYTES:
            sys.exit(f"{name}: {len(packed):,} bytes; {MOST_BYTES:,} are allowed")
        (self._folder / f"{name}.png").write_bytes(packed)
        print(f"{name}.png  {len(packed):,} bytes", flush=True)

    def keep_text(self, name: str, svg: str) -> None:
        """Keep a picture that is text."""
        if self.wants(name):
            (self._folder / f"{name}.svg").write_text(svg)
            print(f"{name}.svg  {len(svg):,} bytes", flush=True)


def _packed(image: Image.Image) -> bytes:
    packed = io.BytesIO()
    image.save(packed, "PNG", optimize=True)
    return packed.getvalue()


def _with_few_colours(image: Image.Image) -> Image.Image:
    """Keep the most frequent colours as they are, half of them those of thin lines."""
    counted = sorted(image.getcolors(image.width * image.height) or [], reverse=True)
    colours = [colour for _, colour in counted]
    vivid = [colour for colour in colours if max(colour) - min(colour) > _VIVID]
    kept = dict.fromkeys([*vivid[: _COLOURS // 2], *colours[:_COLOURS]])
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in list(kept)[:_COLOURS] for part in colour])
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


@contextlib.contextmanager
def opened(browser: Browser) -> Iterator[LabPage]:
    """A page of a browser that has never been here."""
    context = browser.new_context(viewport=SIZE, reduced_motion="reduce")
    page = LabPage(context.new_page())
    yield page
    page.shut_down_kernel()
    context.close()


def live(browser: Browser, lab: Lab, url: str, to: Pictures) -> None:
    """The dashboard beside the tour, one chart, and a span that is looked into."""
    with opened(browser) as page:
        page.open(url, TOUR)
        code = [n for n, cell in enumerate(page.cells()) if cell["cell_type"] == "code"]
        for number in code[:2]:
            page.run(number)
        page.wait_moving(page.dashboard)
        # as much of the recording as the charts show
        page.page.wait_for_timeout(45_000)
        to.keep("dashboard", page.page.screenshot())
        page.execute("application:toggle-left-area")
        chart = page.dashboard.get_by_label("What the chip does", exact=True).first
        page.bring_to_see(chart, chart.locator("canvas"))
        over = chart.locator(".u-over")
        for share in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2):
            hover(over, share)
            tip = chart.locator(".wb-tip").inner_text()
            # where the chip works
            if re.search(r"SM active [1-9]\d+ %", tip):
                break
        # with its badge: the figures are a recording's
        section = chart.locator("xpath=ancestor::details[1]")
        box = section.bounding_box()
        assert box is not None
        to.keep("chart", page.page.screenshot(clip={**box, "height": 380}))
        hover(over, 0.45)
        page.page.keyboard.down("Shift")
        page.page.mouse.down()
        for share in (0.5, 0.6, 0.7, 0.8):
            hover(over, share)
        page.page.mouse.up()
        page.page.keyboard.up("Shift")
        expect(page.drawer).to_contain_text("Statistics of ")
        page.drawer.get_by_role("button", name="Explore GPU 0").click()
        page.wait_for_figure(page.drawer)
        page.page.wait_for_timeout(1_000)
        to.keep("explore", page.page.screenshot())


def reports(browser: Browser, lab: Lab, url: str, to: Pictures) -> None:
    """The report of a trace in a notebook and as a document, and its timeline."""
    shutil.copy(TRACE_FILE, lab.notebooks / TRACE)
    cell = f'import warpbook\nwarpbook.analyze("{TRACE}")'
    with opened(browser) as page:
        page.open(url, lab.write_notebook("attention.ipynb", [cell]))
        page.page.evaluate(CLOSE_DASHBOARD)
        page.execute("application:toggle-left-area")
        page.run(0)
        report = page.output(0).locator(".warpbook-report")
        expect(report).to_be_visible()
        page.page.wait_for_timeout(1_000)
        to.keep("report-notebook", page.page.screenshot())
        page.execute("docmanager:open", path=TRACE)
        tab = page.page.locator(".wb-report-tab:visible")
        expect(tab.locator(".wb-cell-verdict")).to_be_visible()
        page.page.wait_for_timeout(1_000)
        to.keep("report-tab", page.page.screenshot())
        page.open_part(tab, "Timeline")
        timeline = tab.get_by_role("tabpanel", name="Timeline")
        page.wait_for_figure(timeline)
        page.page.wait_for_timeout(1_000)
        to.keep("timeline", timeline.screenshot())


def stalls(browser: Browser, lab: Lab, url: str, to: Pictures) -> None:
    """Where the warps of a cell wait, as an H200 recorded it."""
    cell = f'{HAND_IN}\nhand_in("stalls", "gather_rows(x, order)", 2, recorded())'
    with opened(browser) as page:
        page.open(url, lab.write_notebook("stalls.ipynb", [cell]))
        page.run(0)
        page.open_report("gather_rows(x, order)")
        page.drawer.get_by_role("button", name="Open in a tab").click()
        tab = page.page.locator(".wb-report-tab:visible")
        page.execute("application:toggle-left-area")
        tab.locator(".wb-report-head > summary").click()
        page.open_part(tab, "Stalls")
        page.page.evaluate(CLOSE_DASHBOARD)
        panel = tab.get_by_role("region", name="column_sums")
        panel.scroll_into_view_if_needed()
        page.page.wait_for_timeout(1_000)
        to.keep("stalls", panel.screenshot())


def labs(browser: Browser, lab: Lab, url: str, to: Pictures) -> None:
    """The labs browser, and a check that names the line."""
    cells = (
        '%load_ext warpbook\nimport warpbook\nlab = warpbook.labs.open("vector-add")',
        f"%%lab vector-add\n{(LAB_SOLUTIONS / 'wrong/no_bound.cu').read_text()}",
    )
    with opened(browser) as page:
        page.open(url, lab.write_notebook("first-lab.ipynb", cells))
        page.page.evaluate(CLOSE_DASHBOARD)
        for number in range(len(cells)):
            page.run(number)
        expect(page.output(1)).to_contain_text("vector-add: failed")
        page.execute("application:toggle-left-area")
        page.page.wait_for_timeout(1_000)
        to.keep("lab-result", page.page.screenshot())
        address = urlsplit(url)
        path = f"{BASE_URL}lab?reset&{address.query}"
        page.page.goto(f"{address.scheme}://{address.netloc}{path}")
        page.page.wait_for_function(
            "() => window.jupyterapp?.restored.then(() => true)"
        )
        page.execute("launcher:create")
        # it comes beside the first document, and moves the launcher's cards
        expect(page.dashboard).to_be_visible()
        page.page.locator(".jp-LauncherCard:visible", has_text="GPU Labs").click()
        expect(page.page.locator("[data-lab='vector-add']")).to_be_visible()
        page.page.evaluate(CLOSE_DASHBOARD)
        page.page.wait_for_timeout(1_000)
        to.keep("labs", page.page.screenshot())


def memory(browser: Browser, lab: Lab, url: str, to: Pictures) -> None:
    """The calculator of a model's memory, of a GPU that is too small."""
    arguments = '"llama-3-8b", precision="bf16", fits="80GB"'
    cell = f"import warpbook\nwarpbook.memory({arguments})"
    with opened(browser) as page:
        page.open(url, lab.write_notebook("memory.ipynb", [cell]))
        page.page.evaluate(CLOSE_DASHBOARD)
        page.execute("application:toggle-left-area")
        page.run(0)
        expect(page.output(0).locator(".warpbook-held img")).to_be_visible()
        page.page.wait_for_timeout(1_000)
        to.keep("memory", page.page.screenshot())


PEOPLE = (
    ("ada", "Ada", "Lovelace", "correct/grid_stride.cu"),
    ("bob", "Bob", "Noyce", "wrong/no_bound.cu"),
    ("emmy", "Emmy", "Noether", "correct/one_element_each.cu"),
    ("alan", "Alan", "Turing", "wrong/nan_becomes_zero.cu"),
    ("mary", "Mary", "Somerville", ""),
)


def a_class(browser: Browser, folder: Path, to: Pictures) -> None:
    """The class of one lab, as its instructor sees it."""
    with class_hub(folder) as hub:
        grace = Visitor(hub, "grace").log_in()
        rows = "".join(f"{n},{first},{last},monday\n" for n, first, last, _ in PEOPLE)
        csv = f"username,first_name,last_name,section\n{rows}"
        grace.done(f"courses/{COURSE}/roster", {"csv": csv})
        lab = publish(grace, int(time.time() * 1000))
        path = f"courses/{COURSE}/labs/{lab}/submissions"
        for name, _, _, source in PEOPLE:
            if source:
                learner = Visitor(hub, name).log_in()
                text = (LAB_SOLUTIONS / source).read_text()
                submission = learner.done(path, {"source": text})["submission"]

        def graded() -> bool | None:
            state = grace.get(f"courses/{COURSE}/submissions/{submission}").json()
            return state["state"] == "graded" or None

        wait_for("the results", graded, 120)
        context = browser.new_context(viewport=SIZE)
        page = context.new_page()
        page.goto(hub.service_url)
        page.fill("#username_input", "grace")
        page.fill("#password_input", hub.passwords()["staff"])
        page.click("#login_submit")
        page.wait_for_url("**/services/warpbook/**")
        page.goto(f"{hub.service_url}courses/{COURSE}/class")
        expect(page.locator("#class tbody tr")).to_have_count(len(PEOPLE))
        page.wait_for_timeout(1_000)
        to.keep("class", page.screenshot(clip={"x": 0, "y": 0, **SIZE, "height": 500}))
        context.close()


def terminal(to: Pictures) -> None:
    """A trace's report on a terminal."""
    warpbook = Path(sys.executable).with_name("warpbook")
    words = ["analyze", str(TRACE_FILE)]
    done = subprocess.run(
        [warpbook, *words], capture_output=True, text=True, check=True
    )
    to.keep_text("terminal", terminal_svg(f"warpbook analyze {TRACE}", done.stdout))


def hover(over: Locator, share: float) -> None:
    """Point at a share of a chart's width."""
    box = over.bounding_box()
    assert box is not None
    over.hover(position={"x": box["width"] * share, "y": box["height"] / 2})


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description="Take the pictures of the docs.")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "pictures")
    given = parser.parse_args()
    to = Pictures(given.to, given.only)
    if to.wants("terminal"):
        terminal(to)
    expect.set_options(timeout=TIMEOUT_MS)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(
            executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        parts: list[tuple[tuple[str, ...], Callable[..., None]]] = [
            (("dashboard", "chart", "explore"), live),
            (("report-notebook", "report-tab", "timeline"), reports),
            (("stalls",), stalls),
            (("labs", "lab-result"), labs),
            (("memory",), memory),
        ]
        wanted = [take for names, take in parts if to.wants(*names)]
        if wanted:
            lab = Lab(folder / "lab")
            with lab.serve() as url:
                for take in wanted:
                    take(browser, lab, url, to)
        if to.wants("class"):
            (folder / "class").mkdir()
            a_class(browser, folder / "class", to)
        browser.close()


if __name__ == "__main__":
    main()
