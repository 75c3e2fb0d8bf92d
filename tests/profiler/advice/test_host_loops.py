"""Rules for loops of Python: rows, growing tensors, cells of networks, prints."""

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.techniques.host.cell_by_cell import cell_by_cell
from warpbook_profiler.techniques.host.growing_cat import growing_cat
from warpbook_profiler.techniques.host.printing import printing
from warpbook_profiler.techniques.host.row_by_row import row_by_row
from warpbook_profiler.techniques.host.waits import waits

ROWS = "y = torch.empty_like(x)\nfor i in range(64):\n    y[i] = x[i] * 2\n"


def rows(source: str | None, count: int = 64, took: int = 2_000) -> Cell:
    cell = Cell(source)
    cell.call("aten::empty_like")
    for _ in range(count):
        cell.views("aten::select")
        cell.call("aten::mul", took, dims=([4096], []))
        cell.views("aten::select")
        cell.call("aten::copy_", took, dims=([4096], [4096], []))
        cell.python(2_000)
    cell.wait()
    return cell


def test_rows_become_one_operation(tmp_path: Path) -> None:
    changes = changes_of(row_by_row, rows(ROWS).evidence(tmp_path))
    change = changes["whole-tensor"]
    # what is left is one launch: a bound that says nothing
    assert (change.basis, change.low_ns, change.line) == ("unknown", None, 2)
    assert "64 rows" in change.evidence
    assert "128 kernels" in change.evidence


def test_rows_of_an_unbound_tensor(tmp_path: Path) -> None:
    cell = Cell("norms = [row.norm() for row in x]")
    with cell.operator("aten::unbind"):
        cell.views(*["aten::select"] * 40)
    for _ in range(40):
        cell.call("aten::linalg_vector_norm", 2_000, dims=([512], [], [], [], []))
    cell.item()
    changes = changes_of(row_by_row, cell.evidence(tmp_path))
    assert changes["whole-tensor"].line == 1


def test_items_of_a_list_are_copied_at_once(tmp_path: Path) -> None:
    cell = Cell('on_gpu = [part.to("cuda") for part in parts]')
    for _ in range(40):
        with cell.operator("aten::to"), cell.operator("aten::_to_copy"):
            cell.copy("HtoD", 1_024)
            cell.wait()
    assert "whole-tensor" in changes_of(row_by_row, cell.evidence(tmp_path))


def test_rows_without_a_source(tmp_path: Path) -> None:
    cell = rows(None)
    change = changes_of(row_by_row, cell.evidence(tmp_path))["whole-tensor"]
    assert (change.line, change.code) == (None, "")


@pytest.mark.parametrize(
    "source",
    [
        # one step needs the one before it
        "for i in range(1, 64):\n    y[i] = x[i] * y[i - 1]\n",
        "for i in range(64):\n    h = x[i] * h + 1\n    y[i] = h\n",
        # rows of nothing
        "for layer in layers:\n    x = layer(x)\n",
        # a loop that trains
        "for i in range(64):\n    loss = model(x[i])\n    loss.backward()\n",
        # many rows at a time
        "for i in range(0, n, 256):\n    y[i : i + 256] = f(x[i : i + 256])\n",
    ],
)
def test_other_loops_are_no_rows(tmp_path: Path, source: str) -> None:
    assert not changes_of(row_by_row, rows(source).evidence(tmp_path))


@pytest.mark.parametrize(
    "cell",
    [
        rows(ROWS, count=6),
        # large work by itself
        rows(ROWS, took=200_000),
    ],
)
def test_few_rows_and_large_ones_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(row_by_row, cell.evidence(tmp_path))


def test_a_recurrence_without_a_source_is_let_be(tmp_path: Path) -> None:
    cell = Cell()
    for _ in range(64):
        cell.views("aten::select")
        cell.call("aten::mul", 2_000)
        cell.call("aten::add", 2_000)
    cell.wait()
    assert not changes_of(row_by_row, cell.evidence(tmp_path))


def test_a_stack_of_layers_is_let_be(tmp_path: Path) -> None:
    cell = Cell("losses = [loss[i] for i in range(9)]\ny = model(x)")
    for _ in range(12):
        cell.call("aten::layer_norm", 2_000)
        cell.views("aten::select", "aten::slice")
        cell.call("aten::linear", 4_000)
        cell.call("aten::add", 2_000)
    cell.wait()
    assert not changes_of(row_by_row, cell.evidence(tmp_path))


GROWS = (
    "out = torch.empty(0, 1024)\n"
    "for part in parts:\n"
    "    part = part * 2\n"
    "    out = torch.cat([out, part])\n"
)


