"""A few of the composed attacks; `python -m tests.cheats.composed` tries many."""

from __future__ import annotations

import random

from tests.cheats.composed import graded, variants


def test_no_wrong_solution_passes_by_tricks_that_are_composed() -> None:
    rng = random.Random(34)
    ended = [
        (variant, graded(variant, rng.getrandbits(40))) for variant in variants(rng, 12)
    ]
    assert [variant for variant, end in ended if end and end.status == "passed"] == []
    assert any(end and end.cases for _, end in ended)
