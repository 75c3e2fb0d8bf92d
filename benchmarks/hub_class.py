"""A class of 300 at a deadline, over HTTP and WebSockets, with a real JupyterHub.

    python -m benchmarks.hub_class [--learners 300] [--rate 50]

Everybody is logged in with cookies and has a page open. All hand in, so many a second,
while the grader of `warpbook hub` works beside them. It prints a Markdown table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import requests
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

from tests.hub.service.class_hub import (
    COURSE,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)

#: what the grader refuses at once, so that the class is not waited for
SOURCE = "__global__ void mine() {}\n"
_LOG_IN_AT_ONCE = 6
_PAGES = 40


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, default=300)
    parser.add_argument("--rate", type=float, default=50)
    options = parser.parse_args()
    names = [f"learner{number:03d}" for number in range(options.learners)]
    with tempfile.TemporaryDirectory() as folder, class_hub(Path(folder)) as hub:
        grace = Visitor(hub, "grace").log_in()
        roster = "username,first_name\n" + "".join(f"{n},{n}\n" for n in names)
        grace.done(f"courses/{COURSE}/roster", {"csv": roster})
        lab = publish(grace, int(time.time() * 1000))
        started_s = time.monotonic()
        with ThreadPoolExecutor(_LOG_IN_AT_ONCE) as pool:
            learners = list(pool.map(lambda name: Visitor(hub, name).log_in(), names))
        print(f"{len(names)} logged in within {time.monotonic() - started_s:.0f} s\n")
        AsyncHTTPClient.configure(None, max_clients=2 * len(names))
        asyncio.run(measure(hub, grace, learners, lab, options.rate))


async def measure(
    hub: ClassHub, grace: Visitor, learners: list[Visitor], lab: str, rate: float
) -> None:
    """Open all pages, hand in, and watch the class."""
    sockets = [await opened(hub, one) for one in learners]
    watched = await opened(hub, grace, lab)
    seen: dict[str, float] = {}
    followers = [asyncio.ensure_future(drain(one)) for one in sockets]
    watching = asyncio.ensure_future(watch(watched, seen))
    took: list[float] = []
    acknowledged: dict[str, float] = {}
    pages = asyncio.ensure_future(page_times(hub, grace, lab))
    begun_s = time.monotonic()

    async def hand_in(number: int, learner: Visitor) -> None:
        await asyncio.sleep(number / rate)
        sent_s = time.monotonic()
        path = f"api/v1/courses/{COURSE}/labs/{lab}/submissions"
        await ask(hub, learner, path, {"source": f"{SOURCE}// {number}"})
        acknowledged[learner.name] = time.monotonic()
        took.append(acknowledged[learner.name] - sent_s)

    random.Random(1).shuffle(learners)
    await asyncio.gather(*(hand_in(n, one) for n, one in enumerate(learners)))
    all_s = time.monotonic() - begun_s
    await asyncio.sleep(3)
    shown = [seen[name] - at for name, at in acknowledged.items() if name in seen]
    page = await pages
    for task in (*followers, watching):
        task.cancel()
    print("| what | p50 ms | p95 ms | largest ms |\n| --- | --- | --- | --- |")
    tell(f"receipt, {len(learners) / all_s:.0f} a second", took)
    tell(f"seen in the class view ({len(shown)} of {len(learners)})", shown)
    tell("the class view's page, meanwhile", page)


async def page_times(hub: ClassHub, grace: Visitor, lab: str) -> list[float]:
    """Open the class view again and again."""
    took = []
    for _ in range(_PAGES):
        started_s = time.monotonic()
        await ask(hub, grace, f"courses/{COURSE}/class?lab={lab}", None)
        took.append(time.monotonic() - started_s)
        await asyncio.sleep(0.1)
    return took


async def ask(hub: ClassHub, visitor: Visitor, path: str, body: Any) -> bytes:
    """Ask with a visitor's cookies."""
    request = HTTPRequest(
        hub.service_url + path,
        "GET" if body is None else "POST",
        headers={
            "Cookie": cookies(hub, visitor),
            "X-XSRFToken": visitor._xsrf,
            "Sec-Fetch-Site": "same-origin",
            "Sec-Fetch-Mode": "cors",
        },
        body=None if body is None else json.dumps(body),
        request_timeout=60,
        connect_timeout=60,
    )
    return bytes((await AsyncHTTPClient().fetch(request)).body)


async def opened(hub: ClassHub, visitor: Visitor, lab: str = "") -> Any:
    """Open a page's socket."""
    ticket = json.loads(await ask(hub, visitor, "api/v1/ticket", {}))["ticket"]
    query = urlencode({"course": COURSE, "ticket": ticket, "lab": lab})
    return await websocket_connect(
        f"{hub.service_url}live?{query}".replace("http", "ws", 1)
    )


async def drain(socket: Any) -> None:
    """Read what a learner's page is told."""
    while await socket.read_message() is not None:
        pass


async def watch(socket: Any, seen: dict[str, float]) -> None:
    """Note when each learner is first seen to have handed in."""
    while (message := await socket.read_message()) is not None:
        document = json.loads(message)
        for row in document.get("rows", ()):
            if row["attempts"]:
                seen.setdefault(row["username"], time.monotonic())


def cookies(hub: ClassHub, visitor: Visitor) -> str:
    """Write the cookies that belong to the service."""
    request = requests.Request("GET", hub.service_url)
    return str(visitor.session.prepare_request(request).headers["Cookie"])


def tell(what: str, took: list[float]) -> None:
    """Print a line of the table."""
    if len(took) < 2:
        print(f"| {what} | | | |")
        return
    p95 = statistics.quantiles(took, n=20)[-1]
    numbers = (statistics.median(took), p95, max(took))
    print(f"| {what} | {' | '.join(f'{1000 * one:.0f}' for one in numbers)} |")


if __name__ == "__main__":
    main()
