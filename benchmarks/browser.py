"""The browser's main thread: warpbook's dashboard beside jupyterlab-nvdashboard's.

    python benchmarks/browser.py [--seconds 10] [--repeats 5] [--write FILE]

Eight GPUs of the stub library, whose values change all the time and whose calls take no
time, so that both servers keep up with 10 messages a second. In one window that has all
of it in sight: warpbook's dashboard with every GPU unfolded, nvdashboard with every
widget that it has, and JupyterLab with neither. They take turns, each on a fresh page,
after a warm-up that fills the charts. Measured by the browser itself (DevTools'
Performance.getMetrics): seconds of the page's main thread per second, of which script,
and CPU time of all of the browser's processes.
"""

from __future__ import annotations

import contextlib
import json
import math
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import ask, spread, tell
from benchmarks.server import Server
from benchmarks.stream import contenders as servers
from tests.programs import program
from tests.stub_nvml import StubNvml, build

GPUS = 8
PEER_WIDGETS = (
    "gpu-utilization-widget",
    "gpu-memory-widget",
    "gpu-resource-widget",
    "machine-resource-widget",
    "pci-throughput-widget",
    "nvlink-throughput-widget",
    "nvlink-throughput-timeseries-widget",
)
#: high enough for eight unfolded GPUs
WINDOW = {"width": 1600, "height": 8000}
#: what is drawn: uPlot's lines, or recharts' lines and bars
DRAWN = """() => {
    const { store } = window[Symbol.for("warpbook.stream.v4")] ?? {};
    return store
        ? document.querySelectorAll(".wb-device[open] .wb-legend li").length
        : document.querySelectorAll(
            ".recharts-line-curve, .recharts-bar-rectangle").length;
}"""


def _open_nothing(page: Page) -> None:
    pass


def _open_warpbook(page: Page) -> None:
    _execute(page, "warpbook:dashboard", {})
    page.wait_for_selector(".wb-dashboard .wb-device")
    page.evaluate(
        """() => document.querySelectorAll(".wb-dashboard .wb-device")
            .forEach(device => { device.open = true; })"""
    )


def _open_peer(page: Page) -> None:
    page.wait_for_function(
        "() => window.jupyterapp.commands.hasCommand('gpu-dashboard-widget:open')"
    )
    for name in PEER_WIDGETS:
        _execute(page, "gpu-dashboard-widget:open", {"id": name, "title": name})
    # beside one another: a tab behind another one would not be seen
    page.evaluate(
        """names => names.slice(1).forEach((name, index) => {
            const { shell } = window.jupyterapp;
            const all = [...shell.widgets("main")];
            const widget = all.find(({ id }) => id === name);
            shell.add(widget, "main", {
                mode: index % 2 ? "split-right" : "split-bottom", ref: names[index]
            });
        })""",
        list(PEER_WIDGETS),
    )


def _execute(page: Page, command: str, args: dict[str, str]) -> None:
    page.evaluate(
        """async ([command, args]) => {
            await window.jupyterapp.commands.execute(command, args);
        }""",
        [command, args],
    )


@dataclass(frozen=True)
class View:
    """What is open in the browser, and whose server it is of."""

    name: str
    #: of the contenders of benchmarks/stream.py
    server: str
    open: Callable[[Page], None]


VIEWS = (
    View("warpbook", "warpbook", _open_warpbook),
    View("nvdashboard", "nvdashboard, all charts", _open_peer),
    View("JupyterLab alone", "nvdashboard, all charts", _open_nothing),
)


@dataclass(frozen=True)
class Result:
    """One measured run; ratios are seconds per second."""

    main_thread_ratio: float
    script_ratio: float
    browser_cpu_ratio: float
    messages_per_s: float
    drawn: int


