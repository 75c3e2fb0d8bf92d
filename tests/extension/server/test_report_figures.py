"""`GET api/v1/reports/ID/figure?kind=`: the pictures of a report in the dashboard."""

import json

import pytest
from tornado.httpclient import HTTPClientError

from tests.extension.server.test_difference import half_a_second, profiled
from tests.extension.server.test_ingest import report


@pytest.fixture
def figure(jp_fetch):
    """Ask for a figure of the report r-1."""

    async def figure(kind: str) -> str:
        path = ("warpbook", "api", "v1", "reports", "r-1", "figure")
        item = (await jp_fetch(*path, params={"kind": kind, "theme": "dark"})).body
        assert json.loads(item)["root_id"]
        return item.decode()

    return figure


async def test_each_kind_is_a_bokeh_figure(ingest, figure) -> None:
    await ingest("/v1/reports", profiled("r-1", "train_fp32", 1_000.0))
    assert "aten::addmm" in await figure("roofline")
    assert "nothing was allocated on a GPU" in await figure("memory")
    assert "Stream 7" in await figure("timeline")
    with pytest.raises(HTTPClientError, match="400"):
        await figure("portrait")


async def test_telemetry_comes_from_the_history_of_that_time(
    ingest, figure, connect
) -> None:
    client = await connect()
    hello = await client.next("hello")
    gpus = [device for device in hello["devices"] if device["kind"] == "gpu"]
    await client.subscribe()
    began_ms = await half_a_second(client)
    cell = profiled("r-1", "train_fp32", began_ms, gpus=["GPU-elsewhere"])
    await ingest("/v1/reports", cell)
    drawing = await figure("telemetry")
    # a recording stands in for whatever GPU worked, and says so
    assert "REPLAY h200.jsonl.gz: GPU 0" in drawing and "sm_active_ratio" in drawing
    assert drawing.count("REPLAY") == len(gpus)


async def test_a_cell_that_nothing_was_read_of_says_so(ingest, figure) -> None:
    await ingest("/v1/reports", profiled("r-1", "train_fp32", 1_000.0))
    assert "too short for telemetry: 0 samples" in await figure("telemetry")


async def test_memory_curves_that_lie_are_refused(ingest) -> None:
    lying = report()
    curve = {
        "device": 0,
        "times_ns": [0, 1000],
        "allocated_bytes": [1],
        "reserved_bytes": [1, 2],
        "changes": 1,
        "peak_allocated_bytes": 1,
        "peak_ns": 0,
        "peak_path": "",
        "peak_line": None,
    }
    lying["profile"]["memory_curves"] = [curve]
    response = await ingest("/v1/reports", lying)
    assert response.code == 400
    assert b"memory curve" in response.body


async def test_a_report_is_one_html_file_that_runs_nothing(ingest, jp_fetch) -> None:
    cell = profiled("r-1", "train_fp32", 1_000.0)
    cell["title"] = "<script>alert(1)</script>"
    await ingest("/v1/reports", cell)
    answer = await jp_fetch("warpbook", "api", "v1", "reports", "r-1", "page")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    page = answer.body.decode()
    assert "<script" not in page and "default-src 'none'" in page
    assert "<details open><summary>Kernels and operators</summary>" in page
    # every row, where a notebook's report has ten
    assert page.count("void at::native::") > 10 and " more</caption>" not in page
    with pytest.raises(HTTPClientError, match="404"):
        await jp_fetch("warpbook", "api", "v1", "reports", "r-2", "page")


@pytest.mark.parametrize(
    ("notebook", "count", "name"),
    [
        ("work/train it.ipynb", 7, "train-it-7"),
        (None, None, "cell"),
        ('a"; x=\r\n/..\u00e9.ipynb', 1, "1"),
        ("n" * 300 + ".ipynb", 1, "n" * 60),
    ],
)
async def test_a_saved_report_is_named_after_cell_and_time(
    ingest, jp_fetch, notebook: str | None, count: int | None, name: str
) -> None:
    cell = profiled("r-1", "train_fp32", 1_750_000_000_000.0)
    await ingest("/v1/reports", cell | {"notebook": notebook, "execution_count": count})
    answer = await jp_fetch("warpbook", "api", "v1", "reports", "r-1", "page")
    file = f"warpbook-{name}-20250615-150640.html"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{file}"'
