"""Host code that cheats, on a real GPU: each is caught, or gains nothing.

pytest -m gpu -s tests/gpu/test_labs_host_cheats.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.gpu import host_cheats as cheats
from tests.gpu import host_stream_cheats as stream_cheats
from tests.labs.host.small_lab import failures, write_lab
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.host.lane import Bounds, HostRequest
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.gpu.parent import WorkerReport
from warpbook_labs.lab.loaded import LoadedLab

pytestmark = pytest.mark.gpu

CAUGHT = {**cheats.CAUGHT, **cheats.CAUGHT_WHEN_TIMED, **stream_cheats.CAUGHT}
# all buffers are on the GPU here: there is only the driver's own memory to take away
CAUGHT["takes shared memory away"] = (
    cheats.CAUGHT["takes shared memory away"][0],
    f"{cheats.REFUSED}|nothing|ended|did not end",
)
# the GPU makes another NaN of the poison
CAUGHT["takes what lies in the output"] = (
    cheats.CAUGHT["takes what lies in the output"][0],
    "nothing|is nan",
)
PASSED = {**cheats.HONEST, **cheats.GAIN_NOTHING}
TIMED = {*PASSED, *cheats.CAUGHT_WHEN_TIMED, *stream_cheats.CAUGHT}
BOUNDS = Bounds(run_s=8.0, prepare_s=20.0, memory_bytes=6 << 30, threads=256)
AT_ONCE = 6


#: a GPU that others use is tried again: nothing is said of a source there
_TRIES = 3


def grade(lab: LoadedLab, text: str, is_timed: bool) -> WorkerReport:
    cases = tuple(public_cases(lab.lab)[:1])
    request = HostRequest(
        str(lab.folder), text, cases, is_timed, bounds=BOUNDS, least_pairs=10
    )
    uuid = find_gpu().uuid
    for _ in range(_TRIES):
        done = parent.run(request, uuid, 120, "warpbook_labs.engines.host.worker")
        if not failures(done) and is_timed and done.timed is not None:
            speed = done.timed.result
            if speed.of_baseline is None:
                print(f"\nnot timed: {speed.message}")
                continue
        break
    return done


@pytest.fixture(scope="module")
def ended(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, WorkerReport]]:
    """Grade all of them, several at once where nothing is timed; print the table."""
    lab = write_lab(tmp_path_factory.mktemp("labs"), all_on_device=True)
    untimed = {name: text for name, (text, _) in CAUGHT.items() if name not in TIMED}
    timed = {name: text for name, (text, _) in CAUGHT.items() if name in TIMED}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        graded = pool.map(lambda text: grade(lab, text, False), untimed.values())
        heard_by_name = dict(zip(untimed, graded, strict=True))
    for name, text in {**PASSED, **timed}.items():
        heard_by_name[name] = grade(lab, text, True)
    yield heard_by_name
    print("\n| source | in words | of the baseline |")
    print("|---|---|---|")
    for name, heard in heard_by_name.items():
        words = " ".join(" ".join(failures(heard)).replace("|", "/").split())[:110]
        speed = heard.timed.result if heard.timed else None
        ratio = (
            ""
            if speed is None or speed.of_baseline is None
            else (f"{speed.of_baseline.median:.3f}")
        )
        print(f"| {name} | {words or 'passed'} | {ratio} |")


@pytest.mark.parametrize("name", PASSED)
def test_what_is_right_passes_and_gains_nothing(
    name: str, ended: dict[str, WorkerReport]
) -> None:
    done = ended[name]
    assert failures(done) == []
    assert done.timed is not None and done.timed.result.of_baseline is not None
    assert done.timed.result.of_baseline.low < 1.05


@pytest.mark.parametrize("name", CAUGHT)
def test_who_does_not_do_it_fails(name: str, ended: dict[str, WorkerReport]) -> None:
    assert failures(ended[name]) != [], ended[name]
    assert re.search(CAUGHT[name][1], " ".join(failures(ended[name])))


def test_who_begins_when_inputs_come_begins_with_wrong_ones(tmp_path: Path) -> None:
    lab = write_lab(tmp_path)
    said = " ".join(failures(grade(lab, stream_cheats.BEGINS_EARLY, True)))
    print(f"\n| begins when inputs come | {said} |")
    match = re.search(r"of 20 tries (\d+) were early, (\d+) of them right", said)
    # some are right: those that came when the clock ran already
    assert match and int(match[1]) > 6 and int(match[2]) <= int(match[1]) / 2, said
