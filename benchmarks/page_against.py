"""What the page costs the browser, beside an older version of warpbook in turns.

    python benchmarks/page_against.py --against COMMIT [--rounds 2] [--write FILE]

The older version is checked out and built in a temporary folder. Each round takes the
turns old, new, new, old: a fresh server, which plays the recording that ships, and a
fresh browser with a notebook and the dashboard beside it. Measured: the time from the
page's address to charts that move; the main thread's time while the dashboard is live,
with one GPU and with eight (the recording's, eight times); and to open the report of a
simulated run with 20,000 events. Times of the main thread are CPU
time (DevTools' Performance.getMetrics with threadTicks), since other work may share
the machine; those until something is seen are wall time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from playwright.sync_api import Playwright, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.page_checkout import Checkout, two_versions
from benchmarks.report import put_section, spread
from tests.e2e.lab import Lab
from tests.e2e.lab_page import TIMEOUT_MS, LabPage
from tests.programs import program
from warpbook_monitors.recordings.replay import SHIPPED

HEADING = "The page, beside an older version"
WINDOW = {"width": 1500, "height": 1000}
NOTEBOOK = "page.ipynb"
EVENTS = 20_000
TITLE = "simulated run"
_WARM_UP_S = 6.0
#: frames in which a chart of the dashboard was stroked, in ms since the page's address
_NOTE_STROKES = """() => {
    window.strokes_ms = [];
    const { prototype } = CanvasRenderingContext2D;
    const stroke = prototype.stroke;
    prototype.stroke = function (...path) {
        const now = document.timeline.currentTime;
        if (window.strokes_ms.length < 5 && window.strokes_ms.at(-1) !== now
            && this.canvas.closest?.(".wb-dashboard"))
            window.strokes_ms.push(now);
        return stroke.apply(this, path);
    };
}"""
_ARE_MOVING = "() => window.strokes_ms.length === 5"
#: of one version in one turn: what was measured, by its name
Figures = dict[str, float]


class MainThread:
    """The CPU time of a page's main thread."""

    def __init__(self, page: LabPage) -> None:
        """Begin to count, before the page has an address."""
        self._devtools = page.page.context.new_cdp_session(page.page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read_ms(self) -> tuple[float, float]:
        """All tasks so far, and of them scripts."""
        metrics = {
            metric["name"]: 1000 * metric["value"]
            for metric in self._devtools.send("Performance.getMetrics")["metrics"]
        }
        return metrics["TaskDuration"], metrics["ScriptDuration"]


def write_recording(file: Path, gpus: int) -> None:
    """Write the recording that ships with its first GPU so many times."""
    with gzip.open(SHIPPED, "rt") as shipped, gzip.open(file, "wt") as output:
        for line in shipped:
            message = json.loads(line)
            if message["type"] == "hello":
                first = message["devices"][0]
                message["devices"] = [
                    {**first, "id": f"{first['id'][:-2]}{index:02}", "index": index}
                    for index in range(gpus)
                ]
            elif message["type"] == "frame":
                reading = next(one for one in message["readings"] if one["device"] == 0)
                message["readings"] = [
                    {**reading, "device": index} for index in range(gpus)
                ]
            output.write(json.dumps(message) + "\n")


def measure(
    playwright: Playwright, version: Checkout, gpus: int, seconds: float
) -> Figures:
    """Serve a version, open its page, and do what is measured."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording = folder / "recording.jsonl.gz"
        write_recording(recording, gpus)
        lab = Lab(folder, **version.env)
        config = lab.home / ".jupyter" / "jupyter_server_config.json"
        config.write_text(json.dumps({"WarpbookApp": {"replay_file": str(recording)}}))
        cell = (
            f"import sys; sys.path.insert(0, {str(version.root)!r})\n"
            f"from tests.many_events import hand_in; hand_in({EVENTS}, {TITLE!r})"
        )
        lab.write_notebook(NOTEBOOK, [cell])
        browser = playwright.chromium.launch(
            executable_path=program("chromium"),
            args=["--no-sandbox", "--no-proxy-server", "--disable-gpu"],
        )
        with lab.serve() as url:
            page = LabPage(browser.new_context(viewport=WINDOW).new_page())
            figures = _live(page, url, seconds, f"{gpus} GPU{'s' * (gpus > 1)}")
            if gpus == 1:
                figures |= _report(page)
            page.shut_down_kernel()
            browser.close()
    return figures


def _live(page: LabPage, url: str, seconds: float, gpus: str) -> Figures:
    page.page.add_init_script(f"({_NOTE_STROKES})()")
    thread = MainThread(page)
    page.open(url, NOTEBOOK)
    page.page.wait_for_function(_ARE_MOVING)
    until_moving_ms, _ = thread.read_ms()
    strokes_ms = page.page.evaluate("() => window.strokes_ms")
    page.page.wait_for_timeout(1000 * _WARM_UP_S)
    frames, begin_s = page.frames, time.monotonic()
    begin_ms = thread.read_ms()
    page.page.wait_for_timeout(1000 * seconds)
    end_ms = thread.read_ms()
    took_s = time.monotonic() - begin_s
    all_ms, script_ms = (
        (end - begin) / took_s for begin, end in zip(begin_ms, end_ms, strict=True)
    )
    return {
        f"{gpus}: first line of a chart, wall ms": strokes_ms[0],
        f"{gpus}: charts move, wall ms": strokes_ms[-1],
        f"{gpus}: main thread until charts move, ms": until_moving_ms,
        f"{gpus}: live, main thread, ms per s": all_ms,
        f"{gpus}: live, of which script, ms per s": script_ms,
        f"{gpus}: live, frames per s": (page.frames - frames) / took_s,
    }


def _report(page: LabPage) -> Figures:
    thread = MainThread(page)
    page.run(0)
    link = page.dashboard.locator(".wb-reports .wb-link", has_text=TITLE).first
    link.scroll_into_view_if_needed()
    begin_s, (begin_ms, _) = time.monotonic(), thread.read_ms()
    link.click()
    expect(page.drawer.locator(".wb-cell-verdict")).to_be_visible()
    opened_s, (opened_ms, _) = time.monotonic(), thread.read_ms()
    return {
        "report opens, wall ms": 1000 * (opened_s - begin_s),
        "report opens, main thread, ms": opened_ms - begin_ms,
    }


def run(commit: str, rounds: int, seconds: float) -> list[tuple[Figures, Figures]]:
    """Take turns; give pairs of what the older version and this one needed."""
    pairs = []
    with (
        tempfile.TemporaryDirectory() as name,
        two_versions(commit, Path(name)) as versions,
        sync_playwright() as playwright,
    ):
        expect.set_options(timeout=TIMEOUT_MS)

        def turn(version: Checkout) -> Figures:
            figures: Figures = {}
            for gpus in (1, 8):
                figures |= measure(playwright, version, gpus, seconds)
            print(version.name, figures, flush=True)
            return figures

        for _ in range(rounds):
            old, new = turn(versions[0]), turn(versions[1])
            pairs.append((old, new))
            new, old = turn(versions[1]), turn(versions[0])
            pairs.append((old, new))
    return pairs


def table(commit: str, pairs: list[tuple[Figures, Figures]]) -> str:
    """A row for each measure: both versions, and the ratio pair by pair."""
    values: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for pair in pairs:
        for side, figures in enumerate(pair):
            for name, value in figures.items():
                values[name][side].append(value)
    lines = [
        f"| what | {commit} | this version | this over {commit} |",
        "|---|---|---|---|",
    ]
    for name, (old, new) in values.items():
        ratios = [after / before for before, after in zip(old, new, strict=True)]
        digits = 0 if statistics.median(old) >= 100 else 1
        lines.append(
            f"| {name} | {spread(old, digits)} | {spread(new, digits)} "
            f"| {spread(ratios, 2)} |"
        )
    turns = f"Median (lowest to highest) of {len(pairs)} turns of each."
    return "\n".join([turns, "", *lines])


def main() -> None:
    """Measure, print, and write the report where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", required=True, metavar="COMMIT")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--write", type=Path, help="put the section into this file")
    options = parser.parse_args()
    pairs = run(options.against, options.rounds, options.seconds)
    text = table(options.against, pairs)
    print(text)
    if options.write:
        command = (
            f"python benchmarks/page_against.py --against {options.against} "
            f"--rounds {options.rounds} --seconds {options.seconds:g}"
        )
        put_section(options.write, HEADING, command, text)


if __name__ == "__main__":
    main()
