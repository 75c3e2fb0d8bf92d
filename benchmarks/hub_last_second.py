"""Everybody hands in within the last second before a lab is due and closes.

    python -m benchmarks.hub_last_second
        [--learners N] [--busy N] [--rounds N] [--within S] [--kills]

A real JupyterHub, proxy and course service, beside `--busy` processes that do nothing
but compute. With `--kills` the course service and JupyterHub are killed at random from
two seconds before the deadline to two after it. Each hands in as a page does: the same
request again until the course service itself has answered. It prints a Markdown table;
the exit code is 1 if anybody is late or refused, or loses a receipt.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import random
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import psutil

from benchmarks.hub_class import cookies
from tests.hub.service.class_hub import (
    COURSE,
    HOUR_MS,
    ClassHub,
    Visitor,
    class_hub,
)
from warpbook.hub_protocol import ANSWER_MARK
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.work.submissions import receipt

LABS = ("vector-add", "area-codes", "reduction-and-scan", "thread-and-block")
_BEFORE_S = 12.0
_PATIENCE_S = 300.0
_LOG_IN_AT_ONCE = 6
_AGAIN_S, _MOST_AGAIN_S = 1.0, 8.0


class Outcome(NamedTuple):
    """When a request had left, how long its answer took, in how many tries."""

    sent_ms: float
    took_s: float
    tries: int
    answer: dict[str, Any]


def main() -> int:
    """Play the deadlines, and print what came of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, default=300)
    parser.add_argument("--busy", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--rounds", type=int, default=3, choices=range(1, 5))
    parser.add_argument("--within", type=float, default=1.0, help="seconds")
    parser.add_argument("--kills", action="store_true")
    options = parser.parse_args()
    names = [f"learner{number:03d}" for number in range(options.learners)]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hub = stack.enter_context(class_hub(folder, "--cpu-slots", "0"))
        grace = Visitor(hub, "grace").log_in()
        grace.done(f"courses/{COURSE}/roster", {"csv": "\n".join(["username", *names])})
        with ThreadPoolExecutor(_LOG_IN_AT_ONCE) as pool:
            learners = list(pool.map(lambda name: Visitor(hub, name).log_in(), names))
        stack.enter_context(busy(options.busy))
        print(
            "| load | kills | sent in time | late | refused | receipt, s p50 | ", end=""
        )
        print("largest | retries |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
        bad = 0
        for lab in LABS[: options.rounds]:
            # the round before may have ended with the hub away
            while not is_up(hub):
                time.sleep(1)
            due_ms = int(1000 * (time.time() + _BEFORE_S)) | 1
            named = publish(grace, lab, due_ms)
            bad += deadline(hub, learners, named, due_ms, options)
    return 1 if bad else 0


def publish(grace: Visitor, lab: str, due_ms: int) -> str:
    """Publish a lab that takes nothing after it is due."""
    window = {"opens_ms": due_ms - HOUR_MS, "due_ms": due_ms, "closes_ms": due_ms}
    body = {"lab": lab, "title": "The last second", "windows": [window]}
    body["thresholds"] = [{"measure": "right", "least": 1, "points": 10}]
    return str(grace.done(f"courses/{COURSE}/labs", body)["lab"])


def deadline(
    hub: ClassHub, learners: list[Visitor], lab: str, due_ms: int, options: Any
) -> int:
    """Have all hand in just before it; give how many were late or refused."""
    rng = random.Random(lab)
    presses = [due_ms - 1000 * options.within * rng.random() for _ in learners]
    with ThreadPoolExecutor(len(learners) + 1) as pool:
        killing = pool.submit(kill, hub, rng, due_ms) if options.kills else None
        outcomes = list(
            pool.map(lambda one, at: hand_in(hub, one, lab, at), learners, presses)
        )
        killed = 0 if killing is None else killing.result()
    late = refused = in_time = 0
    # how late it is may have changed with an outage that was noted after a receipt
    database = HubDatabase(hub.folder / "course" / "hub.db")
    for one, outcome in zip(learners, outcomes, strict=True):
        before_ms = due_ms - outcome.sent_ms
        if before_ms < 0:
            continue
        in_time += 1
        if "submission" not in outcome.answer:
            refused += 1
            print(f"{one.name}, {before_ms:.0f} ms before: {outcome.answer}")
            continue
        with database.read() as connection:
            kept = receipt(connection, outcome.answer["submission"])
        if kept.late_hours:
            late += 1
            by_ms = kept.received_ms - due_ms
            print(f"{one.name}, {before_ms:.0f} ms before: {by_ms} ms late")
    database.close()
    took_s = [one.took_s for one in outcomes]
    print(
        f"| {os.getloadavg()[0]:.1f} | {killed} | {in_time} of {len(learners)} | "
        f"{late} | {refused} | {median(took_s):.2f} | {max(took_s):.2f} | "
        f"{sum(one.tries - 1 for one in outcomes)} |",
        flush=True,
    )
    return late + refused


def hand_in(hub: ClassHub, learner: Visitor, lab: str, press_ms: float) -> Outcome:
    """Press, and try again until the course service itself has answered."""
    body = {"source": f"// {learner.name}", "request": secrets.token_hex(10)}
    request = request_bytes(hub, learner, lab, body)
    time.sleep(max(0.0, press_ms / 1000 - time.time()))
    begun_s, sent_ms, tries, wait_s = time.monotonic(), 0.0, 0, _AGAIN_S
    while time.monotonic() < begun_s + _PATIENCE_S:
        tries += 1
        with contextlib.suppress(OSError, http.client.HTTPException):
            with socket.create_connection(("127.0.0.1", hub.port), 60) as connection:
                connection.sendall(request)
                sent_ms = sent_ms or 1000 * time.time()
                response = http.client.HTTPResponse(connection, method="POST")
                response.begin()
                content = response.read()
            if response.headers[ANSWER_MARK] and response.status != 503:
                took_s = time.monotonic() - begun_s
                return Outcome(sent_ms, took_s, tries, json.loads(content))
        # who could not even connect has pressed all the same
        sent_ms = sent_ms or 1000 * time.time()
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, _MOST_AGAIN_S)
    return Outcome(sent_ms, _PATIENCE_S, tries, {"error": "no answer"})


def request_bytes(hub: ClassHub, learner: Visitor, lab: str, body: Any) -> bytes:
    """Write a request as a page sends it."""
    content = json.dumps(body).encode()
    path = f"services/warpbook/api/v1/courses/{COURSE}/labs/{lab}/submissions"
    lines = [
        f"POST {hub.base_url}{path} HTTP/1.1",
        f"Host: 127.0.0.1:{hub.port}",
        f"Cookie: {cookies(hub, learner)}",
        f"X-XSRFToken: {learner._xsrf}",
        "Sec-Fetch-Site: same-origin",
        "Sec-Fetch-Mode: cors",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


def kill(hub: ClassHub, rng: random.Random, due_ms: int) -> int:
    """Kill the service twice and JupyterHub once around a deadline."""
    whom = ["warpbook_hub.service", "jupyterhub", "warpbook_hub.service"]
    times_ms = sorted(due_ms + rng.uniform(-2000, 2000) for _ in whom)
    killed = 0
    for at_ms, name in zip(times_ms, whom, strict=True):
        time.sleep(max(0.0, at_ms / 1000 - time.time()))
        if (process := hub.process(name)) is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
                killed += 1
    return killed


def is_up(hub: ClassHub) -> bool:
    """Whether people reach the service and JupyterHub."""
    visitor = Visitor(hub)
    with contextlib.suppress(OSError):
        return all(
            visitor.session.get(url, timeout=5).ok
            for url in (f"{hub.service_url}health", f"{hub.url}hub/health")
        )
    return False


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Have processes that compute for nothing."""
    workers = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()


def _spin() -> None:
    while True:
        sum(range(1000))


if __name__ == "__main__":
    sys.exit(main())
