"""Film the short recordings of the docs anew: `make recordings`, or some by name.

    python tools/recordings.py [--only dashboard report lab] [--to docs/pictures]

Like the pictures they are of the product itself in Chromium, without a GPU: what is
live is the recording that ships, labelled REPLAY, and the report is of a trace from a
real GPU. Each is an animated WebP of at most 600 KB, which browsers and forges show.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / part) for part in (".", "extension", "labs", "monitors")]

from pictures import (
    CLOSE_DASHBOARD,
    LAB_SOLUTIONS,
    TRACE,
    TRACE_FILE,
    opened,
)
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import TIMEOUT_MS
from tests.programs import program

WIDTH = 960
MOST_BYTES = 600_000
#: tried until a film is small enough
_QUALITIES = (70, 50, 35, 20)
#: how long a picture stays that a reader must read
READ_MS = 2_500
#: between pictures of what moves
_STEP_MS = 400
_REPLACE_CELL = """([cell, text]) => {
    const panel = window.jupyterapp.shell.currentWidget;
    panel.content.widgets[cell].model.sharedModel.setSource(text);
}"""


class Film:
    """Pictures of a page, and how long each stays."""

    def __init__(self, page: Page) -> None:
        """Begin without a picture."""
        self._page = page
        self._frames: list[Image.Image] = []
        self._shown_ms: list[int] = []

    def show(self, shown_ms: int = READ_MS) -> None:
        """Add the page as it is now; one that has not changed stays longer."""
        png = self._page.screenshot()
        image = Image.open(io.BytesIO(png)).convert("RGB")
        image = image.resize((WIDTH, image.height * WIDTH // image.width))
        if self._frames and self._frames[-1] == image:
            self._shown_ms[-1] += shown_ms
            return
        self._frames.append(image)
        self._shown_ms.append(shown_ms)

    def follow(self, seconds: float) -> None:
        """Film what moves by itself."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            began_s = time.monotonic()
            self.show(_STEP_MS)
            spent_ms = (time.monotonic() - began_s) * 1000
            self._page.wait_for_timeout(max(_STEP_MS - spent_ms, 0))

    def save(self, path: Path) -> None:
        """Write it with the best quality that fits."""
        first, *others = self._frames
        for quality in _QUALITIES:
            packed = io.BytesIO()
            first.save(
                packed,
                "WEBP",
                save_all=True,
                append_images=others,
                duration=self._shown_ms,
                loop=0,
                quality=quality,
                method=4,
            )
            if packed.tell() <= MOST_BYTES:
                path.write_bytes(packed.getvalue())
                seconds = sum(self._shown_ms) / 1000
                print(f"{path.name}  {packed.tell():,} bytes, {seconds:.0f} s")
                return
        sys.exit(f"{path.name}: {packed.tell():,} bytes; {MOST_BYTES:,} are allowed")


def dashboard(browser: Browser, lab: Lab, url: str) -> Film:
    """Charts that move beside the tour, and the values of one moment."""
    with opened(browser) as page:
        page.open(url, TOUR)
        code = [n for n, cell in enumerate(page.cells()) if cell["cell_type"] == "code"]
        for number in code[:2]:
            page.run(number)
        page.wait_moving(page.dashboard)
        page.page.wait_for_timeout(30_000)
        film = Film(page.page)
        film.follow(6)
        chart = page.dashboard.get_by_label("What the chip does", exact=True).first
        page.bring_to_see(chart, chart.locator("canvas"))
        over = chart.locator(".u-over")
        box = over.bounding_box()
        assert box is not None
        for share in (0.4, 0.6, 0.8):
            over.hover(position={"x": box["width"] * share, "y": box["height"] / 2})
            film.show(1_200)
        film.follow(3)
        return film


def report(browser: Browser, lab: Lab, url: str) -> Film:
    """A trace's report below a cell, then as a document with its timeline."""
    shutil.copy(TRACE_FILE, lab.notebooks / TRACE)
    cell = f'import warpbook\nwarpbook.analyze("{TRACE}")'
    with opened(browser) as page:
        page.open(url, lab.write_notebook("attention.ipynb", [cell]))
        page.page.evaluate(CLOSE_DASHBOARD)
        page.execute("application:toggle-left-area")
        film = Film(page.page)
        film.show(1_500)
        page.run(0)
        expect(page.output(0).locator(".warpbook-report")).to_be_visible()
        page.page.wait_for_timeout(500)
        film.show()
        page.execute("docmanager:open", path=TRACE)
        tab = page.page.locator(".wb-report-tab:visible")
        expect(tab.locator(".wb-cell-verdict")).to_be_visible()
        page.page.wait_for_timeout(1_000)
        film.show()
        for name in ("Kernels and operators", "Figures", "Timeline"):
            page.open_part(tab, name)
            page.page.wait_for_timeout(1_500)
            film.show()
        return film


def lab(browser: Browser, lab: Lab, url: str) -> Film:
    """A check that fails, the line that it names mended, and the pass."""
    wrong = (LAB_SOLUTIONS / "wrong/no_bound.cu").read_text()
    right = (LAB_SOLUTIONS / "correct/one_element_each.cu").read_text()
    cells = (
        '%load_ext warpbook\nimport warpbook\nlab = warpbook.labs.open("vector-add")',
        f"%%lab vector-add\n{wrong}",
    )
    with opened(browser) as page:
        page.open(url, lab.write_notebook("first-lab.ipynb", cells))
        page.page.evaluate(CLOSE_DASHBOARD)
        page.execute("application:toggle-left-area")
        page.run(0)
        page.scroll_to(1)
        film = Film(page.page)
        film.show(1_500)
        page.run(1)
        expect(page.output(1)).to_contain_text("vector-add: failed")
        page.page.wait_for_timeout(500)
        film.show(4_000)
        page.page.evaluate(_REPLACE_CELL, [1, f"%%lab vector-add\n{right}"])
        page.scroll_to(1)
        film.show()
        page.run(1)
        expect(page.output(1)).not_to_contain_text("vector-add: failed")
        page.page.wait_for_timeout(500)
        film.show(4_000)
        return film


SCENES = {"dashboard": dashboard, "report": report, "lab": lab}


def main() -> None:
    """Film them."""
    parser = argparse.ArgumentParser(description="Film the recordings of the docs.")
    parser.add_argument("--only", nargs="+", default=list(SCENES), choices=SCENES)
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "pictures")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=TIMEOUT_MS)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        served = Lab(Path(name) / "lab")
        with served.serve() as url:
            for scene in options.only:
                film = SCENES[scene](browser, served, url)
                film.save(options.to / f"recording-{scene}.webp")
        browser.close()


if __name__ == "__main__":
    main()
