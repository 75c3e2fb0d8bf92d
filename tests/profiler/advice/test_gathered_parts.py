"""Joins of loops that become one: the edit computes the same, or there is none."""

from pathlib import Path

import pytest
import torch

from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.rewriting.gathered_parts import joined_once
from warpbook_profiler.techniques.host.growing_cat import growing_cat

_NONE = (
    "out = None\nfor r in x:\n    if out is None:\n        out = {first}\n"
    "    else:\n        out = torch.cat([out, {more}])\n"
)


def _computed(source: str, count: int) -> torch.Tensor | None:
    torch.manual_seed(0)
    names = {"torch": torch, "x": torch.randn(count, 1, 3), "out": None}
    exec(source, names)
    return names["out"]


@pytest.mark.parametrize(
    ("source", "is_sure"),
    [
        (_NONE.format(first="r", more="r"), True),
        (_NONE.format(first="r * 2", more="r * 3"), True),
        (
            _NONE.replace("if", "if r is None: pass\n    elif").format(
                first="r", more="r"
            ),
            True,
        ),
        (
            "out, i = None, 0\nwhile True:\n    if i == len(x):\n        break\n"
            "    part = x[i].exp()\n    i += 1\n"
            "    out = part if out is None else torch.concat((out, part), axis=-1)\n",
            True,
        ),
        (
            "out = None\nfor r in x:\n    if out is None:\n        out = r\n"
            "        continue\n    out = torch.vstack((out, r + 1))\n",
            True,
        ),
        (
            "with torch.no_grad():\n    out = torch.empty(0, 3)\n    for r in x:\n"
            "        for a in r:\n            if a.sum() > 0:\n"
            "                out = torch.cat([out, r.exp(), r * 2], dim=0)\n"
            "            else:\n                out = torch.cat([out, -r], dim=0)\n",
            True,
        ),
        (
            "out = torch.empty(0, 3)\nfor r in x:\n"
            "    out = torch.cat([r, r * 2, out])\nout += 1\n",
            True,
        ),
        (
            "def f(x):\n    out = torch.zeros(0)\n    for r in x:\n"
            "        out = torch.hstack([out, r[0]])\n    return out\nout = f(x)\n",
            False,
        ),
        (
            "out = torch.empty(0)\nfor r in x:\n    if out.numel() == 0:\n"
            "        out = r\n    else:\n        out = torch.cat([out, r])\n",
            False,
        ),
        (
            "for i, r in enumerate(x):\n    if i:\n        out = torch.cat([out, r])\n"
            "    else:\n        out = r\n",
            False,
        ),
    ],
)
def test_parts_are_joined_after_the_loop(source: str, is_sure: bool) -> None:
    code = CellCode(source)
    assert bool(joined_once(code, is_sure=True)) == is_sure
    edited = joined_once(code, is_sure=False)
    assert "out_parts" in edited and "cat([out," not in edited
    for count in (0, 1, 5) if is_sure else (1, 5):
        expected, found = _computed(source, count), _computed(edited, count)
        if expected is None or found is None:
            assert expected is found
        else:
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    "source",
    [
        # read in the loop, by its test, or by what it calls
        "for r in x:\n    out = torch.cat([out, r])\n    y = out.sum()\n",
        "while len(out) < 9:\n    out = torch.cat([out, x[0]])\n",
        "def f():\n    return len(out)\nfor r in x:\n"
        "    out = torch.cat([out, r])\n    f()\n",
        "for r in x:\n    out = torch.cat([out, out[-1:] + r])\n",
        "for r in x:\n    out = torch.cat([out, r])\n    del out\n",
        # what an error leaves is read
        "try:\n    for r in x:\n        out = torch.cat([out, r])\n"
        "except ValueError:\n    print(out)\n",
        # another axis in each turn
        "for d in range(2):\n    out = torch.cat([out, out0], d)\n",
        # what it begins with changes in the loop
        "out = u[None]\nfor r in x:\n    u.mul_(2)\n    out = torch.cat([out, r])\n",
        # both ends grow
        "for r in x:\n    if r.sum() > 0:\n        out = torch.cat([out, r])\n"
        "    else:\n        out = torch.cat([r, out])\n",
    ],
)
def test_what_may_be_another_result_stays(source: str) -> None:
    assert joined_once(CellCode(source), is_sure=False) == ""


@pytest.mark.parametrize(
    "source",
    [
        # what a call gives may be what it keeps
        "b = torch.zeros(1, 3)\ndef f(r):\n    return b.add_(r)\nout = b[:0]\n"
        "for r in x:\n    out = torch.cat([out, f(r)])\n",
        "b = torch.zeros(1, 3)\nout = b[:0].clone()\nfor r in x:\n"
        "    out = torch.cat([out, torch.mul(r, 2, out=b)])\n",
        "out = torch.empty(0, 3)\nfor r in x:\n    p = r.exp()\n"
        "    out = torch.cat([out, p])\n    for q in p:\n        q += 1\n",
        # in the order of the source
        "out = torch.empty(0, 3)\nfor r in x:\n"
        "    out = torch.cat([torch.randn(1, 3), torch.rand(1, 3), out])\n",
        # one part without an axis
        "out = None\nfor r in x[:1]:\n    p = r.sum()\n"
        "    out = p * 2 if out is None else torch.cat([out, p * 3])\n",
        # another function, an error that is caught, no gradient
        "def cat(ps):\n    return torch.cat(ps) * 2\nout = torch.empty(0, 3)\n"
        "for r in x:\n    out = cat([out, r * 2])\n",
        "out = torch.empty(0, 3)\nfor i, r in enumerate(x):\n    try:\n"
        "        out = torch.cat([out, r.repeat(1, 1 + i % 2) * 2])\n"
        "    except RuntimeError:\n        pass\n",
        "w = torch.ones(3, requires_grad=True)\nout = torch.empty(0, 3)\nfor r in x:\n"
        "    p = r * w\n    with torch.no_grad():\n        out = torch.cat([out, p])\n",
    ],
)
def test_sure_edits_compute_the_same(source: str) -> None:
    edited = joined_once(CellCode(source), is_sure=True) or source
    expected, found = _computed(source, 4), _computed(edited, 4)
    assert expected is not None and found is not None
    assert (
        torch.equal(found, expected) and found.requires_grad == expected.requires_grad
    )


def test_a_turn_that_resets_the_tensor_gathers_anew() -> None:
    source = (
        "ys = []\nfor r in x:\n    out = torch.empty(0, 3)\n    for a in r:\n"
        "        out = torch.cat([out, a[None] * 2])\n    ys.append(out)\n"
    )
    edited = joined_once(CellCode(source), is_sure=True)
    assert "    out_parts = [out]\n    for a in r" in edited
    found, expected = _computed(edited, 3), _computed(source, 3)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("test", ["", "    if out is None:\n        out = part\n"])
def test_values_of_a_turn_may_be_as_large(tmp_path: Path, test: str) -> None:
    """What each turn takes has as many elements as four of its parts: no reading."""
    source = (
        f"for part in parts:\n    part = part * wide\n{test}"
        "    out = torch.cat([out, part])\n"
    )
    cell = Cell(source)
    for number in range(40):
        cell.call("aten::mul", 4_000, dims=([4096, 4], []))
        dims = [[[4096 * number], [4096]], []]
        cell.call("aten::cat", 10_000 * (number + 1), dims=dims)
    cell.wait()
    assert [*changes_of(growing_cat, cell.evidence(tmp_path))] == ["cat-once"]
