"""The archive as a process has it: killed, full, damaged, too new, shared."""

import contextlib
import itertools
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.monitors.archive.machine import DEVICES, frame, frames
from warpbook_monitors.archive.archive import Archive
from warpbook_monitors.archive.database import connect, transaction
from warpbook_monitors.archive.errors import ArchiveStopped
from warpbook_monitors.archive.file_identity import identity_of
from warpbook_monitors.archive.lease import Lease
from warpbook_monitors.archive.limits import Keeping, Limits
from warpbook_monitors.archive.lookup import archived_messages
from warpbook_monitors.frames import Frame

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@contextlib.contextmanager
def opened(folder: Path, limits: Limits | None = None) -> Iterator[Archive]:
    archive = Archive(folder, limits)
    archive.start()
    try:
        yield archive
    finally:
        assert archive.close(PATIENCE_S)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it has not come"
        time.sleep(0.02)


def read_frames(archive: Archive) -> list[Frame]:
    with archive.reading() as connection:
        messages = archived_messages(connection, 0, 4e12, DEVICES)
        return [message for message in messages if isinstance(message, Frame)]


def test_a_kill_loses_at_most_the_last_second(folder: Path) -> None:
    """Killed again and again at moments of chance, it goes on where it was."""
    dice = random.Random(15)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told_ms: list[float] = []
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.monitors.archive.writer_child", str(folder)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        # it is killed in the middle of its writing, not of its start
        lines = [child.stdout.readline() for _ in range(100)]
        timer = threading.Timer(dice.uniform(0.0, 2.0), child.kill)
        timer.start()
        lines += child.stdout.readlines()
        child.stdout.close()
        child.wait()
        timer.join()
        told_ms = [float(line) for line in lines if line.endswith("\n")]
        with opened(folder) as archive:
            wait_for(lambda a=archive: a.keeping.state == "on")  # type: ignore[misc]
            kept = {frame.time_ms for frame in read_frames(archive)}
        lost_ms = [time_ms for time_ms in told_ms if time_ms not in kept]
        assert len(lost_ms) < len(told_ms)
        if lost_ms:
            # a flush each 0.9 s, of frames that are 10 ms apart or more
            assert len(lost_ms) < 200, "a second is lost, not more"
            assert lost_ms == told_ms[-len(lost_ms) :], "only the end is lost"


def test_what_is_handed_in_is_on_disk_when_it_is_done(folder: Path) -> None:
    with opened(folder) as archive:
        archive.write(_keep_timeline("one")).result(PATIENCE_S)
        with contextlib.closing(sqlite3.connect(folder / "archive.db")) as other:
            assert other.execute("SELECT report_id FROM timeline").fetchall() == [
                ("one",)
            ]
        with pytest.raises(ZeroDivisionError):
            archive.write(lambda connection: 1 / 0).result(PATIENCE_S)
    assert (folder / "archive.db").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_full_disk_stops_the_writing_until_there_is_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operating system refuses: files may not grow beyond a size."""
    monkeypatch.setattr("warpbook_monitors.archive.archive.RETRY_S", 0.2)
    states: list[Keeping] = []
    # half of a module that is compiled now would be kept for all
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    # Python ignores the signal, so a write fails as on a full disk
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(folder) as archive:
        wait_for(lambda: archive.keeping.state == "on")
        archive.listen(states.append)
        archive.write(_keep_timeline("before")).result(PATIENCE_S)
        size_bytes = sum(path.stat().st_size for path in folder.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, unlimited[1]))
        try:
            with pytest.raises(ArchiveStopped, match=r"disk|full|I/O"):
                archive.write(_keep_timeline("full", 2**22)).result(PATIENCE_S)
            wait_for(lambda: archive.keeping.state == "stopped")
            # live goes on: nobody waits for the disk
            for message in frames(3000):
                archive.append(message, DEVICES)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        wait_for(lambda: archive.keeping.state == "on")
        archive.write(_keep_timeline("after")).result(PATIENCE_S)
        with archive.reading() as connection:
            rows = connection.execute("SELECT report_id FROM timeline ORDER BY kept_ms")
            assert [row[0] for row in rows] == ["before", "after"]
    assert [keeping.state for keeping in states] == ["stopped", "on"]
    assert states[0].message


def test_writing_stops_before_the_disk_is_full_and_stays_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told to be on again each time when it was tried."""
    monkeypatch.setattr("warpbook_monitors.archive.archive.RETRY_S", 0.05)
    monkeypatch.setattr("warpbook_monitors.archive.archive.FLUSH_S", 0.02)
    with opened(folder) as archive:
        archive.append(frame(0, 1.8e12), DEVICES)
        wait_for(lambda: archive.keeping.from_ms is not None)
    states: list[Keeping] = []
    archive = Archive(folder, Limits(least_free_bytes=2**60))
    archive.listen(states.append)
    archive.start()
    wait_for(lambda: archive.keeping.state == "stopped")
    # what is there can be read all the same
    assert archive.wait_until_opened(PATIENCE_S)
    assert len(read_frames(archive)) == 1
    time.sleep(0.5)
    assert archive.close(PATIENCE_S)
    assert [keeping.state for keeping in states] == ["stopped"]
    assert "is full" in states[0].message and "MiB are needed" in states[0].message


