"""A timeline of a million events in the browser, beside one Bokeh figure with all bars.

    python benchmarks/timeline.py [--events 1000000] [--repeats 3] [--write FILE]

The same simulated events (kernels on two streams, launches, nested operators) in a
fresh headless Chromium each time, in turns: warpbook's report in JupyterLab's
dashboard, with its live charts; and one Bokeh figure with a bar for each event, alone
on a page, as one would write it first. First paint is from the click on the report, or
from opening the page, until the events are drawn. Then the view is zoomed to about a
sixteenth of the run and dragged with the mouse: frames are counted as the page's own
animation frames. Chromium has no GPU here and draws by software.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bokeh
from bokeh.embed import json_item
from bokeh.plotting import figure
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import put_section, spread
from tests.e2e.lab import Lab
from tests.e2e.lab_page import LabPage
from tests.many_events import simulated
from tests.programs import program
from warpbook_profiler.timeline.timeline import Timeline
from warpbook_profiler.timeline.timeline_body import pack, unpack

WINDOW = {"width": 1500, "height": 1000}
DRAG_S = 4.0
HEADING = "Timeline in the browser"
#: the time of each animation frame from now on
COUNT_FRAMES = """() => {
    window.frames_ms = [];
    const tick = at => {
        window.frames_ms.push(at);
        window.counting = requestAnimationFrame(tick);
    };
    window.counting = requestAnimationFrame(tick);
}"""
STOP_COUNTING = """() => {
    cancelAnimationFrame(window.counting);
    return window.frames_ms;
}"""
#: two frames later what was asked to be drawn is drawn
DRAWN = """() => new Promise(done => requestAnimationFrame(() =>
    requestAnimationFrame(() => done(performance.now()))))"""


@dataclass(frozen=True)
class Result:
    """One view, opened and dragged once."""

    first_paint_s: float
    frames_per_s: float
    longest_frame_ms: float
    heap_mib: float


def _heap_mib(page: Page) -> float:
    devtools = page.context.new_cdp_session(page)
    devtools.send("HeapProfiler.enable")
    devtools.send("HeapProfiler.collectGarbage")
    used = devtools.send("Runtime.getHeapUsage")
    return float(used["usedSize"] + used.get("backingStorageSize", 0)) / 2**20


def _drag(page: Page, place: dict[str, float]) -> tuple[float, float]:
    """Drag to and fro; give frames per second, and the longest frame in ms."""
    middle = place["x"] + place["width"] / 2
    y = place["y"] + place["height"] / 2
    page.mouse.move(middle, y)
    page.mouse.down()
    page.evaluate(COUNT_FRAMES)
    began_s, step = time.monotonic(), 0
    while time.monotonic() - began_s < DRAG_S:
        step += 1
        # there and back, 240 pixels either way
        away = abs((4 * step + 240) % 960 - 480) - 240
        page.mouse.move(middle + away, y)
        time.sleep(0.008)
    frames_ms = page.evaluate(STOP_COUNTING)
    elapsed_s = time.monotonic() - began_s
    page.mouse.up()
    gaps = [
        after - before for before, after in zip(frames_ms, frames_ms[1:], strict=False)
    ]
    longest = max(gaps, default=1000 * elapsed_s)
    return len(frames_ms) / elapsed_s, longest


def warpbook(page: Page, url: str, title: str) -> Result:
    """The report in the dashboard, which has the window for itself."""
    lab = LabPage(page)
    lab.open(url, "timeline.ipynb")
    lab.close_notebook()
    link = lab.dashboard.locator(".wb-report-list .wb-link", has_text=title).first
    link.scroll_into_view_if_needed()
    began_ms = page.evaluate("() => performance.now()")
    link.click()
    lab.open_part(lab.drawer, "Timeline")
    timeline = lab.drawer.locator(".wb-timeline")
    timeline.get_by_text(" events.").wait_for()
    lab.wait_for_figure(timeline)
    drawn_ms = page.evaluate(DRAWN)
    heap = _heap_mib(page)
    for _ in range(4):
        timeline.get_by_role("button", name="Zoom in").click()
    page.wait_for_timeout(1000)
    canvas = timeline.locator(".wb-timeline-canvas")
    canvas.scroll_into_view_if_needed()
    place: Any = canvas.bounding_box()
    return Result((drawn_ms - began_ms) / 1000, *_drag(page, place), heap)


def plain_bokeh(page: Page, url: str, title: str) -> Result:
    """One figure with all bars."""
    page.set_default_timeout(600_000)
    page.goto(f"{url}/bokeh.html")
    page.wait_for_function("() => window.Bokeh?.documents[0]?.is_idle")
    drawn_ms = page.evaluate(DRAWN)
    heap = _heap_mib(page)
    page.evaluate(
        """() => {
            const { x_range } = Bokeh.documents[0].roots()[0];
            const { start, end } = x_range;
            const middle = (start + end) / 2, half = (end - start) / 32;
            x_range.setv({ start: middle - half, end: middle + half });
        }"""
    )
    page.wait_for_timeout(1000)
    page.evaluate(DRAWN)
    place: Any = page.locator("canvas").first.bounding_box()
    return Result(drawn_ms / 1000, *_drag(page, place), heap)


CONTENDERS: dict[str, Callable[[Page, str, str], Result]] = {
    "warpbook": warpbook,
    "one Bokeh figure with all bars": plain_bokeh,
}


def _write_peer(folder: Path, events: int) -> None:
    """Write the page with all bars."""
    timeline = Timeline(unpack(pack(*simulated(events))))
    plot = figure(
        height=300, sizing_mode="stretch_width", tools="xpan,xwheel_zoom,reset"
    )
    for number, row in enumerate(timeline.columns):
        plot.hbar(
            y=number,
            left=row.spans.start_ns / 1e6,
            right=row.spans.end_ns / 1e6,
            height=0.7,
            line_color=None,
        )
    (folder / "item.json").write_text(json.dumps(json_item(plot)))
    bundle = Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js"
    (folder / "bokeh.min.js").write_bytes(bundle.read_bytes())
    (folder / "bokeh.html").write_text(
        "<!doctype html><body><div id='here'></div><script src='bokeh.min.js'></script>"
        "<script>fetch('item.json').then(answer => answer.json()).then(item =>"
        "Bokeh.embed.embed_item(item, 'here'))</script>"
    )


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve its files."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def run(events: int, repeats: int, names: list[str]) -> dict[str, list[Result]]:
    """Open each in turn."""
    results: dict[str, list[Result]] = {name: [] for name in names}
    title = f"{events} events"
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        _write_peer(folder, events)
        lab = Lab(folder)
        cell = (
            f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            f"from tests.many_events import hand_in\nhand_in({events}, {title!r})"
        )
        lab.write_notebook("timeline.ipynb", [cell])
        with lab.serve() as lab_url, _served(folder) as url:

            def opened() -> Page:
                browser = playwright.chromium.launch(
                    executable_path=program("chromium"),
                    args=["--no-sandbox", "--no-proxy-server", "--disable-gpu"],
                )
                return browser.new_context(viewport=WINDOW).new_page()

            first = opened()
            page = LabPage(first)
            page.open(lab_url, "timeline.ipynb")
            page.run(0)
            first.context.browser.close()  # type: ignore[union-attr]
            for _ in range(repeats):
                for contender in names:
                    fresh = opened()
                    where = lab_url if contender == "warpbook" else url
                    result = CONTENDERS[contender](fresh, where, title)
                    fresh.context.browser.close()  # type: ignore[union-attr]
                    print(contender, result, flush=True)
                    results[contender].append(result)
    return results


def report(results: dict[str, list[Result]]) -> str:
    """The table: median and range."""
    lines = [
        "| view | first paint s | frames per s while dragged | longest frame ms "
        "| JavaScript's memory MiB |",
        "|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        lines.append(
            f"| {name} | {spread([r.first_paint_s for r in runs], 2)} "
            f"| {spread([r.frames_per_s for r in runs], 1)} "
            f"| {spread([r.longest_frame_ms for r in runs], 0)} "
            f"| {statistics.median(r.heap_mib for r in runs):,.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the report where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=CONTENDERS, help="measure one of them")
    parser.add_argument("--write", type=Path, help="put the section into this file")
    options = parser.parse_args()
    names = [options.only] if options.only else list(CONTENDERS)
    text = report(run(options.events, options.repeats, names))
    print(text)
    if options.write:
        command = (
            f"python benchmarks/timeline.py --events {options.events} "
            f"--repeats {options.repeats}"
        )
        aims = " ".join((__doc__ or "").split("\n\n")[2].split())
        put_section(options.write, HEADING, command, f"{aims}\n\n{text}")


if __name__ == "__main__":
    main()