def measure(view: View, server: Server, warm_up_s: float, seconds: float) -> Result:
    """Open a fresh browser on the view, warm it up, and read the browser's counters."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program("chromium"),
            args=["--no-sandbox", "--no-proxy-server", "--disable-gpu"],
        )
        page = browser.new_context(viewport=WINDOW).new_page()
        messages = [0]

        def heard(_: object) -> None:
            messages[0] += 1

        page.on("websocket", lambda socket: socket.on("framereceived", heard))
        page.goto(f"{server.url}lab?reset&token={server.token}")
        page.wait_for_selector(".jp-Launcher")
        view.open(page)
        page.wait_for_timeout(1000 * warm_up_s)
        drawn = int(page.evaluate(DRAWN))
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable")

        def counters() -> dict[str, float]:
            metrics = devtools.send("Performance.getMetrics")["metrics"]
            return {counter["name"]: counter["value"] for counter in metrics}

        before, messages_before, cpu_before = counters(), messages[0], _browser_cpu_s()
        page.wait_for_timeout(1000 * seconds)
        after, messages_after, cpu_after = counters(), messages[0], _browser_cpu_s()
        browser.close()
    elapsed_s = after["Timestamp"] - before["Timestamp"]

    def ratio(name: str) -> float:
        return (after[name] - before[name]) / elapsed_s

    return Result(
        main_thread_ratio=ratio("TaskDuration"),
        script_ratio=ratio("ScriptDuration"),
        browser_cpu_ratio=(cpu_after - cpu_before) / elapsed_s,
        messages_per_s=(messages_after - messages_before) / elapsed_s,
        drawn=drawn,
    )


def _browser_cpu_s() -> float:
    total_s = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "chrom" in process.name():
                times = process.cpu_times()
                total_s += times.user + times.system
    return total_s


@contextlib.contextmanager
def changing(stub: StubNvml) -> Iterator[None]:
    """Let the GPUs' values change 20 times a second."""
    done = threading.Event()

    def change() -> None:
        while not done.wait(0.05):
            for gpu in range(GPUS):
                wave = 0.5 + 0.5 * math.sin(time.monotonic() + gpu)
                stub.set(
                    gpu,
                    utilization_percent=100 * wave,
                    memory_used_bytes=wave * (130 << 30),
                    power_mw=120_000 + 550_000 * wave,
                    temperature_celsius=35 + 40 * wave,
                    sm_clock_mhz=1000 + 900 * wave,
                    pcie_tx_kb_per_s=1e6 * wave,
                    pcie_rx_kb_per_s=2e6 * wave,
                )
                stub.set_gpm(
                    gpu,
                    SM_UTIL=100 * wave,
                    SM_OCCUPANCY=50 * wave,
                    ANY_TENSOR_UTIL=90 * wave,
                    FP32_UTIL=20 * wave,
                    DRAM_BW_UTIL=70 * wave,
                )

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def run(warm_up_s: float, seconds: float, repeats: int) -> dict[str, list[Result]]:
    """Measure every view in turn, `repeats` times."""
    results: dict[str, list[Result]] = {view.name: [] for view in VIEWS}
    pythons = {contender.name: contender.python for contender in servers()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stub = StubNvml(build(folder / "lib"), folder / "state", *["h200"] * GPUS)
        stub.no_delays()
        with changing(stub):
            for _ in range(repeats):
                for view in VIEWS:
                    with tempfile.TemporaryDirectory() as home:
                        with Server(
                            pythons[view.server],
                            Path(home),
                            stub.env,
                            ("--LabApp.expose_app_in_browser=True",),
                        ) as server:
                            _no_news(Path(home))
                            result = measure(view, server, warm_up_s, seconds)
                    print(view.name, result, flush=True)
                    results[view.name].append(result)
    return results


def _no_news(folder: Path) -> None:
    """JupyterLab asks about news at its first start, on top of everything."""
    file = (
        folder / "home/.jupyter/lab/user-settings/@jupyterlab/apputils-extension"
        "/notification.jupyterlab-settings"
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))


def report(results: dict[str, list[Result]]) -> str:
    """The table, and the peer's main-thread time over ours run by run."""
    lines = [
        "| view | main thread, ms per s | of which script | browser's CPU, % of a core "
        "| messages per s | lines and bars drawn |",
        "|---|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        lines.append(
            f"| {name} "
            f"| {spread([1000 * r.main_thread_ratio for r in runs], 0)} "
            f"| {spread([1000 * r.script_ratio for r in runs], 0)} "
            f"| {spread([100 * r.browser_cpu_ratio for r in runs], 0)} "
            f"| {spread([r.messages_per_s for r in runs], 0)} "
            f"| {statistics.median(r.drawn for r in runs):.0f} |"
        )
    pairs = list(zip(results["nvdashboard"], results["warpbook"], strict=True))
    alone = results["JupyterLab alone"]
    ratios = [
        theirs.main_thread_ratio / ours.main_thread_ratio for theirs, ours in pairs
    ]
    beyond = [
        (theirs.main_thread_ratio - base.main_thread_ratio)
        / (ours.main_thread_ratio - base.main_thread_ratio)
        for (theirs, ours), base in zip(pairs, alone, strict=True)
    ]
    lines += [
        "",
        "Main-thread time, nvdashboard over warpbook, run by run: "
        f"{spread(ratios, 1)}; of what each adds to JupyterLab alone: "
        f"{spread(beyond, 1)}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the report where asked."""
    options = ask(__doc__, warm_up=60.0, seconds=10.0, repeats=5)
    results = run(options.warm_up, options.seconds, options.repeats)
    runs = f"Median (lowest to highest) of {options.repeats} runs.\n\n"
    heading = "The browser's main thread, beside jupyterlab-nvdashboard"
    tell(options, heading, runs + report(results))


if __name__ == "__main__":
    main()
