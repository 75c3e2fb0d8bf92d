"""What was handed in is kept, whatever happens to the process that took it."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.programs import ROOT
from warpbook_labs.course import store as stores
from warpbook_labs.course import store_format
from warpbook_labs.course.progress import Mark, Progress
from warpbook_labs.course.session import find, grade, submit
from warpbook_labs.course.store import Store
from warpbook_labs.errors import BadSource, StoreError
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox.work import Limits
from warpbook_monitors.database import format_steps

#: hands in until it is killed, and tells each number that it was given
HAND_IN = """
import sys
from pathlib import Path
from warpbook_labs.results.check import CheckResult
from warpbook_labs.course.store import Store
store = Store(Path(sys.argv[1]))
while True:
    number = store.add_submission("some-lab", "// " + "x" * 5000, 2**62 - 1)
    print(number, flush=True)
    store.add_result(number, CheckResult("some-lab", "failed", "no", right=1, of=3))
    print(-number, flush=True)
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data" / "labs.db")


def result(right: int, of: int = 4, lab: str = "some-lab") -> CheckResult:
    status = "passed" if right == of else "failed"
    return CheckResult(lab, status, "so it went", right=right, of=of)


def test_what_was_acknowledged_survives_a_kill_at_any_point(tmp_path: Path) -> None:
    path, rng = tmp_path / "labs.db", random.Random(5)
    submissions: set[int] = set()
    graded: set[int] = set()
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", HAND_IN, str(path)],
            env={"PYTHONPATH": f"{ROOT / 'labs'}:{ROOT / 'monitors'}"},
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            acknowledged = [int(child.stdout.readline())]
            time.sleep(rng.uniform(0, 0.1))
            child.send_signal(signal.SIGKILL)
            # a line that the kill cut in two was not told
            rest = child.stdout.read()
            acknowledged += map(int, rest[: rest.rfind("\n") + 1].split())
        submissions |= {number for number in acknowledged if number > 0}
        graded |= {-number for number in acknowledged if number < 0}
        store = Store(path)
        for number in submissions:
            kept = store.submission(number)
            assert kept is not None and len(kept.source) == 5003
            assert kept.seed == 2**62 - 1
        assert all(store.gradings(number) for number in graded)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert len(submissions) >= 6


def test_a_submission_is_kept_before_it_is_graded_and_can_be_graded_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = find("vector-add")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("warpbook_labs.grading.cases.CaseGrader.grade", killed)
        with pytest.raises(KeyboardInterrupt):
            submit(store, lab, lab.reference)
    kept = store.submission(1)
    assert kept is not None and kept.source == lab.reference
    assert store.gradings(1) == []
    assert store.progress() == {"vector-add": Progress(attempts=1)}
    card = grade(store, lab, 1)
    assert (card.passed, card.grading, card.submission) == (True, "self-graded", 1)
    again = grade(store, lab, 1, Limits(processor_s=120))
    first, second = store.gradings(1)
    assert first.result == card.result and second.result == again.result
    assert str(kept.seed) not in str(card)


def test_a_grading_adds_a_result_and_leaves_those_before(store: Store) -> None:
    number = store.add_submission("some-lab", "// x", 1)
    for right in (1, 4, 2):
        store.add_result(number, result(right))
    assert [grading.result.right for grading in store.gradings(number)] == [1, 4, 2]
    # of one submission the last grading counts
    assert store.progress()["some-lab"].best == Mark(number, False, 2, 4)


def test_a_busy_gpu_takes_nothing_from_a_submission_that_passed(store: Store) -> None:
    number = store.add_submission("some-lab", "// x", 1)
    store.add_result(number, result(4))
    busy = CheckResult("some-lab", "too busy", "somebody works", right=4, of=4)
    store.add_result(number, busy)
    assert store.progress()["some-lab"].last == Mark(number, True, 4, 4)
    other = store.add_submission("some-lab", "// y", 1)
    store.add_result(other, busy)
    assert store.progress()["some-lab"].last == Mark(other, False, 4, 4)
    assert store.progress()["some-lab"].best == Mark(number, True, 4, 4)


