"""A real Jupyter server with the extension, and a kernel, for the tests here."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gpu.notebook import Notebook, open_notebook

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="session")
def programs_find_the_packages() -> Iterator[None]:
    """Kernels and programs that tests start have pytest's path, and no other server."""
    roots = [str(ROOT / root) for root in ("extension", "labs", "monitors")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(roots), prepend=os.pathsep)
        patch.delenv("WARPBOOK_INGEST_URL", raising=False)
        yield


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    """A kernel of the test's own."""
    with open_notebook() as started:
        yield started


@pytest.fixture(scope="module")
def shared_notebook() -> Iterator[Callable[[], Notebook]]:
    """Give a module's kernel; a new one after a cell that hung or killed it."""
    with contextlib.ExitStack() as stack:
        newest: list[Notebook] = []

        def give() -> Notebook:
            if not newest or newest[-1].is_lost:
                newest.append(stack.enter_context(open_notebook()))
            return newest[-1]

        yield give


@pytest.fixture
def warpbook_config() -> dict:
    """Traits of the extension; a test module overrides it."""
    return {}


@pytest.fixture
def jp_server_config(warpbook_config: dict) -> dict:
    return {
        "ServerApp": {"jpserver_extensions": {"warpbook": True}},
        "WarpbookApp": warpbook_config,
    }
