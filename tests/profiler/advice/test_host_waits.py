"""Rules for what holds the host up: loading, memory, copies, masks, settings."""

from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.host.allocation import allocation
from warpbook_profiler.techniques.host.loading import loading
from warpbook_profiler.techniques.host.masks import masks
from warpbook_profiler.techniques.host.pinning import pinning

ALONE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
LOADS = (
    "loader = DataLoader(data, batch_size=64, shuffle=True)\n"
    "for x, y in loader:\n    step(x.cuda())\n"
)


def holds(change: Change, time_ns: int) -> bool:
    """Tell whether a range holds the time of the changed cell."""
    assert change.low_ns is not None
    assert change.high_ns is not None
    return change.low_ns <= time_ns <= change.high_ns


def loads(source: str | None, iterator: str, took: int, count: int = 12) -> Cell:
    cell = Cell(source)
    for _ in range(count):
        if took:
            with cell.operator(iterator, category="user_annotation"):
                for _ in range(8):
                    cell.views("aten::select")
                    cell.python(took // 8)
                cell.views("aten::stack")
        with cell.operator("aten::to"):
            cell.copy("HtoD", 100_000)
        cell.call("aten::addmm", 300_000)
    cell.wait()
    return cell


def test_workers_load_for_the_main_process(tmp_path: Path) -> None:
    cell, fixed = loads(LOADS, ALONE, 800_000), loads(None, "", 0)
    change = changes_of(loading, cell.evidence(tmp_path))["workers"]
    assert (change.basis, change.line) == ("not below", 1)
    assert change.low_ns is not None
    assert 0.8 * fixed.window_ns < change.low_ns <= fixed.window_ns
    assert "12 batches" in change.evidence
    assert "shuffle=True, num_workers=4, persistent_workers=True)" in change.code


def test_more_workers_load_faster(tmp_path: Path) -> None:
    cell = loads(None, WORKERS, 800_000)
    change = changes_of(loading, cell.evidence(tmp_path))["more-workers"]
    assert "11 times" in change.evidence


@pytest.mark.parametrize(
    "cell",
    [
        # batches that come in time
        loads(LOADS, WORKERS, 8_000),
        # and one batch
        loads(LOADS, ALONE, 800_000, count=1),
        loads(LOADS, "enumerate(batches)", 800_000),
    ],
)
def test_loading_that_takes_no_time_is_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(loading, cell.evidence(tmp_path))


EMPTIES = "for batch in batches:\n    step(batch)\n    torch.cuda.empty_cache()\n"


def allocates(
    source: str | None,
    *calls: str,
    took: int = 250_000,
    steps: int = 10,
    runs_out: bool = False,
) -> Cell:
    """Allocate in each step, and give back after it, or before memory is found."""
    cell = Cell(source)

    def give_back() -> None:
        if "cudaFree" in calls:
            # it waits for the GPU first
            cell.api("cudaFree", max(cell.window_ns - cell.host, 0) + took)

    for _ in range(steps):
        with cell.operator("aten::mm"):
            if runs_out:
                give_back()
            for name in calls:
                if name != "cudaFree":
                    cell.api(name, took)
            cell.kernel(300_000)
        if not runs_out:
            give_back()
    cell.wait()
    return cell


def test_a_cache_is_not_emptied(tmp_path: Path) -> None:
    cell = allocates(EMPTIES, "cudaMalloc", "cudaFree")
    fixed = allocates(None)
    change = changes_of(allocation, cell.evidence(tmp_path))["empty-cache"]
    assert (change.basis, change.line) == ("predicted", 3)
    # not even the first allocation is left
    assert holds(change, fixed.window_ns)
    assert "10 times" in change.evidence


@pytest.mark.parametrize(
    "source",
    [
        None,
        "for batch in batches:\n    step(batch)",
        "extents = torch.stack([extent(scan) for scan in scans])",
        "trainer.fit(model, clean_up=True)",
    ],
)
def test_a_cache_that_another_cells_function_empties(
    tmp_path: Path, source: str | None
) -> None:
    """The allocator gives memory back of itself only where it is asked for some."""
    cell = allocates(source, "cudaMalloc", "cudaFree")
    changes = changes_of(allocation, cell.evidence(tmp_path))
    assert list(changes) == ["empty-cache"]
    change = changes["empty-cache"]
    assert (change.basis, change.code) == ("predicted", "")
    assert holds(change, allocates(None).window_ns)


def test_memory_that_runs_out(tmp_path: Path) -> None:
    cell = allocates("train()", "cudaMalloc", "cudaFree", runs_out=True)
    changes = changes_of(allocation, cell.evidence(tmp_path))
    assert list(changes) == ["expandable-segments"]
    assert changes["expandable-segments"].basis == "not below"


@pytest.mark.parametrize(
    ("source", "line", "code"),
    [
        (
            "torch.cuda.caching_allocator_enable(False)\ntrain()",
            1,
            "train()",
        ),
        (
            'import os\nos.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"\ntrain()',
            2,
            "",
        ),
    ],
)
def test_the_caching_allocator_is_left_on(
    tmp_path: Path, source: str, line: int, code: str
) -> None:
    cell, fixed = allocates(source, "cudaMalloc", "cudaFree"), allocates(None)
    changes = changes_of(allocation, cell.evidence(tmp_path))
    assert list(changes) == ["caching-allocator"]
    change = changes["caching-allocator"]
    assert (change.basis, change.line) == ("predicted", line)
    assert holds(change, fixed.window_ns)
    assert change.code == code
    assert "allocated from the driver 10 times" in change.evidence


@pytest.mark.parametrize(
    "source",
    [
        "torch.cuda.caching_allocator_enable(True)\ntrain()",
        'os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "0"\ntrain()',
    ],
)
def test_an_allocator_that_is_on_is_no_cause(tmp_path: Path, source: str) -> None:
    cell = allocates(source, "cudaMalloc", "cudaFree", runs_out=True)
    changes = changes_of(allocation, cell.evidence(tmp_path))
    assert list(changes) == ["expandable-segments"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("cudaMalloc", "warm-memory"),
        ("hipMalloc", "warm-memory"),
        ("cuMemCreate", "warm-memory"),
        ("cudaHostAlloc", "pin-once"),
        ("hipHostMalloc", "pin-once"),
    ],
)
def test_first_allocations_and_pinned_ones(
    tmp_path: Path, call: str, name: str
) -> None:
    cell, fixed = allocates(None, call, took=500_000), allocates(None)
    evidence = cell.evidence(tmp_path)
    changes = changes_of(allocation, evidence) | changes_of(pinning, evidence)
    assert list(changes) == [name]
    assert holds(changes[name], fixed.window_ns)


