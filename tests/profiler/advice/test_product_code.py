"""Sketches of faster products, around the line that multiplies."""

from __future__ import annotations

import ast

import pytest

from tests.profiler.advice.exam_changes import change_of
from warpbook_profiler.advice.cell_code import CellCode
from warpbook_profiler.advice.product_code import ProductCode, product_code

AUTOCAST = 'with torch.autocast("cuda", dtype=torch.bfloat16):\n'


def code_of(source: str, line: int | None = None) -> ProductCode | None:
    return product_code(CellCode(source), line)


@pytest.mark.parametrize(
    ("name", "change", "line", "sketch"),
    [
        (
            "attention_by_hand_in_fp32",
            "bf16",
            1,
            f"{AUTOCAST}    y = torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v",
        ),
        ("fp32_linear_stack", "bf16", 2, f"{AUTOCAST}    m(x)"),
        (
            "fp32_linear_stack",
            "tf32",
            2,
            'torch.set_float32_matmul_precision("high")  # once, before m(x)',
        ),
        (
            # the precision of products is not that of convolutions
            "fp32_conv",
            "tf32",
            2,
            "torch.backends.cudnn.allow_tf32 = True  # once, before m(x)",
        ),
        (
            "fp64_products_by_accident",
            "float32",
            1,
            "a, b = a.float(), b.float()"
            "  # NumPy's arrays are float64 unless told otherwise",
        ),
    ],
)
def test_products_are_shown_as_the_cell_has_them(
    name: str, change: str, line: int, sketch: str
) -> None:
    shown = change_of(name, change)
    assert (shown.line, shown.sketch) == (line, sketch)


def test_padded_matrices_are_cut_to_their_size() -> None:
    change = change_of("product_of_odd_sizes", "pad")
    ast.parse(change.sketch)
    assert change.line == 1
    assert "a, (0, -a.shape[-1] % 8, 0, -a.shape[-2] % 8)" in change.sketch
    assert change.sketch.endswith(
        "y = (a_padded @ b_padded)[..., :a.shape[-2], :b.shape[-1]]"
    )


def test_padding_a_model_keeps_the_general_sketch() -> None:
    change = change_of("odd_vocabulary", "pad")
    assert change.line == 2 and "and the weight, once" in change.sketch


def test_a_square_is_padded_once() -> None:
    code = code_of("y = torch.mm(a, a).sum()")
    assert code is not None
    assert code.padded(8).count("functional.pad") == 1
    assert "y = (a_padded @ a_padded)[..., :a.shape[-2], :a.shape[-1]].sum()" in (
        code.padded(8).splitlines()
    )


def test_products_that_follow_one_another_are_one_region() -> None:
    code = code_of("h = x @ w\nh = h.relu()\ny = h @ v\nprint(y)")
    assert code is not None
    assert code.in_bfloat16() == (
        f"{AUTOCAST}    h = x @ w\n    h = h.relu()\n    y = h @ v"
    )
    assert not code.padded(8) and not code.in_float32()


def test_a_training_step_is_cast_in_its_forward_pass() -> None:
    source = (
        "for x, y in loader:\n    o.zero_grad()\n    loss = criterion(net(x), y)\n"
        "    loss.backward()\n    o.step()"
    )
    code = code_of(source)
    assert code is not None
    assert code.in_bfloat16() == f"{AUTOCAST}    loss = criterion(net(x), y)"
    assert code_of(source, line=4) is None


def test_tensors_that_the_cell_makes_are_not_cast_where_it_does_not_say() -> None:
    code = code_of("a = load\nfor _ in range(9):\n    a = a @ b")
    assert code is not None and not code.in_float32()


@pytest.mark.parametrize(
    "source",
    [
        "y = x + 1",
        "y = (",
        # which of the two it is
        "x = net(x)\ny = x @ w",
        "y = encode(x)\nz = decode(y)",
        # another block
        "y = x @ w\nfor _ in range(9):\n    z = y @ y",
        # a loop between
        "y = x @ w\nfor _ in z:\n    y = y.relu()\nz = y @ v",
        "y = x" + " @ x" * 3_000,
    ],
)
def test_what_is_not_sure_has_no_place(source: str) -> None:
    assert code_of(source) is None


def test_a_recorded_line_tells_which_product_it_is() -> None:
    code = code_of("x = net(x)\ny = x @ w", line=2)
    assert code is not None and code.line == 2
    assert code.in_bfloat16() == f"{AUTOCAST}    y = x @ w"
