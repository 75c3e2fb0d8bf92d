"""Rules for settings of debugging, and what is read from a source for all rules."""

from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of, evidence_of
from tests.profiler.advice.test_host_loops import PRINTS, prints
from tests.profiler.replay.exam import TRACES
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.host_flow import round_trips
from warpbook_profiler.advice.code.loops import row_loops
from warpbook_profiler.advice.code.row_code import of_all_rows
from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.techniques.gpu.contention import contention
from warpbook_profiler.techniques.host.allocation import allocation
from warpbook_profiler.techniques.host.cell_by_cell import cell_by_cell
from warpbook_profiler.techniques.host.cudnn_search import cudnn_search
from warpbook_profiler.techniques.host.debug_settings import debug_settings
from warpbook_profiler.techniques.host.growing_cat import growing_cat
from warpbook_profiler.techniques.host.loading import loading
from warpbook_profiler.techniques.host.masks import masks
from warpbook_profiler.techniques.host.printing import printing
from warpbook_profiler.techniques.host.round_trip import round_trip
from warpbook_profiler.techniques.host.row_by_row import row_by_row

RULES: tuple[Rule, ...] = (
    allocation,
    cell_by_cell,
    debug_settings,
    growing_cat,
    loading,
    masks,
    printing,
    round_trip,
    row_by_row,
)
BLOCKING = 'import os\nos.environ["CUDA_LAUNCH_BLOCKING"] = "1"\nstep()\n'


def multiplies(
    source: str | None, is_blocking: bool, waits: bool = False, took: int = 60_000
) -> Cell:
    cell = Cell(source, is_blocking)
    for _ in range(40):
        cell.python(40_000)
        cell.call("aten::mm", took)
        cell.call("aten::relu", 3_000)
        if waits:
            cell.wait()
    cell.wait()
    return cell


def test_launches_that_block(tmp_path: Path) -> None:
    cell, fixed = multiplies(BLOCKING, True), multiplies(None, False)
    changes = changes_of(debug_settings, cell.evidence(tmp_path))
    change = changes["no-launch-blocking"]
    assert (change.basis, change.line) == ("predicted", 2)
    assert change.low_ns is not None
    assert change.high_ns is not None
    assert change.low_ns <= fixed.window_ns <= change.high_ns < cell.window_ns
    assert "80 launches" in change.evidence


@pytest.mark.parametrize(
    "cell",
    [
        multiplies(BLOCKING, False),
        # the code waits itself, or its kernels are short
        multiplies(None, False, waits=True),
        multiplies(None, True, took=4_000),
    ],
)
def test_launches_that_do_not_block(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(debug_settings, cell.evidence(tmp_path))


def trains(source: str | None, is_checked: bool) -> Cell:
    cell = Cell(source)
    for _ in range(12):
        cell.python(60_000 if is_checked else 10_000)
        cell.call("aten::mm", 5_000)
    for _ in range(12):
        with cell.operator("autograd::engine::evaluate_function: Mm", thread=77):
            cell.call("aten::mm", 5_000)
            if is_checked:
                cell.call("aten::isnan", 3_000)
                cell.call("aten::_is_any_true", 3_000)
                cell.item()
    cell.wait()
    return cell


def test_a_search_for_nan_after_each_step_back(tmp_path: Path) -> None:
    source = "torch.autograd.set_detect_anomaly(True)\nloss.backward()\n"
    cell, fixed = trains(source, True), trains(None, False)
    changes = changes_of(debug_settings, cell.evidence(tmp_path))
    change = changes["no-anomaly-mode"]
    assert (change.basis, change.line) == ("not below", 1)
    assert change.low_ns is not None
    assert change.low_ns <= fixed.window_ns
    assert "12 times" in change.evidence
    unchecked = trains(source, False)
    assert not changes_of(debug_settings, unchecked.evidence(tmp_path))


def convolves(source: str | None, name: str = "aten::cudnn_convolution") -> Cell:
    cell = Cell(source)
    for _ in range(10):
        cell.call(name, 200_000)
    cell.wait()
    return cell


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("torch.use_deterministic_algorithms(True)", "nondeterministic"),
        ("torch.backends.cudnn.deterministic = True", "nondeterministic"),
        ("torch.backends.cudnn.benchmark = False", "cudnn-benchmark"),
        ("with torch.autograd.profiler.emit_nvtx():\n    step()", "no-ranges"),
    ],
)
def test_settings_of_which_only_the_source_tells(
    tmp_path: Path, source: str, name: str
) -> None:
    rule = cudnn_search if name == "cudnn-benchmark" else debug_settings
    changes = changes_of(rule, convolves(source).evidence(tmp_path))
    assert list(changes) == [name]
    assert (changes[name].basis, changes[name].line) == ("unknown", 1)
    assert changes[name].reason


