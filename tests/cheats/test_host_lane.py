"""Host code that cheats, before the real referee, with the CPU as the device.

The sources are those of tests/gpu/test_labs_host_cheats.py, which runs them on a GPU,
each in a process of its own; here a child is used again until one spoils it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import host_cheats as cheats
from tests.labs.host.small_lab import write_lab

RIGHT = {**cheats.HONEST, **cheats.GAIN_NOTHING}
ROOT = Path(__file__).parents[2]

Told = dict[str, dict[str, Any]]


def graded(sources: dict[str, str], is_timed: bool, folder: Path) -> Told:
    """Grade all of them by one referee, apart from the process of the tests."""
    loaded = write_lab(folder)
    jobs = [
        {
            "name": name,
            "source": text,
            "is_timed": is_timed,
            "spoils": name in cheats.SPOIL,
        }
        for name, text in sources.items()
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.labs.host.several", str(loaded.folder)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        cwd=ROOT,
        # whoever could end the grader's group would not end the tests
        start_new_session=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(jobs), (answers[-1:], done.stderr[-2000:])
    return {answer["name"]: answer for answer in answers}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Told:
    sources = {name: text for name, (text, _) in cheats.CAUGHT.items()}
    return graded(sources, False, tmp_path_factory.mktemp("checked"))


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Told:
    wrong = {name: text for name, (text, _) in cheats.CAUGHT_WHEN_TIMED.items()}
    return graded({**RIGHT, **wrong}, True, tmp_path_factory.mktemp("timed"))


@pytest.mark.parametrize("name", cheats.CAUGHT)
def test_who_does_not_do_it_fails(name: str, checked: Told) -> None:
    assert checked[name]["failed"] != ""
    assert re.search(cheats.CAUGHT[name][1], checked[name]["failed"])


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str, timed: Told) -> None:
    # no clock that it can reach is ours
    assert 1e4 < timed[name]["learner_ns"] < 1e10


@pytest.mark.parametrize("name", cheats.CAUGHT_WHEN_TIMED)
def test_each_timed_unit_is_checked(name: str, timed: Told) -> None:
    assert "failed_when_timed" in timed[name], timed[name]
    why = cheats.CAUGHT_WHEN_TIMED[name][1]
    assert re.search(why, timed[name]["failed_when_timed"])