def test_a_newer_format_is_refused_and_left_as_it_is(folder: Path) -> None:
    connect(folder / "archive.db").close()
    with contextlib.closing(sqlite3.connect(folder / "archive.db")) as newer:
        newer.execute("PRAGMA user_version = 99")
    before = (folder / "archive.db").read_bytes()
    with opened(folder) as archive:
        with pytest.raises(ArchiveStopped, match="newer warpbook.*format 99"):
            archive.write(lambda connection: None).result(PATIENCE_S)
        archive.append(frame(0, 1.8e12), DEVICES)
        assert archive.keeping.state == "stopped"
    assert (folder / "archive.db").read_bytes() == before


def test_a_format_that_becomes_newer_is_not_written_into(folder: Path) -> None:
    with opened(folder) as old, opened(folder) as other:
        wait_for(lambda: {"on", "other_server"} == _states(old, other))
        with contextlib.closing(sqlite3.connect(folder / "archive.db")) as newer:
            newer.execute("PRAGMA user_version = 99")
        for archive in (old, other):
            with pytest.raises(ArchiveStopped, match=r"newer warpbook.*format 99"):
                archive.write(_keep_timeline("late")).result(PATIENCE_S)
            archive.append(frame(0, 1.8e12), DEVICES)
            assert archive.keeping.state == "stopped"
        # the history is the newer server's to keep
        lease = Lease(folder / "archive.lock")
        assert lease.take()
        lease.release()
    with contextlib.closing(sqlite3.connect(folder / "archive.db")) as newer:
        assert newer.execute("SELECT * FROM timeline").fetchall() == []
        assert newer.execute("SELECT * FROM recent").fetchall() == []


def test_another_programs_file_is_refused(folder: Path) -> None:
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(folder / "archive.db")) as other:
        other.execute("CREATE TABLE precious (thing)")
    with opened(folder) as archive:
        with pytest.raises(ArchiveStopped, match="not an archive of warpbook"):
            archive.write(lambda connection: None).result(PATIENCE_S)


