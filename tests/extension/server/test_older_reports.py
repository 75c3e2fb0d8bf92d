"""Reports that an older version kept have what a view of today looks for."""

import json

from tests.extension.server.test_difference import profiled
from warpbook.protocol import CellReport
from warpbook.server.record_forms import decode_report
from warpbook.server.reports import Reports
from warpbook.server.selection import encode

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
    told = json.loads(news[0])
    assert set(LATER) <= set(told["profile"])
    assert isinstance(decode_report(news[0]), CellReport)