def grows(source: str | None, is_read: bool = False, count: int = 40) -> Cell:
    cell = Cell(source)
    for number in range(count):
        cell.call("aten::mul", 4_000, dims=([4096, 1024], []))
        dims = [[[4096 * number, 1024], [4096, 1024]], []]
        cell.call("aten::cat", 10_000 * (number + 1), dims=dims)
        if is_read:
            size = [4096 * (number + 1), 1024]
            cell.call("aten::mm", 60_000, dims=(size, [1024, 8]))
    cell.wait()
    return cell


def test_a_growing_tensor_is_joined_once(tmp_path: Path) -> None:
    cell, fixed = grows(GROWS), Cell()
    for _ in range(40):
        fixed.call("aten::mul", 4_000)
    fixed.call("aten::cat", 430_000)
    fixed.wait()
    change = changes_of(growing_cat, cell.evidence(tmp_path))["cat-once"]
    # how the loop gathers the parts is new code of the host
    assert (change.basis, change.line) == ("not below", 4)
    assert change.low_ns is not None
    assert change.low_ns <= fixed.window_ns < cell.window_ns / 4
    assert "40 times" in change.evidence


def test_what_an_object_gathers_is_joined_with_room(tmp_path: Path) -> None:
    source = (
        "class Seen:\n    def __init__(self):\n        self.rows = torch.empty(0, 2)\n"
        "    def add(self, x):\n        self.rows = torch.cat([self.rows, x[None]])\n"
        "seen = Seen()\nfor x in parts:\n    seen.add(x)\n    x.mul_(2)\n"
        "rows = seen.rows.clone()\n"
    )
    change = changes_of(growing_cat, grows(source).evidence(tmp_path))["cat-once"]
    assert (change.basis, change.line) == ("not below", 5)
    assert agrees(change, source, "parts = list(torch.randn(9, 2))", "rows")
    # a function that joins, which nobody calls in turn
    once = "def f(x):\n    x.rows = torch.cat([x.rows, x.new])\nf(x)\n"
    change = changes_of(growing_cat, grows(once, count=6).evidence(tmp_path))
    assert not change


def test_a_function_of_another_cell_that_joins(tmp_path: Path) -> None:
    for call in ("recorder.add(x * 2)", "y = seen(x)", "rows = joined(rows, x)"):
        cell = grows(f"for x in parts:\n    {call}\n")
        change = changes_of(growing_cat, cell.evidence(tmp_path))["cat-once"]
        assert change.basis == "not below" and not change.code
    # others read it, or the cell joins something itself
    read = grows("for x in parts:\n    y = step(x)\n", is_read=True)
    assert not changes_of(growing_cat, read.evidence(tmp_path))
    own = grows("for x in parts:\n    y = f(torch.cat([x, x]))\n")
    assert not changes_of(growing_cat, own.evidence(tmp_path))


def test_a_growing_tensor_that_is_read_is_allocated_once(tmp_path: Path) -> None:
    source = f"{GROWS}    y = out @ weight\n"
    cell, fixed = grows(source, is_read=True), Cell()
    for _ in range(40):
        fixed.call("aten::mul", 4_000)
        fixed.call("aten::copy_", 3_000)
        fixed.call("aten::mm", 60_000)
    fixed.wait()
    changes = changes_of(growing_cat, cell.evidence(tmp_path))
    change = changes.pop("allocate-once")
    assert not changes
    assert change.low_ns is not None
    assert change.high_ns is not None
    assert change.low_ns <= fixed.window_ns <= change.high_ns
    # a cache of keys in a library is nobody's to change here
    assert not changes_of(growing_cat, grows(None, is_read=True).evidence(tmp_path))


