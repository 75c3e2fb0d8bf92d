"""The browser of the hub's tests, which waits as long as a busy machine needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from playwright.sync_api import Browser, expect, sync_playwright

from tests.programs import program

#: nothing waits this long unless it is broken
TIMEOUT_MS = 120_000


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Run it for a while."""
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program("chromium"),
            timeout=TIMEOUT_MS,
            args=["--no-sandbox"],
        )
        yield browser
        browser.close()
