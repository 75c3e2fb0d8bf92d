"""Reports that an older version kept have what a view of today looks for."""

import json
from typing import Any

from tests.extension.server.test_difference import profiled
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook.server.records.record_forms import (
    decode_receipt,
    decode_report,
    receipt_record,
)
from warpbook.server.records.reports import Reports
from warpbook.server.stream.selection import encode

#: of a profile, added since
LATER = ("annotations", "cpu")


class Kept:
    """A disk with one report, as another version wrote it."""

    def __init__(self, message: bytes) -> None:
        self.message_of = message

    async def newest(self, kind: str, most: int) -> list[bytes]:
        return [self.message_of]


async def test_fields_that_came_later_are_told() -> None:
    report = profiled("r-1", "train_fp32", 1_000.0)
    whole = json.loads(encode(decode_report(json.dumps(report).encode())))
    for name in LATER:
        del whole["profile"][name]
    news = await Reports(Kept(json.dumps(whole).encode())).load()
    assert len(news) == 1
    message = json.loads(news[0])
    assert set(LATER) <= set(message["profile"])
    assert isinstance(decode_report(news[0]), CellReport)


async def test_what_is_kept_is_the_profile_and_not_how_it_was_shown() -> None:
    report = decode_report(json.dumps(profiled("r-1", "train_fp32", 1_000.0)).encode())
    kept: list[dict[str, Any]] = []

    class Disk:
        async def keep(self, record: tuple[object, bytes]) -> str:
            kept.append(json.loads(record[1]))
            return ""

    shown, _ = await Reports(Disk()).take(report)
    assert kept[0]["view"] is None
    assert json.loads(shown)["view"] is not None


async def test_an_older_receipt_is_sent_with_its_view(
    jp_fetch, jp_serverapp, connect, ingest
) -> None:
    hello = await (await connect()).next("hello")
    run = {
        **{"id": "r-1", "protocol": PROTOCOL_VERSION, "kernel_id": "k"},
        **{"notebook": "a.ipynb", "cell_id": "c", "execution_count": 1},
        **{"title": "f()", "status": "ok"},
        **{"started_ms": hello["time_ms"] - 2500, "ended_ms": hello["time_ms"] - 500},
    }
    receipt = json.loads((await ingest("/v1/cells", run)).body)
    del receipt["view"]
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    older = decode_receipt(json.dumps(receipt).encode())
    await app._records.keep(
        (receipt_record(older, False), json.dumps(receipt).encode())
    )
    path = ("warpbook", "api", "v1", "records", "receipt", "r-1")
    message = json.loads((await jp_fetch(*path)).body)
    assert message["view"]["figures"][0] == {"label": "Wall time", "value": "2.00 s"}