_SEEN = (
    "class Seen:\n    def __init__(self):\n        self.rows = torch.empty(0, 8)\n"
    "    def add(self, row):\n        self.rows = torch.cat((self.rows, row))\n"
    "        return {}\n    def likeness(self, row):\n"
    "        return (self.rows @ row[-1]).max()\nseen = Seen()\n"
)
_FUNCTION = (
    "def add(rows, row):\n    rows = torch.cat([rows, row])\n    return {}\n"
    "rows = torch.empty(0, 8)\nfor row in x:\n    rows, most = add(rows, row)\n"
)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (
            _SEEN.format("torch.mv(self.rows, row[-1]).max()")
            + "y = torch.stack([seen.add(row) for row in x])\n",
            "allocate-once",
        ),
        (_FUNCTION.format("rows, rows.mv(row[-1]).max()"), "allocate-once"),
        (
            _SEEN.format("None")
            + "for row in x:\n    seen.add(row)\n    y = seen.likeness(row)\n",
            "allocate-once",
        ),
        # read after the loop alone, or no more of it than its size
        (
            _SEEN.format("len(self.rows)")
            + "for row in x:\n    seen.add(row)\ny = seen.likeness(x[0])\n",
            "cat-once",
        ),
        (_FUNCTION.format("rows, rows.shape[0]"), "cat-once"),
        (_SEEN.format("self.rows") + "for row in x:\n    seen.add(row)\n", "cat-once"),
    ],
)
def test_what_grows_in_a_function_is_read_there_or_later(
    tmp_path: Path, source: str, name: str
) -> None:
    cell = Cell(source)
    for number in range(40):
        # torch before 2.13 tells no sizes of lists
        cell.call("aten::cat", 10_000 * (number + 1), dims=([], []))
    cell.wait()
    assert [*changes_of(growing_cat, cell.evidence(tmp_path))] == [name]


def test_a_cache_that_grows_a_little_each_step(tmp_path: Path) -> None:
    cell = Cell("for x in xs:\n    k = torch.cat([k, x])\n    y = attend(k)\n")
    for number in range(20):
        dims = [[[1024 + 16 * number, 64], [16, 64]], []]
        cell.call("aten::cat", 80_000, dims=dims)
        cell.call("aten::mm", 20_000, dims=[[64, 64], [1040 + 16 * number, 64]])
    cell.wait()
    assert "allocate-once" in changes_of(growing_cat, cell.evidence(tmp_path))


def test_tensors_that_grow_side_by_side(tmp_path: Path) -> None:
    cell = Cell()
    for number in range(20):
        for _ in range(2):
            dims = [[[64 * number, 64], [64, 64]], []]
            cell.call("aten::cat", 20_000 * (number + 1), dims=dims)
    cell.wait()
    change = changes_of(growing_cat, cell.evidence(tmp_path))["cat-once"]
    assert "40 times" in change.evidence


def test_joins_of_fixed_sizes_are_let_be(tmp_path: Path) -> None:
    cell = Cell("for x in batches:\n    y = torch.cat([x, x])\n")
    for _ in range(40):
        cell.call("aten::cat", 80_000, dims=[[[64, 64], [64, 64]], []])
    cell.wait()
    assert not changes_of(growing_cat, cell.evidence(tmp_path))
    few = grows(GROWS, count=6)
    assert not changes_of(growing_cat, few.evidence(tmp_path))


def test_a_growing_tensor_that_is_not_in_the_source_is_let_be(tmp_path: Path) -> None:
    cell = grows("text = model.generate(tokens)")
    assert not changes_of(growing_cat, cell.evidence(tmp_path))


STEPS = (
    "cell = torch.nn.LSTMCell(256, 512).cuda()\n"
    "for t in range(64):\n"
    "    h, c = cell(x[:, t], (h, c))\n"
)


def steps(operator: str, source: str | None, between: str = "") -> Cell:
    cell = Cell(source)
    for _ in range(64):
        cell.views("aten::slice", "aten::select")
        if between:
            cell.call(between, 4_000)
        with cell.operator(operator):
            for _ in range(2):
                with cell.operator("aten::linear"):
                    cell.call("aten::addmm", 6_000)
            cell.call("aten::_thnn_fused_lstm_cell", 4_000)
    cell.wait()
    return cell


def test_cells_become_a_network_over_the_sequence(tmp_path: Path) -> None:
    cell, fixed = steps("aten::lstm_cell", STEPS), Cell()
    with fixed.operator("aten::lstm"):
        fixed.call("aten::_cudnn_rnn", 260_000)
    fixed.wait()
    change = changes_of(cell_by_cell, cell.evidence(tmp_path))["whole-lstm"]
    assert (change.basis, change.line) == ("not below", 3)
    assert change.low_ns is not None
    assert change.low_ns <= fixed.window_ns < cell.window_ns
    assert "64 times" in change.evidence
    assert "3 kernels" in change.evidence


def test_a_sequence_of_each_step_of_training(tmp_path: Path) -> None:
    cell = Cell()
    for _ in range(3):
        for _ in range(16):
            cell.call("aten::gru_cell", 6_000, 6_000, 4_000)
        cell.call("aten::mm", 10_000)
        for name in ("ThnnFusedGruCellBackward0", "AddmmBackward0") * 16:
            name = f"autograd::engine::evaluate_function: {name}"
            cell.call(name, 6_000, 6_000, thread=77)
    cell.wait()
    change = changes_of(cell_by_cell, cell.evidence(tmp_path))["whole-gru"]
    assert "48 times" in change.evidence
    assert change.low_ns is not None
    assert change.low_ns < cell.window_ns / 5


