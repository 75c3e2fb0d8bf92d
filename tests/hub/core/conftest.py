"""Fixtures of the hub's core, on SQLite and on PostgreSQL.

A module runs on both if its `DATABASES` names them. With
`WARPBOOK_TEST_DATABASE=postgres` every test of the core runs on PostgreSQL, but for
those marked `sqlite`, which look into the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.core import course
from tests.hub.core.course import Classroom, classroom
from tests.hub.lti.platform import Platform
from tests.hub.lti.world import World, members
from tests.hub.postgres import DEFAULT_DATABASE, PostgresServer
from warpbook_hub.lti.tool_key import FILE, ToolKey


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have each test run on the databases of its module."""
    if "database_kind" not in metafunc.fixturenames:
        return
    kinds = getattr(metafunc.module, "DATABASES", (DEFAULT_DATABASE,))
    if list(metafunc.definition.iter_markers("sqlite")):
        kinds = ("sqlite",)
    metafunc.parametrize("database_kind", kinds, indirect=True)


@pytest.fixture(autouse=True)
def database_kind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Where classrooms of this test keep their database."""
    kind: str = request.param
    if kind == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        monkeypatch.setattr(course, "prepare", server.use_for)
    return kind


@pytest.fixture
def room(tmp_path: Path, database_kind: str) -> Iterator[Classroom]:
    """A course with three learners, and a lab that is graded for speed, too."""
    begun = classroom(tmp_path / "hub" / "hub.db")
    yield begun
    begun.database.close()


@pytest.fixture(scope="session")
def tool_key(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A hub's own key, drawn once."""
    folder = tmp_path_factory.mktemp("key")
    ToolKey(folder)
    return (folder / FILE).read_bytes()


@pytest.fixture
def world(room: Classroom, tool_key: bytes) -> Iterator[World]:
    """A course that is bound to the platform's; ada, bob and cyd are known to it."""
    platform = Platform(members())
    platform.start()
    world = World(room, platform, room.database.path.parent)
    (world.folder / FILE).write_bytes(tool_key)
    world.launch("grace", "instructor")
    for name in ("ada", "bob", "cyd"):
        world.launch(name)
    # the roster is asked for, and not again within the hour
    world.rounds()
    yield world
    platform.stop()
