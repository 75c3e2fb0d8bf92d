"""The way to the server: nothing waits long, nothing raises but in words."""

import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from warpbook.kernel.link.server_link import LinkError, NoServer, ServerLink
from warpbook.protocol import (
    ENV_INGEST_URL,
    MAX_REPORT_BYTES,
    PROTOCOL_VERSION,
    CellReport,
)
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import Lane
from warpbook_profiler.verdict.analysis import analyse

TRACE = Path(__file__).parents[2] / "data" / "traces" / "train_fp32.json.gz"


def report() -> CellReport:
    return CellReport(
        id="a-1",
        protocol=PROTOCOL_VERSION,
        kernel_id="k",
        notebook=None,
        cell_id=None,
        execution_count=1,
        title="train()",
        started_ms=1.0,
        ended_ms=2.0,
        status="ok",
        profile=analyse(*read_chrome_trace(str(TRACE))),
    )


def test_a_report_arrives_whole(ingest: Any) -> None:
    ServerLink().post(report())
    assert ingest.reports == [report()]


def test_outside_a_server_there_is_nobody() -> None:
    with pytest.raises(NoServer, match="pip install warpbook"):
        ServerLink({}).post(report())


def test_a_server_that_is_gone_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    link = ServerLink({ENV_INGEST_URL: f"http://127.0.0.1:{port}"})
    with pytest.raises(LinkError, match="restart this kernel too"):
        link.post(report())


@pytest.mark.parametrize(
    "url", ["nonsense", "http://127.0.0.1:99999", "http://[", "http://"]
)
def test_a_senseless_address_is_an_error_in_words(url: str) -> None:
    with pytest.raises(LinkError):
        ServerLink({ENV_INGEST_URL: url}).state()


def test_something_else_than_http_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LinkError, match="does not answer"):
            ServerLink({ENV_INGEST_URL: url}).state()


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"protocol": 1}', b"[]"])
def test_an_answer_that_is_no_state_is_an_error_in_words(
    ingest: Any, body: bytes
) -> None:
    ingest.state = body
    with pytest.raises(LinkError):
        ServerLink().state()


def test_a_conflict_says_where_to_upgrade(ingest: Any) -> None:
    ingest.status = 409
    ingest.state = b'{"protocol": 99, "version": "9.0"}'
    with pytest.raises(LinkError, match="upgrade warpbook in this kernel's"):
        ServerLink().post(report())


def test_a_report_that_is_too_large_goes_without_its_timeline(ingest: Any) -> None:
    profile = report().profile
    names = tuple(f"{number}" * 60 for number in range(3000))
    lane = Lane("Stream 7", (0,) * 3000, (1,) * 3000, tuple(range(3000)))
    large = msgspec.structs.replace(
        report(), profile=msgspec.structs.replace(profile, names=names, lanes=(lane,))
    )
    assert len(msgspec.json.encode(large)) > MAX_REPORT_BYTES / 2
    ServerLink().post(large)
    assert ingest.reports[-1] == large
    larger = msgspec.structs.replace(
        large, profile=msgspec.structs.replace(large.profile, lanes=(lane,) * 20)
    )
    ServerLink().post(larger)
    sent = ingest.reports[-1].profile
    assert (sent.lanes, sent.names) == ((), ())
    assert sent.completeness.lanes_omitted == 60_000
    assert sent.kernels == profile.kernels
