"""Host code that cheats, before the real referee, with the processor as the device.

The sources are those of tests/gpu/test_labs_host_cheats.py, which runs them on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.gpu import host_cheats as cheats
from tests.labs.referee.small_lab import failures, heard, write_lab
from warpbook_labs.device.parent import Heard
from warpbook_labs.drawing import public_cases
from warpbook_labs.loader import LoadedLab

TIMED = {
    **cheats.HONEST,
    **cheats.GAIN_NOTHING,
    **{name: text for name, (text, _) in cheats.CAUGHT_WHEN_TIMED.items()},
}
AT_ONCE = 3


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LoadedLab:
    return write_lab(tmp_path_factory.mktemp("labs"))


@pytest.fixture(scope="module")
def ended(lab: LoadedLab) -> Iterator[dict[str, Future[Heard]]]:
    """Grade all of them, several at once: most of the time is PyTorch's start."""
    one = public_cases(lab.lab)[:1]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = {
            name: pool.submit(heard, lab, text, False, one)
            for name, (text, _) in cheats.CAUGHT.items()
        }
        for name, text in TIMED.items():
            found[name] = pool.submit(heard, lab, text, True, one)
        yield found


@pytest.mark.parametrize("name", [*cheats.HONEST, *cheats.GAIN_NOTHING])
def test_what_is_right_passes(name: str, ended: dict[str, Future[Heard]]) -> None:
    done = ended[name].result()
    assert failures(done) == []
    assert done.timed is not None and done.timed.result.learner_ns
    # no clock that it can reach is ours
    assert 1e4 < done.timed.result.learner_ns < 1e10


@pytest.mark.parametrize("name", cheats.CAUGHT)
def test_who_does_not_do_it_fails(name: str, ended: dict[str, Future[Heard]]) -> None:
    done = ended[name].result()
    assert failures(done) != [] and done.ended is not None, done
    assert re.search(cheats.CAUGHT[name][1], " ".join(failures(done)))


@pytest.mark.parametrize("name", cheats.CAUGHT_WHEN_TIMED)
def test_each_timed_unit_is_checked(name: str, ended: dict[str, Future[Heard]]) -> None:
    done = ended[name].result()
    assert done.tried[0].result.passed, done
    assert done.timed is None and done.tried[-1].result.about == "timed calls"
    words = done.tried[-1].result.message
    assert re.search(cheats.CAUGHT_WHEN_TIMED[name][1], words)
