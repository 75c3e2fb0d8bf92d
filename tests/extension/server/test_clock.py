"""A clock that is years ahead, or back, for a while deletes nothing."""

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.extension.server.test_ingest import report
from tests.programs import ROOT, environment, python_path, wait_for
from tests.server_process import ServerProcess, server
from tests.shifted_clock import ShiftedClock
from warpbook.protocol import PROTOCOL_VERSION
from warpbook_monitors.archive.historian import CLOCK_FILE
from warpbook_monitors.wall_clock import agreement

YEARS_S = 10 * 365 * 86_400
DAY_S = 86_400


def hand_in(running: ServerProcess, name: str, age_s: float = 0.0) -> None:
    now_ms = (time.time() - age_s) * 1000
    whose = {"protocol": PROTOCOL_VERSION, "kernel_id": running.kernel_id}
    body = report(name, started_ms=now_ms - 10, ended_ms=now_ms, **whose)
    assert running.ingest("/v1/reports", body).status_code == 204


def names(running: ServerProcess) -> set[str]:
    return {record["id"] for record in running.records(kind="report")}


def tidy(folder: Path) -> None:
    """Wait until the archive is tidied; what it is handed in then comes after that."""
    file = folder / CLOCK_FILE
    before = file.stat().st_mtime_ns
    wait_for("tidying", lambda: file.stat().st_mtime_ns != before or None)


def said(running: ServerProcess, words: str) -> None:
    view = running.view()
    while words not in view.next("keeping")["message"]:
        pass


def doctor(home: Path, folder: Path, clock: ShiftedClock) -> str:
    """Have the doctor look at an archive, as if it were this machine's own."""
    ask = "from warpbook_monitors.archive.place import default_folder as f; print(f())"
    env = environment(
        HOME=str(home), XDG_DATA_HOME=str(home), PYTHONPATH=python_path(), **clock.env
    )
    run = partial(subprocess.run, env=env, capture_output=True, text=True, cwd=ROOT)
    own = Path(run([sys.executable, "-c", ask], check=True).stdout.strip())
    own.parent.mkdir(parents=True)
    own.symlink_to(folder)
    return run([sys.executable, "-m", "warpbook.cli.main", "doctor"]).stdout


def test_a_clock_that_was_set_deletes_nothing_and_a_day_later_it_is_believed(
    tmp_path: Path, make_stub_nvml
) -> None:
    clock, folder = ShiftedClock(tmp_path), tmp_path / "archive"
    options = (
        f"--WarpbookApp.archive_folder={folder}",
        "--WarpbookApp.keep_watching=True",
    )
    stub = make_stub_nvml("h200")
    with server(tmp_path, stub, *options, variables=clock.env) as running:
        running.start_kernel()
        hand_in(running, "old", 40 * DAY_S)
        hand_in(running, "today")
        for shift_s, name, words in (
            (YEARS_S, "ahead", "set ahead by 3650 days"),
            (-YEARS_S, "back", "set back by 7300 days"),
        ):
            clock.set(shift_s)
            said(running, words)
            tidy(folder)
            hand_in(running, name, -shift_s)
        kept = {"old", "today", "ahead", "back"}
        assert names(running) == kept
        assert "set back by 7300 days" in doctor(tmp_path, folder, clock)
        assert "set ahead by 3650 days" in (tmp_path / "server.log").read_text()
        running.kill()
    clock.set(0)
    with server(tmp_path, stub, *options, variables=clock.env) as running:
        said(running, "last checked 3650 days ago")
        assert names(running) == kept
        for _ in range(2):
            clock.sleep(DAY_S - 60)
            tidy(folder)
        # of the wrong stamps none is taken for an age
        wait_for("the old", lambda: names(running) == kept - {"old"} or None)


@pytest.mark.parametrize(
    "kept",
    [
        b'{"x":' + b"[" * 100_000,
        b'{"since_ms":1,"seen_ms":2,"reason":"\xff"}',
        b'{"since_ms":2e12,"seen_ms":1.7e12,"reason":"later than itself"}',
    ],
)
def test_a_damaged_note_of_the_clock_is_told_and_a_first_look_is_not(
    kept: bytes,
) -> None:
    looked = agreement(kept, 1.7e12)
    assert looked.since_ms == 1.7e12
    assert "clock is lost" in looked.why_not
    assert not agreement(b"", 1.7e12).why_not
