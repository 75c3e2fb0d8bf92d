"""The exam of `%%gpuprof` on a real GPU: its aims are reached.

    pytest -m gpu -s tests/gpu/test_exam.py

It takes some 15 minutes. `WARPBOOK_EXAM=FILE` continues, or judges, what
`python -m tests.gpu.exam --json FILE` has run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpu.exam.__main__ import run_exam
from tests.gpu.exam.judging import Criterion, judge
from tests.gpu.exam.loading import load_cells
from tests.gpu.exam.results import read_results
from tests.gpu.exam.table import table

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(3600)]

NAMES = [criterion.name for criterion in judge((), {})]


@pytest.fixture(scope="module")
def criteria(programs_find_the_packages: None) -> Iterator[dict[str, Criterion]]:
    path = os.environ.get("WARPBOOK_EXAM")
    json = None if path is None else Path(path)
    cells, results = load_cells(), read_results(json)
    run_exam(cells, results, json=json)
    judged = judge(cells, results)
    print(f"\n{table(cells, results, judged)}")
    yield {criterion.name: criterion for criterion in judged}


@pytest.mark.parametrize("name", NAMES)
def test_the_aim_is_reached(criteria: dict[str, Criterion], name: str) -> None:
    criterion = criteria[name]
    assert criterion.holds, (criterion.value, criterion.basis, criterion.misses)