@pytest.mark.parametrize("damage", ["cut off", "overwritten", "no database", "header"])
def test_a_damaged_file_is_put_aside_and_what_is_good_is_kept(
    folder: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "archive.db"
    with contextlib.closing(connect(path)) as connection, transaction(connection):
        for number in range(300):
            _keep_timeline(f"{number:03}", 5000)(connection)
    content = path.read_bytes()
    half = len(content) // 2
    if damage == "cut off":
        path.write_bytes(content[:half])
    elif damage == "overwritten":
        path.write_bytes(content[:half] + b"\xa5" * 2**17 + content[half + 2**17 :])
    elif damage == "header":
        # the number of the schema's format
        path.write_bytes(content[:47] + b"\xa5" + content[48:])
    else:
        path.write_bytes(b"\xa5" * len(content))
    with opened(folder) as archive:
        # the damage may be found when the file is opened or when it is read
        for _ in range(3):
            with contextlib.suppress(ArchiveStopped):
                archive.write(_read_all).result(PATIENCE_S)
        kept = archive.write(_read_all).result(PATIENCE_S)
        archive.write(_keep_timeline("after")).result(PATIENCE_S)
        wait_for(lambda: archive.keeping.state == "on")
    assert "was damaged" in caplog.text
    assert any("damaged" in file.name for file in folder.iterdir())
    if damage in ("cut off", "overwritten"):
        assert len(kept) > 50, "what could be read is kept"


@pytest.mark.parametrize("how", ["mended", "removed", "folder removed"])
def test_who_has_a_replaced_file_open_goes_on_in_the_new_one(
    folder: Path, how: str
) -> None:
    """They wrote into a file without a name, and said that it was kept."""
    path = folder / "archive.db"
    with opened(folder) as one, opened(folder) as other:
        for archive in (one, other):
            archive.write(_keep_timeline(f"{id(archive)}")).result(PATIENCE_S)
        if how == "mended":
            met = identity_of(path)
            connect(path, met).close()
            # who met the same damage later mends no new file
            mended = identity_of(path)
            assert mended != met
            connect(path, met).close()
            assert identity_of(path) == mended
        elif how == "removed":
            for file in folder.glob("archive.db*"):
                file.unlink()
        else:
            shutil.rmtree(folder)
        # it is found without a job, too
        wait_for(lambda: path.exists() and not read_frames(one))
        for archive in (one, other):
            archive.write(_keep_timeline(f"after {id(archive)}")).result(PATIENCE_S)
        wait_for(lambda: "on" in _states(one, other))
        for number, archive in enumerate((one, other)):
            archive.append(frame(number, 1.8e12), DEVICES)
        wait_for(lambda: len(read_frames(one)) == 1)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("SELECT report_id FROM timeline").fetchall()
    assert len(kept) == (4 if how == "mended" else 2)


def test_what_is_kept_while_another_mends_is_in_the_new_file(folder: Path) -> None:
    path = folder / "archive.db"
    kept: list[str] = []
    with opened(folder) as one, opened(folder) as other:
        for archive in (one, other):
            archive.write(_keep_timeline(f"{id(archive)}")).result(PATIENCE_S)

        enough = threading.Event()

        def write() -> None:
            for number in itertools.count():
                if enough.is_set():
                    return
                for archive in (one, other):
                    name = f"{number} {id(archive)}"
                    archive.write(_keep_timeline(name, 2000)).result(PATIENCE_S)
                    kept.append(name)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                # a file that is replaced at each try of a write is given up
                count = len(kept)
                wait_for(lambda count=count: len(kept) > count)  # type: ignore[misc]
                before = identity_of(path)
                connect(path, before).close()
                assert identity_of(path) != before
        finally:
            enough.set()
            writer.join()
    with contextlib.closing(connect(path)) as connection:
        assert len(_read_all(connection)) == len(kept) + 2


def test_a_mend_that_is_killed_or_has_no_room_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at each of its steps, the next one does it all."""
    path = folder / "archive.db"
    connect(path).close()
    steps: list[str] = []
    real = os.replace
    for stop_at in range(1, 20):
        shutil.rmtree(folder)
        connection = connect(path)
        for number in range(20):
            with transaction(connection):
                _keep_timeline(f"{number:02}", 5000)(connection)
        # some of it is in the write-ahead log alone, as after a kill
        left = {file: file.read_bytes() for file in folder.glob("archive.db*")}
        connection.close()
        for file, content in left.items():
            file.write_bytes(content)
        steps.clear()

        def step(source: Path, target: Path, stop_at: int = stop_at) -> None:
            steps.append(str(source))
            if len(steps) == stop_at:
                raise KeyboardInterrupt
            real(source, target)

        monkeypatch.setattr("warpbook_monitors.archive.repair.os.replace", step)
        with contextlib.suppress(KeyboardInterrupt):
            connect(path, identity_of(path)).close()
        monkeypatch.setattr("warpbook_monitors.archive.repair.os.replace", real)
        with contextlib.closing(connect(path)) as connection:
            assert len(_read_all(connection)) == 20, (stop_at, steps)
        if len(steps) < stop_at:
            break
    else:
        raise AssertionError("it never came to an end")
    assert stop_at > 3
    # a full disk while rows are written, and what a kill left of that; half of a module
    # that is compiled now would be kept for all
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    (folder / "archive.damaged-1.salvage-wal").write_bytes(b"x")
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, unlimited[1]))
    try:
        with pytest.raises(ArchiveStopped):
            connect(path, identity_of(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    with contextlib.closing(connect(path)) as connection:
        assert len(_read_all(connection)) == 20
    assert not list(folder.glob("*.salvage*"))


def test_two_servers_share_the_file_and_one_keeps_the_history(folder: Path) -> None:
    with opened(folder) as second:
        with opened(folder) as first:
            wait_for(lambda: {"on", "other_server"} == _states(first, second))
            keeper = first if first.keeping.state == "on" else second
            other = second if keeper is first else first
            for number, message in enumerate(frames(20)):
                (keeper if number % 2 else other).append(message, DEVICES)
            keeper.write(_keep_timeline("keeper")).result(PATIENCE_S)
            other.write(_keep_timeline("other")).result(PATIENCE_S)
            wait_for(lambda: len(read_frames(other)) == 10)
            assert "process" in other.keeping.message


def test_when_the_keeper_ends_another_server_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook_monitors.archive.archive.RETRY_S", 0.2)
    first = Archive(folder)
    first.start()
    first.write(lambda connection: None).result(PATIENCE_S)
    assert first.keeping.state == "on"
    with opened(folder) as second:
        wait_for(lambda: second.keeping.state == "other_server")
        assert first.close(PATIENCE_S)
        wait_for(lambda: second.keeping.state == "on")
        second.append(frame(1, 1.8e12), DEVICES)
        wait_for(lambda: len(read_frames(second)) == 1)


def _states(*archives: Archive) -> set[str]:
    return {archive.keeping.state for archive in archives}


def _keep_timeline(
    report_id: str, size_bytes: int = 10
) -> Callable[[sqlite3.Connection], None]:
    def keep(connection: sqlite3.Connection) -> None:
        body = random.Random(report_id).randbytes(size_bytes)
        connection.execute(
            "INSERT INTO timeline VALUES (?, ?, ?)", (report_id, time.time(), body)
        )

    return keep


def _read_all(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT * FROM timeline").fetchall()


def test_closing_writes_what_came_last(folder: Path) -> None:
    with opened(folder) as archive:
        for message in frames(7):
            archive.append(message, DEVICES)
    with opened(folder) as archive:
        wait_for(lambda: archive.keeping.state == "on")
        assert len(read_frames(archive)) == 7
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
