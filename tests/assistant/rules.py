"""Repairs a cell by the tools alone: profile, apply what gains, compare, again."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

#: a cell may have this many changes that gain, one after the other
MOST_STEPS = 6
#: the most that the tools allow
_WAIT_S = 600
_TOKENS = 20_000

Ask = Callable[..., Awaitable[dict[str, Any]]]


class Step(NamedTuple):
    """One change that was asked for."""

    change: str
    is_applied: bool
    #: what the page said
    words: str


class Repaired(NamedTuple):
    """What became of a cell."""

    verdict: str
    steps: tuple[Step, ...]
    #: of the first run and the last: "less time", ...; empty where nothing was applied
    compared: str
    sentence: str

    @property
    def is_faster(self) -> bool:
        return self.compared == "less time"


class Refused(Exception):
    """A tool gave another state than "done"."""


async def repair(ask: Ask, notebook: str, cell: str) -> Repaired:
    """Apply the changes of a cell's reports until none gains.

    Raises:
        Refused: a tool could not do it, with its state and words.
    """

    async def profiled() -> dict[str, Any]:
        return _done(
            await ask(
                "profile_cell",
                notebook=notebook,
                cell=cell,
                wait_s=_WAIT_S,
                tokens=_TOKENS,
            )
        )

    first = newest = await profiled()
    tried, steps = set[str](), list[Step]()
    while len(steps) < MOST_STEPS and (name := _next(newest, tried)):
        tried.add(name)
        answer = await ask(
            "apply_change", report=newest["id"], change=name, wait_s=_WAIT_S
        )
        answer = _done(answer)
        steps.append(Step(name, answer["is_applied"], answer["what_happened"]))
        if answer["is_applied"]:
            # the first run of an edited cell compiles what the edit has compiled
            await profiled()
            newest = await profiled()
    verdict = "none" if first["verdict"] is None else first["verdict"]["kind"]
    if not any(step.is_applied for step in steps):
        return Repaired(verdict, tuple(steps), "", "")
    compared = await ask("compare", before=first["id"], after=newest["id"])
    return Repaired(verdict, tuple(steps), compared["verdict"], compared["sentence"])


def _done(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["state"] != "done" or "id" not in answer:
        raise Refused(f"{answer['state']}: {answer.get('what_happened')}")
    return answer


def _next(report: dict[str, Any], tried: set[str]) -> str | None:
    """Give the first change that has an edit and was not tried."""
    # names are marked as data
    edits = (row["name"].strip("«»") for row in report["rows"] if row.get("diff"))
    return next((name for name in edits if name not in tried), None)


@contextlib.asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[Ask]:
    """Connect the protocol's own client to the route of a server.

    Args:
        url: of the server, with its base and without a slash at its end.
        token: of the server.
    """
    async with (
        httpx2.AsyncClient(
            headers={"Authorization": f"token {token}"},
            timeout=2 * _WAIT_S,
            trust_env=False,
        ) as http,
        Client(
            streamable_http_client(f"{url}/warpbook/api/v1/mcp", http_client=http)
        ) as client,
    ):

        async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            (text,) = result.content
            assert not result.is_error, text.text
            answer: dict[str, Any] = json.loads(text.text)
            return answer

        yield ask


class Assistant:
    """Asks from another thread than the test's, which has the page."""

    def __init__(self, url: str, token: str) -> None:
        """Take the server; nothing is asked yet."""
        self._url, self._token = url, token
        self._pool = ThreadPoolExecutor(4)

    def begin(self, work: Callable[[Ask], Awaitable[Any]]) -> Future[Any]:
        """Begin to do something with the tools."""

        async def connected_work() -> Any:
            async with connected(self._url, self._token) as ask:
                return await work(ask)

        return self._pool.submit(lambda: asyncio.run(connected_work()))

    def ask(self, tool: str, **arguments: Any) -> Future[Any]:
        """Begin one call."""
        return self.begin(lambda ask: ask(tool, **arguments))

    def close(self) -> None:
        self._pool.shutdown()
