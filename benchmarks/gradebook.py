"""How long the gradebook of a class of 300 with 36 labs takes, in Chromium.

    python -m benchmarks.gradebook [--learners 300] [--labs 36] [--attempts 2]

It prints a Markdown table of times in milliseconds. What is drawn is on the screen:
two frames after the page was loaded, or after a click. The first page is not among the
others: the service computes all marks for it. CPU time is that of the service and of
the page's thread, and other work on the machine is not in it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import msgspec
from playwright.sync_api import Page
from sqlalchemy import Connection, insert

from benchmarks.hub_core import begin
from tests.hub.core.course import (
    FOREVER,
    LAB_DIGEST,
    START_MS,
    Classroom,
    classroom,
    facts,
)
from tests.hub.service.browser import chromium
from tests.hub.service.class_hub import COURSE, ClassHub, class_hub
from warpbook.hub_protocol import GradedFacts
from warpbook_hub.database.tables import (
    JOBS,
    RESULTS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
)
from warpbook_hub.ids import new_id

TIMES = 7
_DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_SERVED = """() => {
    const [page] = performance.getEntriesByType('navigation');
    return [page.responseEnd - page.requestStart, performance.now()];
}"""
_CLICKED = f"""async button => {{
    const from = performance.now();
    button.click();
    await {_DRAWN};
    return performance.now() - from;
}}"""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("learners", 300), ("labs", 36), ("attempts", 2)):
        parser.add_argument(f"--{name}", type=int, default=count)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data/course/hub.db")
        room = classroom(path, windows={"": FOREVER})
        people, labs = begin(room, options.learners, options.labs)
        fill(room, people, labs, options.attempts)
        room.database.close()
        print("| what | median ms | largest ms |\n| --- | --- | --- |")
        with class_hub(Path(folder)) as hub, chromium() as browser:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            for name, times in measured(page, hub).items():
                print(f"| {name} | {statistics.median(times):.0f} | {max(times):.0f} |")


def fill(room: Classroom, people: list[str], labs: list[str], attempts: int) -> None:
    """Write what would be there, had everybody handed in everything so often."""
    grader, rng = room.grader(), random.Random(1)
    with room.database.write() as connection:
        for lab in labs:
            for person in people:
                for number in range(1, attempts + 1):
                    is_right = rng.random() < 0.6
                    graded = facts("right") if is_right else facts("wrong", 2)
                    write_graded(connection, lab, person, number, grader, graded)


def write_graded(
    connection: Connection,
    lab: str,
    person: str,
    number: int,
    grader: str,
    graded: GradedFacts,
) -> None:
    """Write a submission with its job and result, as they are once all is done."""
    named, of = new_id(), {"publication": lab, "party": f"person:{person}"}
    at_ms = START_MS + number
    submission = {
        **{"id": named, "person": person, "number": number, "request": named},
        **{"received_ms": at_ms, "source_digest": "", "source_bytes": 4},
        **{"source": "// x", "seed": 1},
    }
    job = {
        **{"id": new_id(), "submission": named, "run": 1, "stage": "cpu"},
        **{"state": "done", "lane": 1, "turn": 0, "queued_ms": at_ms},
        **{"not_before_ms": at_ms, "fence": 1, "device": "", "crashes": 0},
        **{"busy": 0, "finished_ms": at_ms, "note": ""},
    }
    result = {
        **{"job": job["id"], "submission": named, "run": 1, "stage": "cpu"},
        **{"fence": 1, "grader": grader, "received_ms": at_ms, "took_ms": 1},
        **{"lab_digest": LAB_DIGEST, "evidence": "{}", "gpu_ms": 0},
        "facts": msgspec.json.encode(graded).decode(),
    }
    connection.execute(insert(SUBMISSIONS).values(**of, **submission))
    member = {"submission": named, "person": person}
    connection.execute(insert(SUBMISSION_MEMBERS).values(**member))
    connection.execute(insert(JOBS).values(**of, **job))
    connection.execute(insert(RESULTS).values(**result))


def measured(page: Page, hub: ClassHub) -> dict[str, list[float]]:
    """Open the gradebook, sort it and select all of it, some times."""
    page.set_default_timeout(120_000)
    page.goto(f"{hub.url}hub/login")
    page.fill("#username_input", "grace")
    page.fill("#password_input", hub.passwords()["staff"])
    page.click("#login_submit")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def page_cpu_ms() -> float:
        # it begins anew with each page
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        [busy_s] = [one["value"] for one in metrics if one["name"] == "TaskDuration"]
        return float(busy_s) * 1000

    service = hub.process("warpbook_hub.service")
    assert service is not None

    def service_cpu_ms() -> float:
        spent = service.cpu_times()
        return float(spent.user + spent.system) * 1000

    times: dict[str, list[float]] = {}
    for number in range(TIMES + 1):
        before_ms = service_cpu_ms()
        page.goto(f"{hub.service_url}courses/{COURSE}/gradebook")
        page.evaluate(_DRAWN)
        served_ms, drawn_ms = page.evaluate(_SERVED)
        which = "the first: " if number == 0 else ""
        told = {
            "drawn, from the click on its link": drawn_ms,
            "of it, the service": served_ms,
            "CPU time of the page": page_cpu_ms(),
            "CPU time of the service": service_cpu_ms() - before_ms,
        }
        for name, time_ms in told.items():
            times.setdefault(f"{which}{name}", []).append(time_ms)
        head = page.locator("#gradebook thead th").nth(5).locator("button")
        times.setdefault("sorted by a lab", []).append(head.evaluate(_CLICKED))
        button = page.locator("#select-shown")
        times.setdefault("all selected", []).append(button.evaluate(_CLICKED))
    return times


if __name__ == "__main__":
    main()