@pytest.mark.parametrize(
    "cell",
    [
        convolves("torch.use_deterministic_algorithms(False)"),
        convolves("torch.backends.cudnn.deterministic = False"),
        convolves("torch.backends.cudnn.benchmark = True"),
        convolves("torch.backends.cudnn.benchmark = False", "aten::mm"),
        convolves("torch.use_deterministic_algorithms(True)", "aten::mm"),
    ],
)
def test_settings_that_change_nothing(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(debug_settings, cell.evidence(tmp_path))


@pytest.mark.parametrize(
    ("name", "before", "sorts"),
    [
        ("index_add_", "", True),
        ("index_add", "", True),
        ("scatter_add", "", True),
        # a setting of convolutions does not tell of it
        ("scatter_add_", "torch.backends.cudnn.deterministic = True\n", True),
        ("index_add_", "", False),
    ],
)
def test_a_sorted_addition_tells_of_deterministic_algorithms(
    tmp_path: Path, name: str, before: str, sorts: bool
) -> None:
    """Who switches them on may be a function of another cell."""
    source, sizes = f"{before}y = spread(x)\n", ((1 << 20,), (1 << 23,), (1 << 23,))
    cell = Cell(source)
    for _ in range(10):
        with cell.operator(f"aten::{name}", sizes):
            if sorts:
                cell.call("aten::index_put_", 2_000_000)
            else:
                cell.kernel(20_000_000)
    cell.wait()
    evidence = cell.evidence(tmp_path)
    found = {**changes_of(debug_settings, evidence), **changes_of(contention, evidence)}
    assert list(found) == (["nondeterministic"] if sorts else ["contention"])


def test_a_mask_within_a_print_is_none(tmp_path: Path) -> None:
    cell = prints(f"{PRINTS}    y = x[x > 0]\n", 20)
    assert not changes_of(masks, cell.evidence(tmp_path))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_recorded_cells_have_none_of_these(path: Path) -> None:
    evidence = evidence_of(*read_chrome_trace(str(path)))
    assert not [change for rule in RULES for change in changes_of(rule, evidence)]


def test_a_cell_without_anything_gets_no_advice(tmp_path: Path) -> None:
    cell = Cell()
    cell.call("aten::mm", 4_000)
    evidence = cell.evidence(tmp_path)
    assert not [change for rule in RULES for change in changes_of(rule, evidence)]


@pytest.mark.parametrize(
    ("source", "whole"),
    [
        ("for i in range(9):\n    out[i] = x[i] * 2", "i = 8\nout[:9] = x[:9] * 2"),
        (
            "for row in x:\n    out.append(row.norm())",
            "row = x[-1]\nout += x.norm(dim=-1).unbind()",
        ),
        (
            "for i in range(len(x)): y[i] = torch.softmax(x[i] @ w, 0)",
            "i = len(x) - 1\ny[: len(x)] = torch.softmax((x @ w), dim=1)",
        ),
        (
            "y = [x[i].max() for i in range(n)]",
            "y = list(x[:n].amax(dim=-1).unbind())",
        ),
        (
            "for i in range(9):\n    y[i] = x[i] / x[i].sum()",
            "i = 8\ny[:9] = x[:9] / x[:9].sum(dim=-1).unsqueeze(1)",
        ),
        ("for i in range(9):\n    y[i] = x[i].sum() * w", ""),
        ("y = [f(x[i]) for i in range(9)]", ""),
        ("for i in range(9):\n    h[i] = x[i:i+1] * 2", ""),
        ("for i in range(9):\n    h[i] = x[i] @ x[i]", ""),
        ("for i in range(9):\n    h[i] = x[i] * i", ""),
        ("for i in range(9):\n    h[i] = x[i].sort()", ""),
        ("for i in range(9):\n    h[i] = x[i].clamp_(0)", ""),
        ("for i, row in enumerate(x):\n    t += row.sum()\n    n += 1", ""),
    ],
)
def test_loops_over_rows(source: str, whole: str) -> None:
    code = CellCode(source)
    (loop,) = row_loops(code)
    assert loop.rows == "x"
    assert of_all_rows(code, loop, 1, is_list=False).removeprefix("import torch\n") == (
        whole
    )


@pytest.mark.parametrize(
    "source",
    [
        "for t in range(9):\n    h = torch.tanh(x[t] @ w + h)",
        "for i in range(9):\n    x[i] = x[i - 1] * 2",
        "for i in range(9):\n    if x[i] > 0:\n        break",
        "for p in model.parameters():\n    p.add_(1)",
        "for i in range(0, n, 8):\n    y = f(x[i:i + 8])",
        "%time f(x)",
    ],
)
def test_loops_over_something_else(source: str) -> None:
    assert not list(row_loops(CellCode(source)))


@pytest.mark.parametrize(
    ("source", "line", "is_numpy"),
    [
        ("y = torch.sort(x.cpu()).values.cuda()", 1, False),
        ("a = x.to('cpu')\nb = a * 2\nc = b.to(device)", 1, False),
        ("a = x.cpu().numpy()\nfor i in r:\n  c = torch.tensor(a, device=d)", 1, True),
        ("if ok:\n    a = x.detach().cpu()\nb = f(a).to(device='cuda')", 2, False),
    ],
)
def test_values_that_come_back(source: str, line: int, is_numpy: bool) -> None:
    (trip,) = round_trips(CellCode(source))
    assert (trip.out.node.lineno, trip.out.is_numpy) == (line, is_numpy)


@pytest.mark.parametrize(
    "source",
    [
        "y = model(x.cuda()).cpu()",
        "a = x.cpu()\na = other\nb = a.cuda()",
        "a = x.cpu().to(torch.float32)",
        "kept.append(x.cpu())\nx = batch.to(device)",
        "a = x.cpu()\nb = f(x).cuda()",
    ],
)
def test_values_that_do_not_come_back(source: str) -> None:
    assert not round_trips(CellCode(source))
