"""Calls that wait for others take few threads, and a bounded line before them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from warpbook_hub.running.lti_login import BoundedThreads, Busy


async def test_more_calls_than_there_is_room_for_are_refused_at_once() -> None:
    threads = BoundedThreads("test", threads=1, most=2)
    go_on = threading.Event()
    waiting = [asyncio.create_task(threads.run(go_on.wait, 60.0)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await threads.run(bool, 60.0)
    go_on.set()
    assert [call.result() for call in await asyncio.gather(*waiting)] == [True, True]
    assert (await threads.run(lambda: 7, 60.0)).result() == 7


async def test_a_call_that_takes_too_long_keeps_its_place_until_it_ends() -> None:
    threads = BoundedThreads("test", threads=1, most=1)
    go_on = threading.Event()
    with pytest.raises(Busy):
        await threads.run(go_on.wait, 0.01)
    with pytest.raises(Busy):
        await threads.run(bool, 60.0)
    go_on.set()
    while threads._count:
        await asyncio.sleep(0.01)
    assert (await threads.run(lambda: 7, 60.0)).result() == 7


async def test_what_a_call_raises_is_its_own() -> None:
    threads = BoundedThreads("test", threads=1, most=1)
    call = await threads.run(lambda: int("no number"), 60.0)
    with pytest.raises(ValueError, match="no number"):
        call.result()
