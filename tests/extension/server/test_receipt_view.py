"""A receipt in words and tables, as cell and page draw it."""

from typing import Any

import pytest
from msgspec.structs import replace

from warpbook.protocol import (
    PROTOCOL_VERSION,
    Allocator,
    CellRun,
    Device,
    DeviceReceipt,
    DeviceSpan,
    MetricSpan,
    Receipt,
    Verdict,
)
from warpbook.server.cells.receipt_view import view_of_receipt
from warpbook_monitors.frames import Metric
from warpbook_monitors.verdict_kinds import Kind

RUN = CellRun("r-1", PROTOCOL_VERSION, "k", None, "c", 1, "x = 1", 0.0, 1500.0, "ok")
GPU = Device(
    "gpu:a",
    "gpu",
    "NVIDIA H200",
    0,
    "live",
    (Metric("sm_active_ratio", "ratio", "SM", "ok"),),
)


def line_of(receipt: Receipt) -> str:
    return view_of_receipt(receipt, [GPU]).cell_line


def judged(kind: Kind, wall_ms: float = 3000.0, **changes: Any) -> Receipt:
    """The receipt of a cell that held memory on a GPU that was judged so."""
    allocator = Allocator(0, None, 1, 1, 1, 0)
    run = replace(RUN, ended_ms=wall_ms, allocators=(allocator,))
    verdict = Verdict(kind, "in words", "the rule")
    device = replace(span(0.2), verdict=verdict, **changes)
    return Receipt(run, wall_ms, (device,), "the line")


def span(sm_most: float | None, joules: float | None = 410.0) -> DeviceReceipt:
    sm = MetricSpan(sm_most, sm_most, sm_most, 1.0)
    return DeviceReceipt(
        DeviceSpan("gpu:a", {"sm_active_ratio": sm}, joules, "counter", ()), None
    )


def test_the_line_compares_with_the_run_before() -> None:
    before = Receipt(RUN, 1900.0, (span(0.9),), "before")
    receipt = Receipt(RUN, 1500.0, (span(0.9, None),), "1.50 s · SM 90 %", before)
    assert line_of(receipt) == "1.50 s · SM 90 % · before: 1.90 s, 410 J"
    unknown = Receipt(RUN, 1500.0, (span(0.9),), "now", receipt)
    assert line_of(unknown) == "now · before: 1.50 s"


@pytest.mark.parametrize(
    ("devices", "allocators", "is_quiet"),
    [
        # the server's line says why there is no GPU
        ((), (), False),
        ((span(0.001),), (), True),
        ((span(0.5),), (), False),
        # nobody knows what it did
        ((span(None),), (), False),
        ((span(0.0),), (Allocator(0, None, 1, 1, 1, 0),), False),
    ],
)
def test_a_cell_that_left_the_gpus_alone_has_a_short_line(
    devices: tuple[DeviceReceipt, ...],
    allocators: tuple[Allocator, ...],
    is_quiet: bool,
) -> None:
    run = replace(RUN, allocators=allocators)
    text = line_of(Receipt(run, 12.3, devices, "all figures"))
    assert text == ("12.3 ms · GPU at rest" if is_quiet else "all figures")


def test_a_small_energy_is_no_zero() -> None:
    before = Receipt(RUN, 1500.0, (span(0.5, 0.31),), "before")
    text = line_of(Receipt(RUN, 1500.0, (span(0.5),), "now", before))
    assert text == "now · before: 1.50 s, 0.3 J"


def test_where_something_held_the_cell_back_a_trace_is_offered() -> None:
    line = line_of(judged("host-bound"))
    assert line.startswith("the line · the GPU waited for the host: to see why, put ")
    assert "%%gpuprof on its first line" in line and "%gpuwatch trace" in line
    assert "took the time" in line_of(judged("transfer-bound"))
    assert "GPU idled" in line_of(judged("idle", 11_000.0))
    utilization = {"gpu_utilization_ratio": MetricSpan(0.3, 0.0, 1.0, 1.0)}
    receipt = judged("unknown", span=replace(span(0.2).span, metrics=utilization))
    assert "at work for 30 % of the time" in line_of(receipt)


def test_where_nothing_looks_wrong_nothing_is_offered() -> None:
    for kind in ("compute-bound", "memory-bound", "unknown", "idle"):
        assert "gpuprof" not in line_of(judged(kind))
    # it may be what others do
    receipt = judged("host-bound")
    others = replace(receipt, cell=RUN)
    assert "gpuprof" not in line_of(others)


def test_a_run_stands_beside_the_one_before_in_a_table() -> None:
    before = Receipt(RUN, 1900.0, (span(0.9),), "before")
    now = replace(span(0.42, None), notes=("all", "one"), shared=False)
    other = replace(now, span=replace(now.span, device="gpu:gone"), notes=("all",))
    view = view_of_receipt(Receipt(RUN, 1500.0, (now, other), "", before), [GPU])
    assert view.notes == ("all",), "what holds for both is said once"
    first, second = view.devices
    assert (first.name, second.name) == ("GPU 0", "gpu:gone")
    assert first.notes == ("Nobody else held memory on it.", "one")
    assert first.table is not None and second.table is None
    assert first.table.header == ("This run", "Before")
    assert [tuple(cell.text for cell in row) for row in first.table.rows] == [
        ("SM active", "42 %", "90 %"),
        ("Energy", "not known", "410 J, counted by the GPU"),
    ]


def test_what_torch_counted_is_a_group_of_figures() -> None:
    run = replace(RUN, allocators=(Allocator(1, None, 2**30, 2**31, 3 * 2**30, 4),))
    (group,) = view_of_receipt(Receipt(run, 1500.0, (), "line"), []).allocators
    assert group.title == "torch, cuda:1"
    assert [figure.value for figure in group.figures] == [
        *("3.00 GiB", "1.00 GiB", "2.00 GiB", "4")
    ]


def test_readings_that_are_missing_are_told() -> None:
    sm = MetricSpan(0.5, 0.5, 0.5, 0.6)
    half = DeviceReceipt(
        DeviceSpan("gpu:a", {"sm_active_ratio": sm}, 1.0, None, ()), None
    )
    (device,) = view_of_receipt(Receipt(RUN, 1500.0, (half,), "line"), [GPU]).devices
    assert device.notes == ("Readings cover 60 % of the span.",)
