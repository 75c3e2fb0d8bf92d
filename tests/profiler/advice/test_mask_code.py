"""Sums of chosen elements, written with all of them and the mask."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.host.masks import masks

SETUP = (
    "ps, ts, ms = torch.randn(9, 64), torch.randn(9, 64), torch.rand(9, 64) < 0.3\n"
    "ts[~ms] = float('nan')\nlosses = []\n"
)
LOOP = (
    "for p, t, m in zip(ps, ts, ms):\n    losses.append({})\ny = torch.stack(losses)\n"
)


def chosen(
    tmp_path: Path, source: str, of: tuple[int, ...] = (64,), dtype: str = "float"
) -> Change:
    cell = Cell(source)
    for _ in range(18):
        with cell.operator("aten::index", (of, []), dtype):
            with cell.operator("aten::nonzero", ([64],)):
                cell.kernel(3_000)
                cell.copy("DtoH", 8)
            cell.kernel(5_000)
        cell.call("aten::sub", 4_000)
    cell.wait()
    return changes_of(masks, cell.evidence(tmp_path))["keep-mask"]


@pytest.mark.parametrize(
    "made",
    [
        "((p[m] - t[m]) ** 2).mean()",
        "(p[m] - t[m]).abs().sum()",
        "(2 * (p[m] - t[m]).square() + 1).sum()",
        "((p[m] + t[m]) * p[m]).mean() * 3",
        "((p[m] - 1) ** 2 * t[m]).float().sum()",
    ],
)
def test_a_sum_keeps_its_mask(tmp_path: Path, made: str) -> None:
    source = LOOP.format(made)
    change = chosen(tmp_path, source)
    assert "[m]" not in change.code
    assert agrees(change, source, SETUP, "y", "p", "m")


def test_what_is_left_out_has_no_gradient(tmp_path: Path) -> None:
    change = chosen(tmp_path, LOOP.format("((p[m] - t[m]) ** 2).mean()"))
    names = {"torch": torch}
    exec(SETUP.replace("ps, ts", "whole, ts") + "ps = whole.requires_grad_()", names)
    exec(change.code, names)
    names["y"].sum().backward()
    assert names["whole"].grad.isfinite().all()


@pytest.mark.parametrize(
    "made",
    [
        # of zero they give another gradient, or no number
        "(p[m] / t[m]).sum()",
        "(p[m] - t[m]).abs().sqrt().sum()",
        "((p[m] - t[m]) ** 0.5).sum()",
        # another mask, another tensor, an axis
        "(p[m] - t[~m]).sum()",
        "(p[m] - c).sum()",
        "(p[m] - t[m]).sum(0)",
        "own(p[m]).sum()",
        "(p[m] - t[m]).median()",
    ],
)
def test_other_uses_of_chosen_elements_are_let_be(tmp_path: Path, made: str) -> None:
    assert not chosen(tmp_path, LOOP.format(made)).code


def test_rows_and_half_precision_are_let_be(tmp_path: Path) -> None:
    source = LOOP.format("((p[m] - t[m]) ** 2).mean()")
    assert not chosen(tmp_path, source, of=(64, 8)).code
    assert not chosen(tmp_path, source, dtype="c10::Half").code


ROWS = SETUP + "xs = torch.randn(9, 64, 4, 2)\n"
ROW_LOOP = "for x, m in zip(xs, ms):\n    losses.append({})\ny = torch.stack(losses)\n"


@pytest.mark.parametrize(
    "made",
    ["x[m].sum(0)", "x[m].mean(dim=0)", "x[m].sum()", "x[m > 0].sum(0) / m.sum()"],
)
def test_a_sum_of_rows_keeps_its_mask(tmp_path: Path, made: str) -> None:
    source = ROW_LOOP.format(made)
    change = chosen(tmp_path, source, of=(64, 4, 2))
    assert agrees(change, source, ROWS, "y", "x", "m")
    assert "None, None]" in change.code


@pytest.mark.parametrize(
    ("made", "of", "dtype"),
    [
        ("x[m].mean()", (64, 4, 2), "float"),
        ("x[m].sum(1)", (64, 4, 2), "float"),
        ("x[m].sum(0, True)", (64, 4, 2), "float"),
        ("x[m].amax(0)", (64, 4, 2), "float"),
        ("x[m].mean(0)", (64, 4, 2), "c10::Half"),
        # the mask is of another axis
        ("x[m].sum(0)", (4, 64), "float"),
    ],
)
def test_other_results_of_rows_are_let_be(
    tmp_path: Path, made: str, of: tuple[int, ...], dtype: str
) -> None:
    assert not chosen(tmp_path, ROW_LOOP.format(made), of, dtype).code
