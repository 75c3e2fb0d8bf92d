"""The lab that a module of tests names as LAB."""

from __future__ import annotations

import runpy
from types import ModuleType
from typing import Any

import pytest

from tests.labs.answers import module_of
from warpbook_labs.course.session import find
from warpbook_labs.lab.loaded import LoadedLab


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest) -> LoadedLab:
    return find(request.module.LAB)


@pytest.fixture(scope="module")
def written(lab: LoadedLab) -> ModuleType:
    """What a learner may come to in the end."""
    return module_of(lab.reference)


@pytest.fixture(scope="module")
def given(lab: LoadedLab) -> dict[str, Any]:
    """What the lab gives, which needs torch."""
    pytest.importorskip("torch")
    return runpy.run_path(str(lab.folder / "given.py"))
