"""A learner's server is the learner's own program: its pages act as nobody else."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE, ROSTER, ClassHub, class_hub
from tests.programs import wait_for

#: serves one page at each address, and waits for a click to take staff's rights
EVIL_SERVER = '''
import http.server, os
from urllib.parse import urlparse
url = urlparse(os.environ["JUPYTERHUB_SERVICE_URL"])
PAGE = b"""<script>document.onclick = () => {
  const popup = window.open("PEOPLE");
  setTimeout(async () => {
    try {
      const key = popup.document.querySelector("meta[name=xsrf]").content;
      const answer = await fetch("STAFF", {
        method: "POST",
        headers: {"X-XSRFToken": key, "Content-Type": "application/json"},
        body: JSON.stringify({username: "ada", role: "assistant", section: "monday"}),
      });
      document.title = "answer " + answer.status;
    } catch (problem) {
      document.title = "stopped: " + problem.name;
    }
  }, 3000);
}</script><body>a notebook"""
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(PAGE)
    do_HEAD = do_GET
http.server.ThreadingHTTPServer((url.hostname, url.port), Handler).serve_forever()
'''


def log_in(page: Page, hub: ClassHub, host: str, name: str) -> None:
    passwords = hub.passwords()
    page.goto(f"{host}/hub/login")
    page.fill("[name=username]", name)
    page.fill("[name=password]", passwords["staff" if name == "grace" else "learners"])
    page.click("[type=submit]")
    page.wait_for_url(lambda url: "login" not in url)


def test_page_of_a_learner_takes_no_rights_of_staff(tmp_path: Path) -> None:
    not_graded = ("--cpu-slots", "0")
    with (
        class_hub(tmp_path, *not_graded, own_hosts=True) as hub,
        chromium() as browser,
    ):
        host = f"http://hub.localhost:{hub.port}"
        course = f"http://warpbook--service.hub.localhost:{hub.port}/services/warpbook"
        people = f"{course}/courses/{COURSE}/people"
        settings = hub.folder / "homes" / "ada" / ".jupyter"
        settings.mkdir(parents=True)
        evil = EVIL_SERVER.replace("PEOPLE", people)
        evil = evil.replace("STAFF", f"{course}/api/v1/courses/{COURSE}/staff")
        (settings / "jupyter_server_config.py").write_text(evil)
        learner, teacher = (browser.new_context().new_page() for _ in range(2))
        for page in (learner, teacher):
            page.set_default_timeout(TIMEOUT_MS)
        log_in(learner, hub, host, "ada")
        learner.goto(f"{host}/hub/spawn")
        evil_page = f"http://ada.hub.localhost:{hub.port}/user/ada/anything"
        log_in(teacher, hub, host, "grace")
        # log-in, tickets and forms of the course work from its own host
        teacher.goto(people)
        teacher.fill("textarea[name=csv]", ROSTER)
        teacher.click("form[data-roster] button:text('Show')")
        teacher.click("form[data-roster] button:text('Import')")
        teacher.locator("code:text-is('ada')").wait_for()
        wait_for("her server", lambda: teacher.goto(evil_page).ok or None)
        assert "a notebook" in teacher.content()
        teacher.click("body")
        teacher.wait_for_function("document.title")
        assert teacher.title().startswith("stopped")
        teacher.goto(people)
        row = teacher.locator("tr", has=teacher.locator("code:text-is('ada')"))
        assert "learner" in row.inner_text()
