"""Liberal edits of sums of what a mask chooses: over all elements, without a wait."""

from __future__ import annotations

import pytest

from tests.profiler.advice.test_rewriting import agree, edits


@pytest.mark.parametrize(
    ("source", "results"),
    [
        (
            "kept = []\nfor r in x:\n    wet = r[r > 0]\n    kept.append(wet.mean())\n",
            ["kept", "r"],
        ),
        # in a function, of an argument
        (
            "def misfit(a, b, clear):\n    gap = (a - b)[clear]\n"
            "    return torch.stack([gap.mean(), gap.abs().mean(), gap.amax()])\n"
            "kept = torch.stack([misfit(r, w[0], r > 0) for r in x])\n",
            ["kept"],
        ),
        (
            "kept = {n: torch.masked_select(p, p.abs() < 1).square().sum()\n"
            "        for n, p in parts.items()}\n",
            ["kept"],
        ),
        # of both sides, with their own mean, and how many there are
        (
            "kept = []\nfor p in x:\n    ok = torch.isfinite(p) & (p < 1)\n"
            "    near = p[ok]\n    far = near - near.mean()\n"
            "    if len(kept) % 2:\n"
            "        kept.append((far * far).sum() / (near.numel() + 1))\n"
            "    else:\n        kept.append(torch.max(torch.exp(p[ok])))\n",
            ["kept"],
        ),
        # the same name for two masks
        (
            "total = 0\nfor r in x:\n    ok = r < 0.5\n"
            "    total += (r[ok] * w[0][ok] / 2).sum()\n    ok = r < 0.1\n"
            "    total += (r[ok] + 1).sum() / (len(r[ok]) + 1)\n",
            ["total", "ok"],
        ),
    ],
)
def test_sums_of_all_elements_are_the_same(source: str, results: list[str]) -> None:
    (edited, *_) = edits(source, "keep-mask")
    assert agree(source, edited, *results), edited


@pytest.mark.parametrize(
    "source",
    [
        # its elements are needed, in order or by themselves
        "for r in x:\n    wet = r[r > 0]\n    y = wet.mean(), wet.sort()\n",
        "for r in x:\n    wet = r[r > 0]\n    kept.append(wet)\n    y = wet.mean()\n",
        "y = [r[r > 0].median() for r in x]\n",
        "y = [r[r > 0].mean(0, True) for r in x]\n",
        # rows that a loop counts
        "y = [x[n].mean() for n in range(9)]\n",
        # it is set twice
        "for r in x:\n    c = r[r > 0]\n    c = c if n else r\n    y = c.mean()\n",
    ],
)
def test_what_needs_the_elements_stays(source: str) -> None:
    assert not edits(source, "keep-mask")