def test_other_cells_have_networks_of_their_own(tmp_path: Path) -> None:
    for operator, name in (
        ("aten::gru_cell", "whole-gru"),
        ("aten::rnn_tanh_cell", "whole-rnn"),
    ):
        cell = steps(operator, None, between="aten::mul")
        assert name in changes_of(cell_by_cell, cell.evidence(tmp_path))


@pytest.mark.parametrize("between", ["aten::embedding", "aten::argmax", "aten::mm"])
def test_a_decoder_needs_its_cells(tmp_path: Path, between: str) -> None:
    cell = steps("aten::lstm_cell", STEPS, between)
    assert not changes_of(cell_by_cell, cell.evidence(tmp_path))


def shows(cell: Cell) -> None:
    """Print a tensor, as torch formats one of floats."""
    cell.views("aten::reshape")
    cell.call("aten::isfinite", 1_500, 1_500)
    cell.call("aten::ne", 1_500)
    cell.call("aten::__and__", 1_500)
    with cell.operator("aten::masked_select"):
        cell.call("aten::sum", 1_500)
        cell.item()
    for name in ("aten::abs", "aten::to", "aten::min", "aten::max"):
        cell.call(name, 1_500)
    for name in ("aten::ceil", "aten::ne", "aten::div", "aten::gt"):
        cell.call(name, 1_500)
        with cell.operator("aten::is_nonzero"):
            cell.item()
    cell.item()


PRINTS = "for step in range(20):\n    loss = f(x)\n    print(step, loss)\n"


def prints(source: str | None, count: int) -> Cell:
    cell = Cell(source)
    for _ in range(20):
        cell.call("aten::mm", 40_000)
        if count > 0:
            shows(cell)
        count -= 1
    cell.wait()
    return cell


@pytest.mark.parametrize("source", [PRINTS, None, "run()"])
def test_prints_are_gathered(tmp_path: Path, source: str | None) -> None:
    cell, fixed = prints(source, 20), prints(source, 0)
    shows(fixed)
    change = changes_of(printing, cell.evidence(tmp_path))["print-once"]
    assert change.basis == "not below"
    assert change.line == (3 if source == PRINTS else None)
    assert change.low_ns is not None
    assert change.low_ns <= fixed.window_ns < cell.window_ns / 2
    assert "20 times" in change.evidence


@pytest.mark.parametrize(
    "cell",
    [
        prints(PRINTS, 1),
        # not in a loop
        prints("print(a)\nprint(b)\nprint(c)", 3),
    ],
)
def test_a_few_prints_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(printing, cell.evidence(tmp_path))


TEXTS = (
    "import time\nbegun, many = time.time(), 20\n"
    "for step in range(many):\n    loss = f(x)\n    {}\n"
)


@pytest.mark.parametrize("shown", [0, 1, 20])
def test_numbers_in_texts_are_printed_whatever_else_is(
    tmp_path: Path, shown: int
) -> None:
    cell = Cell(TEXTS.format("print(f'{step}: {loss:.3f}')") + "print(x)\n")
    for turn in range(20):
        cell.call("aten::mm", 40_000)
        cell.item()
        if turn < shown:
            shows(cell)
    evidence = cell.evidence(tmp_path)
    assert "print-once" in changes_of(printing, evidence)
    assert not changes_of(waits, evidence)


@pytest.mark.parametrize(
    "text",
    ["{step + 1} of {many}", "{time.time() - begun:.1f} s"],
)
def test_counts_in_texts_are_not_what_is_read(tmp_path: Path, text: str) -> None:
    print_ = f"out.append(data[loss : loss + 1]); print(f'{text}')"
    cell = Cell(TEXTS.replace("{}", print_))
    for _ in range(20):
        cell.call("aten::argmax", 40_000)
        cell.item()
        cell.item()
    evidence = cell.evidence(tmp_path)
    assert "read-once" in changes_of(waits, evidence)
    assert not changes_of(printing, evidence)


def test_numbers_that_are_read_are_no_prints(tmp_path: Path) -> None:
    cell = Cell(PRINTS)
    for _ in range(20):
        cell.call("aten::mm", 40_000)
        cell.item()
    assert not changes_of(printing, cell.evidence(tmp_path))
