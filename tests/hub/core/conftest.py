"""Fixtures of the hub's core."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.core.course import Classroom, classroom


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Classroom]:
    """A course with three learners, and a lab that is graded for speed, too."""
    begun = classroom(tmp_path / "hub" / "hub.db")
    yield begun
    begun.database.close()
