"""How soon a day of eight GPUs is drawn in the browser, from the archive.

    python benchmarks/archive_paint.py [--repeats 5] [--write FILE]

The archive holds a day of eight GPUs of the stub library, a frame a second, so that its
summaries have as many rows as those of 10 Hz. On a fresh page whose eight GPUs are
unfolded, the window is set to a day. Measured in the page: from the choice until every
answer has come and a chart's lines are stroked after it.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.browser import GPUS, VIEWS, WINDOW
from benchmarks.report import ask, spread, tell
from benchmarks.server import Server
from benchmarks.stream import WARPBOOK, viewing
from tests.programs import program
from tests.stub_nvml import StubNvml, build
from warpbook_monitors.archive.archive import FILE_NAME
from warpbook_monitors.archive.database import connect, transaction
from warpbook_monitors.archive.segments import next_merge
from warpbook_monitors.archive.tail import Tail, unpack_rows
from warpbook_monitors.frames import Device, Devices, Frame

_DAY_S = 86_400
_SAMPLED_S = 6.0
_NOTE_STROKES = """() => {
    window.strokes = [];
    const { prototype } = CanvasRenderingContext2D;
    const stroke = prototype.stroke;
    prototype.stroke = function (...path) {
        window.strokes.push(performance.now());
        return stroke.apply(this, path);
    };
}"""
_CHOOSE_A_DAY = """async () => {
    const select = document.querySelector('.wb-dashboard [aria-label="Time window"]');
    const day = [...select.options].find(({ label }) => label === "1 day");
    performance.clearResourceTimings();
    const begun = performance.now();
    select.value = day.value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    await new Promise(done => setTimeout(done, 5000));
    const answers = performance.getEntriesByType("resource")
        .filter(({ name, responseEnd }) =>
            name.includes("history/detail") && responseEnd < begun + 4000);
    const came = Math.max(...answers.map(({ responseEnd }) => responseEnd));
    const stroked = window.strokes.find(time => time > came);
    return [answers.length, came - begun, stroked - begun];
}"""


def sample(folder: Path, stub: StubNvml) -> tuple[tuple[Device, ...], list[Frame]]:
    """Some seconds of what a server reads, and of which devices."""
    option = f"--WarpbookApp.archive_folder={folder / 'sample'}"
    with (
        Server(WARPBOOK.python, folder, stub.env, (option,)) as server,
        viewing(WARPBOOK, 1, server),
    ):
        time.sleep(_SAMPLED_S)
    with contextlib.closing(connect(folder / "sample" / FILE_NAME)) as connection:
        rows = connection.execute("SELECT messages FROM recent ORDER BY number")
        messages = [
            message
            for messages in unpack_rows(packed for (packed,) in rows)
            for message in messages
        ]
    devices = next(
        message.devices for message in messages if isinstance(message, Devices)
    )
    return devices, [message for message in messages if isinstance(message, Frame)]


def fill(folder: Path, devices: tuple[Device, ...], frames: list[Frame]) -> None:
    """Make a day of these frames, in an order of chance, until a minute ago."""
    dice = random.Random(15)
    begin_ms = (time.time() - 60 - _DAY_S) * 1000
    with contextlib.closing(connect(folder / FILE_NAME)) as connection:
        tail = Tail()
        for hour in range(24):
            seqs = range(hour * 3600, (hour + 1) * 3600)
            batch = [
                replace(dice.choice(frames), seq=seq, time_ms=begin_ms + seq * 1000)
                for seq in seqs
            ]
            tail.write(connection, [(frame, devices) for frame in batch])
        with transaction(connection):
            while next_merge(connection, time.time() * 1000):
                pass


def measure(server: Server) -> tuple[int, float, float]:
    """Answers, and ms until all had come and until lines were stroked after."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program("chromium"),
            args=["--no-sandbox", "--no-proxy-server", "--disable-gpu"],
        )
        page = browser.new_context(viewport=WINDOW).new_page()
        page.goto(f"{server.url}lab?reset&token={server.token}")
        page.wait_for_selector(".jp-Launcher")
        VIEWS[0].open(page)
        page.wait_for_timeout(4000)
        page.evaluate(_NOTE_STROKES)
        answers, came_ms, stroked_ms = page.evaluate(_CHOOSE_A_DAY)
        browser.close()
    return int(answers), float(came_ms), float(stroked_ms)


def main() -> None:
    """Fill an archive, then open so many pages, each in a browser of its own."""
    options = ask(__doc__, repeats=5)
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stub = StubNvml(build(folder / "lib"), folder / "state", *["h200"] * GPUS)
        stub.no_delays()
        devices, frames = sample(folder, stub)
        fill(folder / "day", devices, frames)
        (folder / "home").rename(folder / "first-home")
        served = (
            f"--WarpbookApp.archive_folder={folder / 'day'}",
            "--LabApp.expose_app_in_browser=True",
        )
        with Server(WARPBOOK.python, folder, stub.env, served) as server:
            for _ in range(options.repeats):
                runs.append(measure(server))
                print(runs[-1], flush=True)
    answers, came_ms, stroked_ms = zip(*runs, strict=True)
    tell(
        options,
        "A day in the browser",
        f"Median (least to most) of {options.repeats} fresh pages, {GPUS} GPUs "
        f"unfolded, {min(answers)} to {max(answers)} answers a page.\n\n"
        "| until | ms |\n| --- | --- |\n"
        f"| every answer has come | {spread(came_ms, 0)} |\n"
        f"| lines are drawn after it | {spread(stroked_ms, 0)} |",
    )


if __name__ == "__main__":
    main()
