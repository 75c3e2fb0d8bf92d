"""Heads that seem to come several times: what a source tells, and what runs must."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import changes_of
from tests.profiler.advice.test_edits_of_models import (
    ATTEND,
    HEADS,
    MANY,
    WIDEN,
    grouped,
    wide_heads,
)
from tests.profiler.advice.test_model_patterns import attends
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.techniques.models.gqa import gqa

# one of another cell, or one whose sizes may be any, is known by its name
OF_ANOTHER = (
    "class Layer:\n"
    "    def heads(self, pair):\n        return 2 * pair[0], pair[1]\n"
    "    def __call__(self, pair):\n        k, v = self.heads(pair)\n"
    "        k, v = {0}(k, 4), {0}(v, 4)\n"
    f"        return {MANY}\n"
    "y = [Layer()(pair) for pair in pairs]\n"
)
#: heads in another order, which no trace tells
EXPAND = (
    "\ndef expand_kv(k, n):\n    b, h, l, d = k.shape\n"
    "    return k[:, None].expand(b, n, h, l, d).reshape(b, n * h, l, d)\n"
)


@pytest.mark.parametrize(
    ("name", "is_right"), [("repeat_kv", True), ("expand_kv", False)]
)
def test_functions_of_other_cells_are_only_told_by_a_trial(
    tmp_path: Path, name: str, is_right: bool
) -> None:
    source = OF_ANOTHER.format(name)
    change = grouped(tmp_path, source)
    assert not change.code
    (tried,) = liberal_edits(source, (change,), only_named=True)
    assert "enable_gqa=True" in tried.code
    assert agrees(tried, source, HEADS + EXPAND, "y") == is_right


@pytest.mark.parametrize(
    "made",
    [
        # tokens that come several times, or sizes that may be any
        "x[:, :, None].expand(-1, -1, 4, -1, -1).flatten(2, 3)",
        "x[:, :, None].expand(b, h, 4, t, d).reshape(b, h, 4 * t, d)",
        "x[:, :, None].expand(b, 8, 4, t, d).reshape(b, 32, t, d)",
        "x[:, :, None].expand(b, h, 4, t, d).reshape(shape)",
        "(2 * x)[:, :, None].expand(b, h, 4, t, d).reshape(b, 4 * h, t, d)",
    ],
)
def test_sizes_that_are_not_sure_to_be_heads(tmp_path: Path, made: str) -> None:
    function = f"def wide(x):\n    b, h, t, d = x.shape\n    return {made}\n"
    assert not grouped(tmp_path, f"{function}k, v = wide(k), wide(v)\ny = {MANY}").code
    called = f"y = {ATTEND.format('wide(k)', 'wide(v)')}\n"
    assert not grouped(tmp_path, function + called).code


@pytest.mark.parametrize(
    "before", ["x = 2 * x\n    ", "x.mul_(2)\n    ", "b = h = 1\n    "]
)
def test_functions_that_do_more_than_widen(tmp_path: Path, before: str) -> None:
    returns = "    return x[:, :, None].expand(b"
    widen = WIDEN.replace(returns, f"    {before}{returns.strip()}")
    source = f"{widen}y = {ATTEND.format('widen(k, 4)', 'widen(v, 4)')}\n"
    assert not grouped(tmp_path, source).code
    plain = f"{WIDEN}y = {ATTEND.format('widen(k, 4)', 'widen(v, 4)')}\n"
    assert grouped(tmp_path, plain).code
    # another attention, whose heads may be others
    cell = wide_heads(plain)
    attends(cell, 256, 4096)
    assert not changes_of(gqa, cell.evidence(tmp_path))["gqa"].code
