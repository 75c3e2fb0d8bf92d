"""What the browser tests do over and over with a page: open it, run cells, look."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import ConsoleMessage, Locator, Page, WebSocket, expect

from tests.e2e.lab import BASE_URL
from tests.programs import wait_for

#: busy machines are slow; nothing here waits this long unless it is broken
TIMEOUT_MS = 120_000

#: what toasts said; most are gone after seconds
_REMEMBER_TOASTS = """
window.toasts = new Set();
new MutationObserver(() => {
    document.querySelectorAll(".Toastify__toast").forEach(
        toast => window.toasts.add(toast.textContent));
}).observe(document, { subtree: true, childList: true, characterData: true });
"""

_ASK_THE_SERVER = """async () => {
    const base = JSON.parse(
        document.getElementById("jupyter-config-data").textContent).baseUrl;
    await (await fetch(`${base}warpbook/api/v1/capabilities`)).text();
}"""

# the first notebook that is open, as JupyterLab's own object
_PANEL = """\
([...window.jupyterapp.shell.widgets("main")]
    .find(each => each.content?.notebookConfig))\
"""


class LabPage:
    """JupyterLab in a browser's page: one notebook, and the dashboard beside it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        #: frames of our stream that have arrived
        self.frames = 0
        #: what the console said was wrong, and all that it said
        self.errors: list[str] = []
        self._console: list[str] = []
        self.status_item = page.locator(".wb-status")
        self.dashboard = page.locator(".wb-dashboard")
        self.drawer = page.locator(".wb-drawer")
        self.monitor = page.locator(".wb-widget")
        self.panel = page.locator(".wb-panel")
        #: what has come over our stream, parsed
        self.received: list[dict[str, Any]] = []
        #: what went the other way since the stream was opened last
        self.sent: list[dict[str, Any]] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.add_init_script(_REMEMBER_TOASTS)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self._note(error.stack or str(error)))
        page.on("websocket", self._follow)

    def open(self, lab_url: str, notebook: str, within_ms: float = TIMEOUT_MS) -> None:
        """Open a notebook with nothing else in the way; its kernel is ready then."""
        url = urlsplit(lab_url)
        path = f"{BASE_URL}lab/tree/{quote(notebook)}"
        self.goto(f"{url.scheme}://{url.netloc}{path}?reset&{url.query}", within_ms)

    def goto(self, url: str, within_ms: float = TIMEOUT_MS) -> None:
        """Go to an address at which a notebook is opened; its kernel is ready then."""
        self.page.goto(url)
        self.wait_idle(within_ms)

    def reload(self) -> None:
        """Load the page anew; the notebook's kernel is ready then."""
        self.page.reload()
        self.wait_idle()

    def show_panel(self) -> None:
        """Show the side panel."""
        self.execute("warpbook:panel")
        expect(self.panel).to_be_visible()

    def execute(self, command: str, **args: object) -> None:
        """Run a command of JupyterLab."""
        self.page.evaluate(
            """async ([command, args]) => {
                // what a command gives may be a widget, which can't come over
                await window.jupyterapp.commands.execute(command, args);
            }""",
            [command, args],
        )

    def wait_idle(self, within_ms: float = TIMEOUT_MS) -> None:
        """Wait for the kernel: a cell that is run before is lost without a word."""
        self.wait_status("idle", within_ms)

    def wait_status(self, status: str, within_ms: float = TIMEOUT_MS) -> None:
        """Wait until the page takes the kernel for idle or busy."""
        self.page.wait_for_function(
            f"""status => {{
                const panel = window.jupyterapp && {_PANEL};
                return panel && panel.content.widgets.length > 0
                    && panel.sessionContext.session?.kernel?.status === status;
            }}""",
            arg=status,
            timeout=within_ms,
        )

    def run(self, cell: int, wait: bool = True) -> None:
        """Run a cell of the notebook, and wait until it is done.

        A machine that is busy may lose it all the same: it is asked once more.
        """
        for _ in range(2):
            count = self.page.evaluate(
                f"""async ([cell, wait]) => {{
                    {_PANEL}.content.activeCellIndex = cell;
                    const {{ commands }} = window.jupyterapp;
                    const done = commands.execute("notebook:run-cell");
                    if (wait) await done;
                    return {_PANEL}.content.widgets[cell].model.executionCount;
                }}""",
                [cell, wait],
            )
            if not wait or count is not None:
                return
            self.wait_idle()
        raise AssertionError(f"cell {cell} was not run")

    def run_all(self) -> None:
        """Run the notebook top to bottom, as far as it goes."""
        self.page.evaluate(
            "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
        )

    def cells(self) -> list[dict[str, Any]]:
        """The notebook as it would be saved now."""
        return list(self.page.evaluate(f"() => {_PANEL}.model.toJSON().cells"))

    def output(self, cell: int) -> Locator:
        """What a cell shows, scrolled into view."""
        self.scroll_to(cell)
        index = f"[data-windowed-list-index='{cell}']"
        return self.page.locator(f".jp-Notebook {index} .jp-Cell-outputArea")

    def toasts(self) -> list[str]:
        """What toasts have said since the page was loaded, however soon they went."""
        return list(self.page.evaluate("() => [...window.toasts]"))

    def wait_for_toast(self, words: str) -> None:
        """Wait until a toast has said this."""
        self.page.wait_for_function(
            "words => [...window.toasts].some(each => each.includes(words))", arg=words
        )

    def wait_running(self, cell: int) -> None:
        """Wait until a cell runs, or will when the kernel comes to it.

        The kernel's status may be that of what JupyterLab asks it beside the cell.
        """
        self.scroll_to(cell)
        index = f"[data-windowed-list-index='{cell}']"
        prompt = self.page.locator(f".jp-Notebook {index} .jp-InputPrompt")
        expect(prompt).to_have_text("[*]:")

    def scroll_to(self, cell: int) -> None:
        """Bring a cell into view."""
        self.page.evaluate(f"cell => {_PANEL}.content.scrollToItem(cell)", cell)

    def restart_kernel(self) -> None:
        """Restart it without being asked."""
        self.page.evaluate(f"() => {_PANEL}.sessionContext.session.kernel.restart()")
        self.wait_idle()

    def interrupt_kernel(self) -> None:
        """Interrupt the cell that runs."""
        self.page.evaluate(f"() => {_PANEL}.sessionContext.session.kernel.interrupt()")
        self.wait_idle()

    def point_at_newest(self, view: Locator, pattern: str) -> None:
        """Point where the first chart draws the newest frame, until it tells this.

        What grows above the chart may push it from under the pointer.
        """
        plot = view.locator(".u-over").first
        tip = view.locator(".wb-tip").first

        def tip_matches() -> bool | None:
            box = plot.bounding_box()
            if box is None:
                return None
            plot.hover(position={"x": box["width"] - 6, "y": box["height"] / 2})
            plot.hover(position={"x": box["width"] - 4, "y": box["height"] / 2})
            self.page.wait_for_timeout(200)
            return bool(re.search(pattern, tip.inner_text())) or None

        wait_for(f"a tip that tells {pattern}", tip_matches)

    def bring_to_see(self, part: Locator, drawn: Locator) -> None:
        """Bring a part into view until what is drawn in it is seen.

        What nobody sees isn't drawn, and what grows above may push it out of sight.
        """

        def seen() -> bool | None:
            part.scroll_into_view_if_needed()
            return drawn.is_visible() or None

        wait_for(f"{drawn} in sight", seen)

    def open_report(self, title: str) -> None:
        """Open the newest report of this title from the dashboard's list.

        What grows above may move it between two events of a click.
        """
        link = self.dashboard.locator(".wb-report-list .wb-link", has_text=title).first

        def opened() -> bool | None:
            link.click()
            return title in (self.drawer.text_content() or "") or None

        wait_for(f"the report {title}", opened)

    def open_part(self, report: Locator, name: str) -> None:
        """Choose one of a report's tabs."""
        report.get_by_role("tab", name=name, exact=True).click()

    def tab_to(self, wanted: Locator, most: int = 10) -> None:
        """Reach a control by the Tab key."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if wanted.evaluate("wanted => wanted === document.activeElement"):
                return
        raise AssertionError(f"{wanted} is not reached by {most} Tabs")

    def wait_quiet(self) -> None:
        """Wait until a hidden page has given its frames back and none comes."""

        def unsubscribed() -> bool | None:
            self.page.wait_for_timeout(100)
            # a hidden page that had to connect again asks for nothing
            kinds = [message["type"] for message in self.sent]
            return not kinds or kinds[-1] == "unsubscribe" or None

        def quiet() -> bool | None:
            before = self.frames
            # messages are taken in order: an answer says that earlier ones are done
            self.page.evaluate(_ASK_THE_SERVER)
            self.page.wait_for_timeout(1_000)
            return self.frames == before or None

        wait_for("a page that takes no more frames", unsubscribed)
        wait_for("no more frames", quiet)

    def forgive_lost_server(self) -> None:
        """Forget what JupyterLab and the browser say of a time without a server.

        What our own code says of it stays an error.
        """
        # a handshake that is cut short has no net::ERR_
        browser = ("WebSocket connection to ", "Failed to load resource: ")
        self.errors = [
            error
            for error in self.errors
            if "warpbook" in error
            and "net::ERR_" not in error
            and not error.startswith(browser)
        ]

    def set_theme(self, name: str) -> None:
        """Change JupyterLab's theme."""
        self.page.evaluate(
            """theme => window.jupyterapp.commands.execute(
                "apputils:change-theme", { theme })""",
            name,
        )
        self.page.wait_for_selector(
            f"body[data-jp-theme-name='{name}']", state="attached"
        )

    def is_dark(self, view: Locator) -> bool:
        """Whether a view's own background is dark."""
        color = str(view.evaluate("view => getComputedStyle(view).backgroundColor"))
        red, green, blue = (int(part) for part in re.findall(r"\d+", color)[:3])
        return red + green + blue < 3 * 128

    def close_notebook(self) -> None:
        """Close the notebook without saving it."""
        self.page.evaluate(f"() => {_PANEL}.dispose()")

    def shut_down_kernel(self) -> None:
        """End the notebook's kernel, which would outlive the page."""
        self.page.evaluate(
            f"""async () => {{
                const panel = window.jupyterapp && {_PANEL};
                await panel?.sessionContext.session?.shutdown().catch(() => {{}});
            }}"""
        )

    def open_drawer(self, press: Callable[[], None]) -> None:
        """Press until the drawer opens.

        On a machine that is busy a list may be drawn anew between what Playwright saw
        and where it pressed, and a press beside it does nothing.
        """
        for _ in range(5):
            press()
            with contextlib.suppress(AssertionError):
                expect(self.drawer).to_be_visible(timeout=TIMEOUT_MS / 5)
                return
        expect(self.drawer).to_be_visible()

    def wait_moving(self, view: Locator, frames: int = 10) -> None:
        """Wait until the first chart of a view has moved and more frames have come."""
        plot = view.locator(".wb-plot").first
        before = self.frames
        seen = set()

        def moved() -> bool | None:
            # what nobody sees isn't drawn; what grows above may push it out of sight
            plot.scroll_into_view_if_needed()
            canvas = view.locator("canvas").first
            seen.add(canvas.evaluate("canvas => canvas.toDataURL()"))
            self.page.wait_for_timeout(100)
            return (len(seen) > 4 and self.frames - before >= frames) or None

        wait_for("a chart that moves", moved)

    def wait_for_figure(self, place: Locator) -> None:
        """Wait until a figure is drawn: more than one colour on a canvas."""
        drawn_on = ":is(.bk-Figure, .bk-Plot) canvas, .wb-timeline-canvas"
        canvases = place.locator(drawn_on)
        expect(canvases.first).to_be_visible()

        def drawn() -> bool | None:
            # found anew each time: what is drawn anew has other canvases
            is_drawn = canvases.evaluate_all(
                """canvases => canvases.some(canvas => {
                    const { width: w, height: h } = canvas;
                    if (!w || !h) return false;
                    const image = canvas.getContext("2d").getImageData(0, 0, w, h);
                    return new Set(new Uint32Array(image.data.buffer)).size > 8;
                })"""
            )
            self.page.wait_for_timeout(100)
            return is_drawn or None

        wait_for("a figure that is drawn", drawn)

    def description(self) -> str:
        """What a person would see and look at first where a test failed, shortly."""
        cells = f"() => window.jupyterapp && {_PANEL}?.model.toJSON().cells"
        outputs = [cell.get("outputs") for cell in self.page.evaluate(cells) or []]
        kinds = Counter(message["type"] for message in self.received)
        views = (self.dashboard, self.drawer)
        return "\n".join(
            (
                f"outputs: {json.dumps(outputs)[-800:]}",
                f"stream: {dict(kinds)}, sent: {self.sent[-2:]}",
                *("\n".join(view.all_inner_texts())[-500:] for view in views),
                *(line[-200:] for line in self._console[-4:]),
            )
        )

    def _hear(self, message: ConsoleMessage) -> None:
        self._console.append(f"{message.type}: {message.text}")
        if message.type == "error":
            self._note(f"{message.text} ({message.location['url']})")

    def _note(self, error: str) -> None:
        # JupyterLab's debugger and widgets ask each kernel by themselves, and complain
        # if it goes before it has answered
        if "Canceled future for " not in error or "extensions/warpbook" in error:
            self.errors.append(error)

    def _follow(self, socket: WebSocket) -> None:
        if urlsplit(socket.url).path == f"{BASE_URL}warpbook/api/v1/stream":
            self.sent.clear()
            socket.on("framereceived", self._count)
            socket.on("framesent", lambda sent: self.sent.append(json.loads(sent)))

    def _count(self, message: str | bytes) -> None:
        document = json.loads(message)
        self.received.append(document)
        self.frames += document["type"] == "frame"
