"""Edits to faster products, around the line that multiplies."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.product_code import ProductCode, product_code
from warpbook_profiler.advice.rewriting.tensor_core_products import padded_products

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


PADDED = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, t = torch.randn(16, 33).bfloat16(), torch.randn(2, 8, 33).bfloat16()
ups = [torch.randn(41, 33).bfloat16() / 6 for _ in range(3)]
downs = [torch.randn(33, 41).bfloat16() / 6 for _ in range(3)]
net = nn.Sequential(nn.Linear(33, 41), nn.ReLU(), nn.Linear(41, 33)).bfloat16()
gate, down = nn.Linear(33, 41).bfloat16(), nn.Linear(41, 33).bfloat16()
"""

BIASED = """
a, w = torch.ones(13, 9).half(), torch.full((16, 9), -299 / 9).half()
h = F.linear(a, w, torch.full((16,), 300.0).half())
q = torch.full((8, 13), 0.1).half()
"""


@pytest.mark.parametrize(
    ("source", "pads"),
    [
        ("y = x[:0] @ ups[0].T\nz = (x[:0] @ ups[0].T.contiguous()).relu()\n", None),
        # the first input and each weight; what is between products stays padded
        (
            "y = x\nfor u, d in zip(ups, downs):\n    h = F.relu(F.linear(y, u))\n"
            "    y = F.linear(h, d)\n",
            7,
        ),
        ("y = x\nfor u, d in zip(ups, downs):\n    y = (y @ u.T).relu_() @ d.T\n", 7),
        ("with torch.no_grad():\n    y = net(t)\n", 4),
        ("with torch.inference_mode():\n    y = down(F.silu(gate(t)) * gate(t))\n", 8),
        (
            "y = net(x).float().square().mean()\ny.backward()\n"
            "z = net[0].weight.grad\n",
            None,
        ),
        # not zero where it was padded
        ("y = torch.sigmoid(x @ ups[0].T) @ downs[0].T\n", 4),
        ("h = x @ ups[0].T\nh.add_(1)\ny = h @ downs[0].T\n", 3),
        # in another shape, of one memory
        ("y = x @ ups[0].T\nz = y.view(-1)\nz += 1\n", 2),
        ("h = x @ ups[0].T\ny = h[:, 0]\nz = h.view(-1)\nz += 100\n", 2),
        ("y = x @ ups[0].T\nz = y.reshape(-1)\nz += 100\n", 2),
        ("y = (x @ ups[0].T).view(torch.int16)\n", 2),
        ("h = x[:13] @ ups[0].T\nh.t_()\ny = h @ x[:13]\n", None),
        # a bias, and infinity, where rows were added
        (BIASED + "y = q @ (h * h)\n", None),
        (BIASED + "y = q @ (h * 0.01)\nz = (h - 1) * float('inf')\n", None),
        ("y = (x[:13] @ ups[0].T * float('inf')).T @ x[:13]\n", None),
        ("h = x @ ups[0].T\ny = torch.empty_like(h)\ntorch.mul(h, h, out=y)\n", None),
        # rows that are no more in eights, where they are an inner size
        (
            "h = (x @ ups[0].T).view(4, 4, 41)\ny = t[:, :4, :4].repeat(2, 1, 1) @ h\n",
            4,
        ),
        (
            "y = torch.empty(16, 41).bfloat16()\ntorch.mm(x, ups[0].T, out=y)\n"
            "z = y.mean(1)\n",
            2,
        ),
    ],
)
def test_products_of_padded_matrices_are_the_cells(
    source: str, pads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (edited,) = padded_products(CellCode(source))
    names: list[dict[str, Any]] = [{}, {}]
    pad, padded = torch.nn.functional.pad, list[torch.Tensor]()

    def counted(matrix: torch.Tensor, added: list[int]) -> torch.Tensor:
        padded.append(matrix)
        return pad(matrix, added)

    for one, text in zip(names, (source, edited), strict=True):
        exec(PADDED, one)
        monkeypatch.setattr(torch.nn.functional, "pad", counted)
        exec(text, one)
        monkeypatch.undo()
    for name in {"y", "z"} & names[0].keys():
        before, after = (one[name] for one in names)
        assert before.stride() == after.stride()
        assert torch.allclose(before.float(), after.float(), 2e-2, 2e-2, True)
    assert pads in (None, len(padded))
