"""Threads for calls that wait for others, so few that they hold up nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Value = TypeVar("Value")


class Busy(Exception):
    """Too many calls wait, or the call took too long."""


class BoundedThreads:
    """Runs calls on threads of its own."""

    def __init__(self, name: str, threads: int, most: int) -> None:
        """Start none yet; `most` calls are under way or wait."""
        self._executor = ThreadPoolExecutor(threads, name)
        self._most = most
        self._count = 0

    async def run(
        self, call: Callable[[], Value], most_s: float
    ) -> asyncio.Future[Value]:
        """Wait for a call; give its future, which is done and may hold an exception.

        Args:
            call: to run.
            most_s: how long it may wait and take. A call that has begun then goes on
                and keeps its thread, and its place here, until it ends.

        Raises:
            Busy: too many calls wait, or it takes longer.
        """
        if self._count >= self._most:
            raise Busy
        self._count += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, call)
        future.add_done_callback(self._leave)
        done, _ = await asyncio.wait([future], timeout=most_s)
        if not done:
            raise Busy
        return future

    def _leave(self, future: asyncio.Future[Value]) -> None:
        self._count -= 1
        if not future.cancelled():
            # nobody may be left who asks for it
            future.exception()
