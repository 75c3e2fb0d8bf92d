"""Edits to faster products, around the line that multiplies."""

from __future__ import annotations

import pytest

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.product_code import ProductCode, product_code

AUTOCAST = 'with torch.autocast("cuda", dtype=torch.bfloat16):\n'


def code_of(source: str, line: int | None = None) -> ProductCode | None:
    return product_code(CellCode(source), line)


def test_a_square_is_padded_once() -> None:
    code = code_of("y = torch.mm(a, a).sum()")
    assert code is not None
    assert code.padded(8).splitlines() == [
        "a_padded = torch.nn.functional.pad("
        "a, (0, -a.shape[-1] % 8, 0, -a.shape[-2] % 8))",
        "y = (a_padded @ a_padded)[..., : a.shape[-2], : a.shape[-1]].sum()",
    ]


def test_products_that_follow_one_another_are_one_region() -> None:
    code = code_of("h = x @ w\nh = h.relu()\ny = h @ v\nprint(y)")
    assert code is not None
    assert code.in_bfloat16() == (
        f"import torch\n{AUTOCAST}"
        "    h = x @ w\n    h = h.relu()\n    y = h @ v\nprint(y)"
    )
    assert not code.padded(8) and not code.in_float32()


def test_a_training_step_is_cast_in_its_forward_pass() -> None:
    source = (
        "for x, y in loader:\n    o.zero_grad()\n    loss = criterion(net(x), y)\n"
        "    loss.backward()\n    o.step()"
    )
    code = code_of(source)
    assert code is not None
    within = f"    {AUTOCAST}        loss = criterion(net(x), y)\n"
    assert code.in_bfloat16() == "import torch\n" + source.replace(
        "    loss = criterion(net(x), y)\n", within
    )
    assert code_of(source, line=4) is None


def test_operands_are_cast_where_they_are_multiplied() -> None:
    code = code_of("a = load\nfor _ in range(9):\n    c = (a + 1) @ b")
    assert code is not None
    assert code.in_float32().endswith("((a + 1).float()) @ b.float()")


def test_what_is_multiplied_where_it_is_set_is_not_padded_before() -> None:
    code = code_of("for _ in range(9):\n    a = a @ b")
    assert code is not None and not code.padded(8)


def test_a_manager_that_is_there_gets_another_one() -> None:
    code = code_of("with torch.no_grad(): y = net(x)")
    assert code is not None
    assert code.in_bfloat16() == (
        'with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16): y = net(x)'
    )
    # what a loop has in its line gets none within
    line = code_of("for x in xs: y = net(x)")
    assert line is not None
    assert line.in_bfloat16() == (
        f"import torch\n{AUTOCAST}    for x in xs: y = net(x)"
    )


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
    assert code.in_bfloat16() == (f"import torch\nx = net(x)\n{AUTOCAST}    y = x @ w")
