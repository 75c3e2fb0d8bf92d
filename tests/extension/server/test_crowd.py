"""More viewers than are written to in one go."""

import asyncio

import pytest

from warpbook.server.stream.viewers import BATCH_VIEWERS


@pytest.fixture
def warpbook_config() -> dict:
    return {"alerts": "watched"}


async def test_every_viewer_of_a_crowd_gets_every_frame_in_order(connect) -> None:
    clients = [await connect() for _ in range(2 * BATCH_VIEWERS + 5)]
    for client in clients:
        await client.subscribe()

    async def next_number(client) -> int:
        return (await client.next("frame"))["seq"]

    async def numbers(client) -> list[int]:
        seqs = []
        while len(seqs) < 10:
            if (seq := await next_number(client)) > begin:
                seqs.append(seq)
        return seqs

    # they began at different frames; from the last beginning on all have the same
    begin = max(await asyncio.gather(*map(next_number, clients)))
    seen = await asyncio.gather(*map(numbers, clients))
    assert all(seqs == seen[0] for seqs in seen)
    assert seen[0] == sorted(set(seen[0]))