@pytest.mark.parametrize(
    "cell",
    [
        # in the stream's order, or hidden behind the GPU
        allocates(None, "cudaMallocAsync"),
        allocates(None, "cudaMallocFromPoolAsync"),
        allocates(None, "cudaFreeAsync"),
        allocates(EMPTIES, "cudaMalloc", took=20_000),
        allocates(EMPTIES, "cudaLaunchHostFunc"),
    ],
)
def test_other_calls_of_memory_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(allocation, cell.evidence(tmp_path))


def chooses(source: str | None, operator: str, inner: str = "aten::nonzero") -> Cell:
    cell = Cell(source)
    for _ in range(20):
        cell.call("aten::mm", 50_000)
        cell.call("aten::gt", 4_000)
        with cell.operator(operator):
            with cell.operator(inner):
                cell.kernel(3_000)
                cell.copy("DtoH", 8)
                cell.kernel(3_000)
            cell.kernel(5_000)
        for _ in range(4):
            cell.call("aten::sum", 4_000)
    cell.wait()
    return cell


CHOOSES = "for x in data:\n    y = f(x)\n    loss = y[y > 0].mean()\n"


@pytest.mark.parametrize(
    ("source", "operator", "line"),
    [
        (CHOOSES, "aten::index", 3),
        ("keep = y > 0\nz = y[keep]\n", "aten::index", 2),
        ("z = torch.masked_select(y, y > 0)", "aten::masked_select", 1),
        (None, "aten::index_put_", None),
        # in a function of another cell
        ("errors = [misfit(*swath) for swath in swaths]", "aten::index", None),
        ("for batch in batches:\n    total += loss.of(batch)", "aten::index", None),
        ("while left:\n    clean(left.pop())", "aten::index_put_", None),
        ("d = {k: valid(v) for k, v in d.items()}", "aten::masked_select", None),
    ],
)
def test_masks_are_kept(
    tmp_path: Path, source: str | None, operator: str, line: int | None
) -> None:
    cell = chooses(source, operator)
    change = changes_of(masks, cell.evidence(tmp_path))["keep-mask"]
    assert (change.basis, change.line, change.operator) == ("not below", line, operator)
    assert "20 times" in change.evidence
    assert change.low_ns is not None
    assert change.low_ns < 0.9 * cell.window_ns


@pytest.mark.parametrize(
    "cell",
    [
        # places that are known, and a mask that only fills
        chooses(CHOOSES, "aten::index", "aten::select"),
        chooses(CHOOSES, "aten::index_put_", "aten::masked_fill_"),
        # that is what was asked for
        chooses("where = torch.nonzero(y)", "aten::nonzero", "aten::empty"),
        chooses("errors = [misfit(*swath) for swath in swaths]", "aten::nonzero"),
        # it is not in this cell, which calls a model
        chooses("boxes = detector(images)", "aten::index"),
    ],
)
def test_other_ways_to_choose_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(masks, cell.evidence(tmp_path))
