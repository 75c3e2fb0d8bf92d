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
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import psutil  # noqa: E402
from tornado.httpclient import AsyncHTTPClient, HTTPClientError  # noqa: E402

from benchmarks.hub_class import ask  # noqa: E402
from tests.hub.service.class_hub import (  # noqa: E402
    COURSE,
    HOUR_MS,
    ClassHub,
    Visitor,
    class_hub,
)
from warpbook.class_hub import ANSWER_MARK  # noqa: E402
from warpbook.hub.database.opening import HubDatabase  # noqa: E402
from warpbook.hub.work.submissions import receipt  # noqa: E402

LABS = ("vector-add", "area-codes", "reduction-and-scan", "thread-and-block")
_BEFORE_S = 12.0
_PATIENCE_S = 300.0
_LOG_IN_AT_ONCE = 6
_AGAIN_S, _MOST_AGAIN_S = 1.0, 8.0


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
        AsyncHTTPClient.configure(None, max_clients=2 * len(names))
        stack.enter_context(busy(options.busy))
        print("| round | pressed, ms before | receipt, s p50 | largest | retries |")
        print("| --- | --- | --- | --- | --- |")
        bad = 0
        for lab in LABS[: options.rounds]:
            # the round before may have ended with the hub away
            while not is_up(hub):
                time.sleep(1)
            due_ms = int(1000 * (time.time() + _BEFORE_S)) | 1
            named = publish(grace, lab, due_ms)
            bad += asyncio.run(deadline(hub, learners, named, due_ms, options))
    return 1 if bad else 0


def publish(grace: Visitor, lab: str, due_ms: int) -> str:
    """Publish a lab that takes nothing after it is due."""
    window = {"opens_ms": due_ms - HOUR_MS, "due_ms": due_ms, "closes_ms": due_ms}
    body = {"lab": lab, "title": "The last second", "windows": [window]}
    body["thresholds"] = [{"measure": "right", "least": 1, "points": 10}]
    return str(grace.done(f"courses/{COURSE}/labs", body)["lab"])


async def deadline(
    hub: ClassHub, learners: list[Visitor], lab: str, due_ms: int, options: Any
) -> int:
    """Have all hand in just before it; give how many were late or refused."""
    rng, presses = random.Random(lab), []
    killing = asyncio.ensure_future(kill(hub, rng, due_ms)) if options.kills else None
    for one in learners:
        pressed_ms = due_ms - 1000 * options.within * rng.random()
        presses.append(asyncio.ensure_future(hand_in(hub, one, lab, pressed_ms)))
    outcomes = await asyncio.gather(*presses)
    killed = 0 if killing is None else await killing
    # how late it is may have changed with an outage that was noted after a receipt
    late = refused = pressed_late = 0
    took_s, before_ms, tries = [], [], 0
    database = HubDatabase(hub.folder / "course" / "hub.db")
    for (sent_ms, done_ms, tried, shown), one in zip(outcomes, learners, strict=True):
        tries += tried - 1
        took_s.append((done_ms - sent_ms) / 1000)
        before_ms.append(due_ms - sent_ms)
        if sent_ms > due_ms:
            pressed_late += 1
            continue
        if "submission" not in shown:
            refused += 1
            print(f"{one.name}, {due_ms - sent_ms:.0f} ms before: {shown}")
            continue
        with database.read() as connection:
            kept = receipt(connection, shown["submission"])
        if kept.late_hours:
            late += 1
            by_ms = kept.received_ms - due_ms
            print(f"{one.name}, {due_ms - sent_ms:.0f} ms before: {by_ms} ms late")
    database.close()
    span = f"{max(before_ms):.0f} to {min(before_ms):.0f}"
    print(
        f"| {killed} kills | {span} | {median(took_s):.2f} | {max(took_s):.2f} | "
        f"{tries} |"
    )
    load = os.getloadavg()[0]
    print(
        f"load {load:.1f}: {late} late, {refused} refused of {len(learners)}; "
        f"{pressed_late} pressed after it was due"
    )
    return late + refused


async def hand_in(
    hub: ClassHub, learner: Visitor, lab: str, pressed_ms: float
) -> tuple[float, float, int, dict[str, Any]]:
    """Press, and give when that was, when it was answered, the tries, the answer."""
    await asyncio.sleep(pressed_ms / 1000 - time.time())
    body = {"source": f"// {learner.name}", "request": secrets.token_hex(10)}
    path = f"api/v1/courses/{COURSE}/labs/{lab}/submissions"
    sent_ms, wait_s, tries = 1000 * time.time(), _AGAIN_S, 0
    while True:
        tries += 1
        try:
            answer = json.loads(await ask(hub, learner, path, body))
            return sent_ms, 1000 * time.time(), tries, answer
        except HTTPClientError as problem:
            response = problem.response
            is_own = response is not None and ANSWER_MARK in response.headers
            if is_own and problem.code != 503:
                answer = json.loads(response.body)
                return sent_ms, 1000 * time.time(), tries, answer
        except OSError:
            pass
        if 1000 * time.time() - sent_ms > 1000 * _PATIENCE_S:
            return sent_ms, 1000 * time.time(), tries, {"error": "no answer"}
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _MOST_AGAIN_S)


async def kill(hub: ClassHub, rng: random.Random, due_ms: int) -> int:
    """Kill the service twice and JupyterHub once around a deadline."""
    whom = ["warpbook.hub.service", "jupyterhub", "warpbook.hub.service"]
    killed = 0
    for at_ms, name in zip(
        sorted(due_ms + rng.uniform(-2000, 2000) for _ in whom), whom, strict=True
    ):
        await asyncio.sleep(max(0.0, at_ms / 1000 - time.time()))
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
