"""More viewers than are written to in one go."""

import asyncio

import pytest

from warpbook.server.broadcast import BATCH_VIEWERS


@pytest.fixture
def warpbook_config() -> dict:
    return {"alerts": "watched"}


async def test_every_viewer_of_a_crowd_gets_every_frame_in_order(connect) -> None:
    clients = [await connect() for _ in range(2 * BATCH_VIEWERS + 5)]
    for client in clients:
        await client.subscribe()

    async def frames(client) -> list[int]:
        return [(await client.next("frame"))["seq"] for _ in range(10)]

    seen = await asyncio.gather(*map(frames, clients))
    # they began at different frames; from the last beginning on all have the same
    begin = max(seqs[0] for seqs in seen)
    end = min(seqs[-1] for seqs in seen)
    common = [[seq for seq in seqs if begin <= seq <= end] for seqs in seen]
    assert len(common[0]) >= 3
    assert all(seqs == common[0] for seqs in common)
    assert common[0] == sorted(set(common[0]))
