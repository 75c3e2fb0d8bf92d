"""Processes that are beside one another name one machine; others name another."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.programs import environment, python_path
from warpbook_monitors.machine import NAME, this_machine

_CONTAINER = ("unshare", "--pid", "--fork")
_MAKES_CONTAINERS = subprocess.run([*_CONTAINER, "true"]).returncode == 0
_CODE = "from warpbook_monitors.machine import this_machine; print(this_machine().id)"


def elsewhere(*wrapped: str, **env: str) -> str:
    """Give the id that another process names."""
    done = subprocess.run(
        [*wrapped, sys.executable, "-c", _CODE],
        env=environment(PYTHONPATH=python_path(), **env),
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.strip()


def test_a_process_beside_this_one_is_on_the_same_machine() -> None:
    assert elsewhere() == this_machine({}).id


def test_a_name_of_its_own_is_another_machine() -> None:
    assert elsewhere(**{NAME: "node-7"}) == this_machine({NAME: "node-7"}).id
    assert this_machine({NAME: "node-7"}).id != this_machine({}).id


@pytest.mark.skipif(not _MAKES_CONTAINERS, reason="no namespaces may be made here")
def test_a_container_is_another_machine() -> None:
    assert elsewhere(*_CONTAINER) != this_machine({}).id


def test_a_name_is_one_short_line() -> None:
    assert this_machine({NAME: "node-7"}).name == "node-7"
    name = this_machine({NAME: "a\n\x1b[31m" + "b" * 500}).name
    assert name.isprintable() and len(name) == 63
