"""One browser and one server for the tests that do not disturb each other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.e2e.lab import Lab
from tests.e2e.lab_page import TIMEOUT_MS, LabPage
from tests.programs import free_port, program

# of the package and not of the session: the loop that Playwright runs in this
# thread would be in the way of other tests' loops
ONCE = "package"


@pytest.fixture(autouse=True)
def jp_asyncio_loop() -> None:
    """Instead of pytest-jupyter's, which needs that no loop runs in this thread."""


@pytest.fixture(autouse=True)
def jp_server_cleanup() -> None:
    """The same; no server lives in this process."""


@pytest.fixture(scope=ONCE)
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """A browser that keeps JupyterLab's scripts: to compile them takes seconds."""
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        profile = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=program("chromium"),
            timeout=TIMEOUT_MS,
            viewport={"width": 1500, "height": 1000},
            args=[
                "--no-sandbox",
                "--no-proxy-server",
                "--disable-gpu",
                "--disable-quic",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        yield profile
        profile.close()


@pytest.fixture(scope=ONCE)
def browser(profile: BrowserContext) -> Browser:
    """The same browser, for pages that share nothing."""
    assert profile.browser is not None
    return profile.browser


@pytest.fixture(scope=ONCE)
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A home without a GPU: a recording is played."""
    return Lab(tmp_path_factory.mktemp("lab"), free_port())


@pytest.fixture(scope=ONCE)
def lab_url(lab: Lab) -> Iterator[str]:
    with lab.serve() as url:
        yield url


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell what was on the page when a test failed."""
    report = yield
    page = getattr(item, "funcargs", {}).get("page")
    if report.when == "call" and report.failed and isinstance(page, LabPage):
        try:
            report.sections.append(("the page", page.description()))
        except PlaywrightError as error:
            report.sections.append(("the page", f"can't be read: {error}"))
    return report


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[LabPage]:
    """A page of a browser that remembers nobody; a module may have one for all."""
    with fresh_page(profile) as page:
        yield page


@contextlib.contextmanager
def fresh_page(profile: BrowserContext) -> Iterator[LabPage]:
    """Open a page on which nothing may go wrong, and forget it afterwards."""
    page = LabPage(profile.new_page())
    yield page
    errors = list(page.errors)
    # JupyterLab has its own complaints about a kernel that goes
    page.shut_down_kernel()
    forget = {"origin": page.page.evaluate("origin"), "storageTypes": "all"}
    profile.new_cdp_session(page.page).send("Storage.clearDataForOrigin", forget)
    for opened in profile.pages[1:]:
        opened.close()
    profile.clear_cookies()
    profile.clear_permissions()
    assert errors == []


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where pictures go: a folder that nobody keeps, unless WARPBOOK_SCREENSHOTS."""
    wanted = os.environ.get("WARPBOOK_SCREENSHOTS")
    folder = Path(wanted) if wanted else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    return folder
