"""A page of another site, or another port, gets nothing by a person's cookie."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.e2e.lab import BASE_URL, Lab
from tests.e2e.lab_page import TIMEOUT_MS

SPAN = "warpbook/api/v1/history/span?from_ms=0&to_ms=4100000000000"
FOREIGN = """<!doctype html><title>foreign</title>
<a id="link" href="{url}">free GPUs</a>
<form id="form" action="{path}"><input name="from_ms" value="0">
<input name="to_ms" value="4100000000000"><button>Go</button></form>"""


@contextlib.contextmanager
def foreign_site(url: str) -> Iterator[int]:
    """Serve a page about `url`; give its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = FOREIGN.format(url=url, path=url.partition("?")[0]).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    try:
        yield site.server_port
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


def refusals(lab: Lab) -> int:
    """How often a span was refused; to another Origin Jupyter says 404."""
    return len(re.findall(r" 40[34] GET \S+/history/span", lab.log()))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_foreign_page_gets_nothing(
    browser: Browser, lab: Lab, lab_url: str, host: str
) -> None:
    """At 4c6eb8b a link, and from another port a fetch, made the server compute."""
    ours = urlsplit(lab_url)
    url = f"{ours.scheme}://{ours.netloc}{BASE_URL}{SPAN}"
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    with foreign_site(url) as port:
        page = context.new_page()
        # the cookie, as a person who has logged in has it
        page.goto(f"{ours.scheme}://{ours.netloc}{BASE_URL}api/status?{ours.query}")
        assert context.cookies()
        for act in (
            "document.getElementById('link').click()",
            "document.getElementById('form').submit()",
            f"document.body.append(Object.assign(new Image(), {{src: '{url}'}}))",
            "document.body.append(Object.assign(document.createElement('script'),"
            f" {{src: '{url}'}}))",
            f"void fetch('{url}', {{mode: 'no-cors', credentials: 'include',"
            " referrerPolicy: 'no-referrer'}).catch(() => 0)",
            f"void fetch('{url}', {{credentials: 'include'}}).catch(() => 0)",
            f"document.body.append(Object.assign(document.createElement('iframe'),"
            f" {{src: '{url}'}}))",
        ):
            before, statuses = refusals(lab), []
            foreign = context.new_page()
            foreign.on("response", lambda r, s=statuses: s.append((r.url, r.status)))
            foreign.goto(f"http://{host}:{port}/")
            foreign.evaluate(act)
            # what an image or a script is refused, the browser may not even show
            while refusals(lab) == before:
                foreign.wait_for_timeout(50)
            assert (url.partition("?")[0], 200) not in [
                (place.partition("?")[0], status) for place, status in statuses
            ], act
            foreign.close()
        # and from the address bar nothing is computed either
        typed = page.goto(url)
        assert typed is not None and typed.status == 403
        assert "another site" in typed.text()
    context.close()


def test_a_page_of_the_server_itself_is_answered(
    browser: Browser, lab_url: str
) -> None:
    ours = urlsplit(lab_url)
    context = browser.new_context()
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(f"{ours.scheme}://{ours.netloc}{BASE_URL}api/status?{ours.query}")
    page.goto(f"{ours.scheme}://{ours.netloc}{BASE_URL}lab", wait_until="commit")
    path = f"{BASE_URL}{SPAN}"
    status = page.evaluate(f"async () => (await fetch('{path}')).status")
    assert status == 200
    export = page.request.get(
        f"{ours.scheme}://{ours.netloc}{BASE_URL}warpbook/api/v1/history/export"
        "?format=csv",
        headers={"Sec-Fetch-Site": "none"},
    )
    assert export.status == 200, "a download may be opened from the address bar"
    context.close()
