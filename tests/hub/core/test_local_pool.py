"""The engine of one machine does what every engine has to."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.hub.core.engine_conformance import (
    EngineConformance,
    order,
    wait_for_ends,
)
from tests.programs import ROOT
from warpbook.hub.grader.local_pool import Bounds, LocalPool

STUB = (sys.executable, str(ROOT / "tests" / "hub" / "core" / "stub_child.py"))


@pytest.fixture
def engine() -> Iterator[LocalPool]:
    pool = LocalPool(Bounds(wall_s=120, memory_bytes=300 << 20), STUB)
    yield pool
    pool.close()


@pytest.fixture
def impatient() -> Iterator[LocalPool]:
    pool = LocalPool(Bounds(wall_s=2), STUB)
    yield pool
    pool.close()


class TestLocalPool(EngineConformance):
    pass


def test_no_secret_of_the_grader_reaches_what_grades(
    engine: LocalPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    monkeypatch.setenv("WARPBOOK_LABS_VAULT", "/vault")
    engine.submit(order("// environment"))
    [ended] = wait_for_ends(engine, 1)
    assert "WARPBOOK_LABS_VAULT" in ended.message
    assert "TOKEN" not in ended.message


def test_a_program_that_is_not_there_is_a_crash() -> None:
    pool = LocalPool(command=("/nowhere/python",))
    pool.submit(order("// right"))
    [ended] = wait_for_ends(pool, 1)
    assert ended.how == "crashed" and "begun" in ended.message
    pool.close()
