"""What is read from the profiler's memory, of every version of torch that works.

The events are those of recordings of a real H200, given as torch's own objects would.
"""

import gc
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import DeviceType

from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.capture.kineto_events import read_events
from warpbook_profiler.events.columns import KINETO_CATEGORIES, NONE, Category, Columns
from warpbook_profiler.files.chrome import read_chrome_trace

TRACES = Path(__file__).parents[2] / "data" / "traces"
EXAM = Path(__file__).parents[3] / "benchmarks" / "open_exam" / "traces" / "h200"
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")


class Torch24:
    """An event as torch 2.4 tells it."""

    def __init__(self, fields: dict[str, Any], base_ns: int) -> None:
        self.fields, self.base_ns = fields, base_ns
        self.args = dict(fields.get("args", {}))
        self.external = self.args.pop("External id", 0)
        self.is_host = fields["cat"] in ("cpu_op", "user_annotation")

    def name(self) -> str:
        return str(self.fields["name"])

    def start_ns(self) -> int:
        return self.base_ns + round(self.fields["ts"] * 1000)

    def duration_ns(self) -> int:
        return round(self.fields["dur"] * 1000)

    def device_type(self) -> DeviceType:
        on_gpu = self.fields["cat"] in ON_GPU
        return DeviceType.CUDA if on_gpu else DeviceType.CPU

    def device_index(self) -> int:
        return int(self.fields["pid"])

    def device_resource_id(self) -> int:
        return int(self.fields["tid"])

    def correlation_id(self) -> int:
        return int(self.external if self.is_host else self.args.get("correlation", 0))

    def linked_correlation_id(self) -> int:
        return 0 if self.is_host else int(self.external)

    def sequence_nr(self) -> int:
        return int(self.args.get("Sequence number", NONE))


class Torch29(Torch24):
    """Tells annotations and the arguments of what ran on the GPU."""

    def is_user_annotation(self) -> bool:
        return self.fields["cat"] in ("user_annotation", "gpu_user_annotation")

    def metadata_json(self) -> str:
        return json.dumps(self.args)[1:-1]


class Torch213(Torch29):
    """Tells the kind of event."""

    def activity_type(self) -> str:
        return str(self.fields["cat"])


def events(path: Path, version: type[Torch24]) -> list[Any]:
    trace = json.loads(gzip.decompress(path.read_bytes()))
    return [
        version(event, trace["baseTimeNanoseconds"])
        for event in trace["traceEvents"]
        if event["ph"] == "X" and event["cat"] in {*KINETO_CATEGORIES, *ON_GPU}
    ]


@pytest.mark.parametrize("version", [Torch24, Torch29, Torch213])
@pytest.mark.parametrize("path", sorted(TRACES.iterdir()), ids=lambda path: path.stem)
def test_memory_and_file_say_the_same(path: Path, version: type[Torch24]) -> None:
    from_file, _ = read_chrome_trace(str(path))
    columns_read = read_events(events(path, version))
    columns_read = columns_read.where(columns_read.category != Category.OTHER)
    assert len(columns_read) == len(from_file)
    for column in ("start_ns", "duration_ns", "category", "device"):
        assert np.array_equal(getattr(columns_read, column), getattr(from_file, column))
    assert [columns_read.names[at] for at in columns_read.name] == [
        from_file.names[at] for at in from_file.name
    ]
    calls = ~columns_read.is_in(Category.OPERATOR, Category.OVERHEAD)
    for column in ("correlation", "external"):
        ours, theirs = (
            getattr(columns_read, column)[calls],
            getattr(from_file, column)[calls],
        )
        assert np.array_equal(np.where(ours == 0, NONE, ours), theirs)
    assert np.array_equal(columns_read.track[calls], from_file.track[calls])
    assert np.array_equal(columns_read.sequence, from_file.sequence)
    if version is Torch24:
        # the version does not tell them
        assert (columns_read.size_bytes == NONE).all() and (
            columns_read.shape == NONE
        ).all()
        return
    assert np.array_equal(columns_read.size_bytes[calls], from_file.size_bytes[calls])
    kernels = columns_read.is_in(Category.KERNEL)
    assert [columns_read.shapes[at] for at in columns_read.shape[kernels]] == [
        from_file.shapes[at] for at in from_file.shape[kernels]
    ]


class WithOperands(Torch213):
    """Tells what an operator was called with."""

    def shapes(self) -> list[Any]:
        return list(self.args.get("Input Dims", ()))

    def dtypes(self) -> list[str]:
        return list(self.args.get("Input type", ()))

    def concrete_inputs(self) -> list[str]:
        return list(self.args.get("Concrete Inputs", ()))


@pytest.mark.parametrize("name", ["envelope_by_numpy", "replay_buffer_of_tuples"])
def test_operators_that_put_work_on_the_gpu_keep_their_operands(name: str) -> None:
    path = EXAM / f"{name}.json.gz"
    from_file, _ = read_chrome_trace(str(path))
    live = read_events(events(path, WithOperands), shapes=True)
    ours, theirs = map(launching, (live, from_file))
    assert ours == theirs
    assert any(called == "aten::copy_" for _, called in ours)


def launching(columns: Columns) -> dict[tuple[int, str], Any]:
    """Give what operators were called with, by their start and name."""
    work = columns.only(Category.KERNEL, Category.COPY, Category.MEMSET)
    launches = np.isin(columns.external, work.external[work.external > 0])
    rows = np.flatnonzero(launches & columns.is_in(Category.OPERATOR))
    return {
        (int(columns.start_ns[at]), columns.names[columns.name[at]]): (
            columns.operands[columns.operand[at]].dims,
            columns.operands[columns.operand[at]].dtypes,
        )
        for at in rows.tolist()
    }


def test_a_kernel_and_a_part_of_the_code_may_have_one_name() -> None:
    """As where a Triton kernel's call is annotated by its own name."""
    fields = {"name": "add_kernel", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0}
    args = {"External id": 5, "correlation": 9}
    columns_read = read_events(
        [
            Torch29({**fields, "cat": cat, "args": args}, 0)
            for cat in ("gpu_user_annotation", "kernel")
        ]
    )
    assert sorted(columns_read.category) == [Category.KERNEL, Category.GPU_ANNOTATION]


def test_a_name_that_is_not_utf_8_spoils_no_other() -> None:
    class Unreadable(Torch213):
        def name(self) -> str:
            return b"\xff\xfe".decode()

    fields = {"cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0}
    columns_read = read_events(
        [Torch213(fields, 0), Unreadable(fields, 0), Torch213(fields, 0)]
    )
    assert sorted(columns_read.names) == ["(a name that is not UTF-8)", "k"]
    assert np.bincount(columns_read.name).tolist() == [1, 2]


def test_no_events_are_no_error() -> None:
    assert len(read_events([])) == 0


def test_reading_makes_no_work_for_the_garbage_collector(
    collections: Callable[[], int],
) -> None:
    capture = Capture()
    capture.start()
    x = torch.ones(3)
    for _ in range(20_000):
        x.add_(1)
    before = collections()
    columns, _ = capture.stop()
    assert len(columns) >= 20_000
    # young ones, of microseconds; key_averages() makes hundreds
    assert collections() - before < 20


@pytest.fixture
def collections() -> Callable[[], int]:
    return lambda: sum(stat["collections"] for stat in gc.get_stats())