def test_progress_tells_best_last_attempts_and_hints_of_each_lab(store: Store) -> None:
    for right in (2, 4, 1):
        store.add_result(store.add_submission("some-lab", "// x", 1), result(right))
    store.add_submission("other-lab", "// y", 1)
    assert [store.open_hint("third-lab", 2) for _ in range(4)] == [1, 2, 2, 2]
    assert store.open_hint("no-hints", 0) == 0
    assert Store(store.path).progress() == {
        "no-hints": Progress(),
        "other-lab": Progress(attempts=1),
        "some-lab": Progress(
            attempts=3, best=Mark(2, True, 4, 4), last=Mark(3, False, 1, 4)
        ),
        "third-lab": Progress(hints=2),
    }


def test_many_may_hand_in_at_once(tmp_path: Path) -> None:
    def hand_in(number: int) -> int:
        return Store(tmp_path / "labs.db").add_submission(f"lab-{number}", "// x", 1)

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(hand_in, range(24)))
    assert sorted(numbers) == list(range(1, 25))


def test_who_begins_the_file_beside_another_waits_for_that(tmp_path: Path) -> None:
    path = tmp_path / "labs.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    # SQLite itself refuses at once here
    ends = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    ends.start()
    assert Store(path).add_submission("some-lab", "// x", 1) == 1
    ends.join()
    other.close()


@pytest.mark.parametrize("source", ["x" * 200_001, "\0", "", "\udcff"])
def test_what_is_no_source_is_not_kept(store: Store, source: str) -> None:
    with pytest.raises(BadSource):
        store.add_submission("some-lab", source, 1)
    assert store.progress() == {}


@pytest.mark.parametrize(
    "content", [b"this is no database" * 500, b"SQLite format 3\0" + b"\xff" * 9000]
)
def test_a_damaged_file_is_told_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "labs.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"labs.db: the file is damaged .* Move it"):
        Store(path)
    assert path.read_bytes() == content


def test_a_file_that_loses_its_middle_is_told(store: Store) -> None:
    for _ in range(20):
        store.add_submission("some-lab", "// " + "x" * 9000, 1)
    held = bytearray(store.path.read_bytes())
    held[4096:] = b"\xff" * (len(held) - 4096)
    store.path.write_bytes(held)
    with pytest.raises(StoreError, match="is damaged"):
        store.progress()


def test_a_file_that_another_program_holds_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_WAIT_S", 0.1)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another program holds it"):
        Store(store.path).add_submission("some-lab", "// x", 1)
    # who only reads is not held up
    assert Store(store.path).progress() == {}
    other.close()


def test_a_file_of_a_newer_warpbook_is_left_alone(store: Store) -> None:
    with sqlite3.connect(store.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another version of warpbook"):
        Store(store.path)


def test_a_place_that_cant_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="labs.db"):
        Store(tmp_path / "file" / "labs.db")
    (tmp_path / "labs.db").mkdir()
    with pytest.raises(StoreError, match="unable to open"):
        Store(tmp_path / "labs.db")


def test_each_format_follows_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A format to come is a script that changes the one before it, in one step."""
    path = tmp_path / "labs.db"
    Store(path).add_submission("some-lab", "// mine", 1)
    scripts = {
        "store_schema_2.sql": ["ALTER TABLE hints ADD COLUMN at_ms BIGINT"],
        "store_schema_3.sql": ["ALTER TABLE hints ADD COLUMN a", "NONSENSE"],
    }
    monkeypatch.setattr(format_steps, "statements", lambda _, name: scripts[name])
    connection = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        store_format.bring_up_to_date(connection, 3)
    connection.execute("ROLLBACK")
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert columns(path)["hints"] == {"lab", "opened"}
    store_format.bring_up_to_date(connection, 2)
    connection.execute("COMMIT")
    connection.close()
    assert columns(path)["hints"] == {"lab", "opened", "at_ms"}
    with pytest.raises(StoreError, match="format 2"):
        Store(path)


def columns(path: Path) -> dict[str, set[str]]:
    connection = sqlite3.connect(path)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    by_table = {
        name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
        for (name,) in tables.fetchall()
    }
    connection.close()
    return by_table
