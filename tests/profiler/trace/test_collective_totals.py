"""Bytes and bus rates of collectives, as NCCL's own tests count them."""

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.written import call, kernel, report_of, trace

MANY = 2**63 - 1


@pytest.mark.parametrize(
    ("told", "size_bytes", "bus_bytes"),
    [
        ({"Collective name": "allreduce"}, 4_000, 6_000),
        ({"Collective name": "_reduce_scatter_base"}, 4_000, 3_000),
        (
            {"Collective name": "all_gather", "Out msg nelems": 4000},
            16_000,
            12_000,
        ),
        ({"Collective name": "broadcast", "dtype": "BFloat16"}, 2_000, 2_000),
        ({"Collective name": "barrier"}, 4_000, None),
        ({"Collective name": "allreduce", "dtype": "Odd"}, None, None),
        ({"Collective name": "allreduce", "In msg nelems": MANY}, 4 * MANY, 6 * MANY),
    ],
)
def test_a_collective_tells_what_it_moves(
    told: dict[str, Any],
    size_bytes: int | None,
    bus_bytes: int | None,
    tmp_path: Path,
) -> None:
    args = {"External id": 4, "In msg nelems": 1000, "Out msg nelems": 1000}
    args |= {"Group size": 4, "dtype": "Float", **told}
    operator = call(0, 100.0, cat="cpu_op", name="record_param_comms", dur=50.0)
    work = kernel(9, 120.0, name="ncclDevKernel_X(x)", args={"External id": 4})
    content = trace(operator | {"args": args}, call(9, 110.0), work)
    (total,) = report_of(tmp_path, content).metrics.collectives
    assert (total.ranks, total.calls, total.time_ns) == (4, 1, 2_000)
    assert (total.size_bytes, total.bus_bytes) == (
        size_bytes,
        bus_bytes and pytest.approx(bus_bytes),
    )


@pytest.mark.parametrize("ranks", [0, -3, MANY])
def test_a_group_that_can_not_be_is_left_out(ranks: int, tmp_path: Path) -> None:
    args = {"External id": 4, "Collective name": "allreduce", "Group size": ranks}
    operator = call(0, 100.0, cat="cpu_op", name="record_param_comms", dur=50.0)
    work = kernel(9, 120.0, name="ncclDevKernel_X(x)", args={"External id": 4})
    content = trace(operator | {"args": args}, call(9, 110.0), work)
    assert report_of(tmp_path, content).metrics.collectives == ()
