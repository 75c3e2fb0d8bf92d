"""Reports that an older version kept have what a view of today looks for."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from tests.extension.server.test_difference import profiled
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook.reports.labs import LABS
from warpbook.server.record_forms import (
    decode_receipt,
    decode_report,
    ended_without_its_server,
    receipt_record,
    report_record,
)
from warpbook.server.reports import Reports
from warpbook.server.selection import encode
from warpbook_monitors.trace.analysis import analyse
from warpbook_monitors.trace.cell_profile import SetUp
from warpbook_monitors.trace.chrome import read_chrome_trace

#: as protocol 1 kept it: a training step, and windows of a long cell
PROTOCOL_1 = gzip.decompress(
    (Path(__file__).parents[2] / "data/reports/protocol-1.json.gz").read_bytes()
)
TRACES = Path(__file__).parents[2] / "data" / "traces"
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


def names_in_ms(part: object) -> set[str]:
    if isinstance(part, list):
        return {name for item in part for name in names_in_ms(item)}
    if not isinstance(part, dict):
        return set()
    inner = {name for item in part.values() for name in names_in_ms(item)}
    return inner | {name for name in part if name.endswith("_ms")}


def test_a_cause_of_protocol_1_names_its_lab() -> None:
    causes = json.loads(PROTOCOL_1)["profile"]["findings"]
    labs = [cause["lab"] for cause in causes]
    assert any(labs)
    topics = [cause.topic for cause in decode_report(PROTOCOL_1).profile.findings]
    assert [LABS.get(topic) for topic in topics] == labs


def test_times_of_protocol_1_are_what_the_same_trace_gives_in_ns() -> None:
    profile = decode_report(PROTOCOL_1).profile
    read = analyse(*read_chrome_trace(str(TRACES / "train_fp32.json.gz")))
    for name in ("wall_ns", "gpu_busy_ns", "kernel_time_ns", "launch_api_ns"):
        assert getattr(profile, name) == getattr(read, name)
    for name, field in (
        *(("kernels", "time_ns"), ("copies", "time_ns"), ("paths", "time_ns")),
        *(("operators", "self_ns"), ("roofline", "time_ns")),
        *(("annotations", "host_ns"), ("annotations", "gpu_ns")),
        *(("lanes", "starts_ns"), ("lanes", "durations_ns")),
    ):
        times = [getattr(row, field) for row in getattr(profile, name)]
        assert times == [getattr(row, field) for row in getattr(read, name)] != []
    assert profile.completeness.profiler_ns == read.completeness.profiler_ns


def test_every_duration_of_protocol_1_is_read_and_moments_stay() -> None:
    report = decode_report(PROTOCOL_1)
    assert (report.started_ms, report.ended_ms) == (
        1_700_000_000_000,
        1_700_000_060_000,
    )
    profile, live = report.profile, report.live
    assert profile.set_up == SetUp(120_250_000, 400_500_000, 300_125_000)
    assert profile.repeats.bare_ns == (1_600_000, 1_550_000, 1_700_000)
    assert profile.lines[1].kernel_ns == 800_000 and profile.lines[1].copy_ns is None
    assert profile.memory_curves[0].times_ns == (0, 250_000, 500_000, 1_656_000)
    assert profile.trials[0].changed_ns == 1_062_500
    assert (live.elapsed_ns, live.setup_ns) == (60_000_000_000, 2_700_500_000)
    assert live.windows[0].recorded_ns == 11_071_456
    assert live.bare.p95_ns == 25_000_000 and live.profiled.mean_ns is None
    assert report.difference.wall.before_ns == 9_230_461
    # all of them were in ms
    assert names_in_ms(json.loads(encode(report))) == {"started_ms", "ended_ms"}


async def test_a_report_of_protocol_1_is_opened_as_one_of_today(
    jp_fetch, jp_serverapp
) -> None:
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    record = report_record(decode_report(PROTOCOL_1))
    await app._records.keep((record, PROTOCOL_1))
    path = ("warpbook", "api", "v1", "records", "report", "kept-1")
    report = msgspec.json.decode((await jp_fetch(*path)).body, type=CellReport)
    assert report.protocol == PROTOCOL_VERSION
    assert report.view is not None and report.view.lines is not None
    older = json.loads(PROTOCOL_1)["view"]["lines"]["rows"]
    words = [[cell.text for cell in row] for row in report.view.lines.rows]
    assert words == [[cell["text"] for cell in row] for row in older]
    assert report.difference is not None and report.difference.tables
    path = ("warpbook", "api", "v1", "reports", "kept-1", "figure")
    assert b"Launches" in (await jp_fetch(*path)).body


def test_a_report_of_protocol_1_that_never_ended_is_kept_as_one_of_today() -> None:
    ended = ended_without_its_server("report", PROTOCOL_1, 1.8e12)
    assert ended is not None
    assert msgspec.json.decode(ended[1])["protocol"] == PROTOCOL_VERSION
    assert decode_report(ended[1]).status == "interrupted"


@pytest.mark.parametrize(
    "wall_ms", ["1e308", '"soon"', "[[[1e308]]]", "{}", "[" * 9999]
)
async def test_a_damaged_report_of_protocol_1_is_left_out(wall_ms: str) -> None:
    whole = json.loads(PROTOCOL_1)
    whole["profile"]["wall_ms"] = "HERE"
    message = json.dumps(whole).replace('"HERE"', wall_ms).encode()
    assert await Reports(Kept(message)).load() == []
