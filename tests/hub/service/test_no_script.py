"""A hub whose pages' script was not built says so on every page, and still works."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.hub.service.class_hub import COURSE, Visitor, class_hub
from tests.programs import ROOT

WORDS = "hub.js</code>, is not installed on the hub"
PAGES = (
    "",
    "/class",
    "/queue",
    "/people",
    "/appeals",
    "/log",
    "/data",
    "/people/nobody",
)


def test_pages_say_that_their_script_is_missing(tmp_path: Path) -> None:
    extension = tmp_path / "extension"
    built = shutil.ignore_patterns("hub.js")
    shutil.copytree(ROOT / "extension", extension, ignore=built)
    with class_hub(tmp_path, "--cpu-slots", "0", extension=extension) as hub:
        grace = Visitor(hub, "grace").log_in()
        assert "SCRIPT IS MISSING" in (tmp_path / "command.log").read_text()
        for path in PAGES:
            page = grace.page(f"courses/{COURSE}{path}").text
            assert WORDS in page, path
            # what the page shows by itself is there
            assert '<main id="main"' in page and "<h1>" in page, path
            assert "<script" not in page
        script = extension / "warpbook_hub" / "service" / "static" / "hub.js"
        script.write_text("// built meanwhile")
        page = grace.page(f"courses/{COURSE}").text
        assert WORDS not in page and 'static/hub.js"></script>' in page
