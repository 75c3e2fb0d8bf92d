"""Records are found by what a person remembers of them, and the oldest make room."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from warpbook_monitors.archive import database
from warpbook_monitors.archive.kept_timelines import (
    pack_timeline,
    put_timeline,
    timeline_of,
)
from warpbook_monitors.archive.limits import DAY_MS, Limits
from warpbook_monitors.archive.open_records import Servers, end_open_records
from warpbook_monitors.archive.record import KeptRecord
from warpbook_monitors.archive.records import (
    Search,
    drop_old_records,
    find,
    message_of,
    messages_of_cell,
    newest_messages,
    put,
)

NOW_MS = 40 * DAY_MS


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = database.connect(tmp_path / "archive.db")
    yield connection
    connection.close()


def record(name: str, started_ms: float = NOW_MS, **changes) -> KeptRecord:
    whole = KeptRecord(
        kind="report",
        id=name,
        started_ms=started_ms,
        ended_ms=started_ms + 100,
        notebook="night/train.ipynb",
        kernel_id="k",
        cell_id="c",
        title="model.fit(data)",
        verdict="memory-bound",
        status="ok",
        sentence="Device memory held the GPU back.",
    )
    return msgspec.structs.replace(whole, **changes)


def keep(connection, *records: KeptRecord, limits: Limits | None = None) -> None:
    for one in records:
        message = json.dumps({"id": one.id, "status": one.status}).encode()
        put(connection, one, message, "here", limits or Limits())


def names(connection, **search) -> list[str]:
    return [record_found.id for record_found in find(connection, Search(**search))[0]]


def test_it_is_found_by_text_notebook_kind_verdict_and_time(connection) -> None:
    keep(
        connection,
        record("a", 1000.0, title="100%_sure"),
        record("b", 2000.0, notebook="Other.ipynb", verdict="idle"),
        record("c", 3000.0, kind="alert", sentence="GPU 3 is hot: 100 degrees"),
        record("d", 4000.0, ended_ms=None, status="running", notebook=None),
    )
    assert names(connection) == ["d", "c", "b", "a"], "the newest first"
    assert names(connection, text="other") == ["b"]
    assert names(connection, text="HOT gpu") == ["c"], "each word somewhere"
    assert names(connection, text="100%") == ["a"], "no sign stands for others"
    assert names(connection, text="0%_s") == ["a"]
    assert names(connection, text="a_a") == []
    assert names(connection, text="\\") == []
    assert names(connection, notebook="Other.ipynb") == ["b"]
    assert names(connection, kinds=("alert",)) == ["c"]
    assert names(connection, kinds=("alert", "report"), verdict="idle") == ["b"]
    assert names(connection, from_ms=2050.0, to_ms=3000.0) == ["c", "b"]
    assert names(connection, from_ms=9000.0) == ["d"], "it runs still"
    assert names(connection, before_ms=2000.0) == ["a"]


def test_pages_of_a_list_leave_nothing_out(connection) -> None:
    # eight GPUs grow hot in one second
    times_ms = [1000.0, *[2000.0] * 8, 3000.0, *[4000.0] * 3, 5000.0]
    keep(connection, *(record(f"{n}", at) for n, at in enumerate(times_ms)))
    for limit in range(1, 15):
        seen: list[str] = []
        before_ms, has_more = None, True
        while has_more:
            search = Search(before_ms=before_ms, limit=limit)
            records, has_more = find(connection, search)
            seen += [record_found.id for record_found in records]
            before_ms = records[-1].started_ms
        assert sorted(seen, key=int) == [f"{n}" for n in range(len(times_ms))]


def test_what_ended_is_not_told_to_run_again(connection) -> None:
    running = record("a", ended_ms=None, status="running")
    keep(connection, running, record("a"), running)
    (record_found,), _ = find(connection, Search())
    assert (record_found.status, record_found.ended_ms) == ("ok", NOW_MS + 100)
    assert json.loads(message_of(connection, "report", "a"))["status"] == "ok"
    keep(connection, record("a", title="anew"))
    (record_found,), _ = find(connection, Search())
    assert record_found.title == "anew", "it is one record all the same"


def test_the_oldest_make_room_by_age_number_and_size(connection) -> None:
    limits = Limits(records=5)
    keep(connection, *(record(f"{n}", n + NOW_MS) for n in range(9)), limits=limits)
    assert names(connection) == ["8", "7", "6", "5", "4"]
    (size_bytes,) = connection.execute("SELECT sum(body_bytes) FROM record").fetchone()
    keep(connection, record("9", NOW_MS + 9), limits=Limits(records_bytes=size_bytes))
    assert "9" in names(connection) and "4" not in names(connection)
    put_timeline(connection, "5", pack_timeline(b"of 5"), 1.0, limits)
    put_timeline(connection, "9", pack_timeline(b"of 9"), 2.0, limits)
    month_ms = NOW_MS + 30 * DAY_MS
    assert drop_old_records(connection, Limits(), month_ms + 8)
    assert names(connection) == ["9", "8"]
    assert timeline_of(connection, "5", 10**6) is None, "nobody could find it any more"
    assert timeline_of(connection, "9", 10**6) == b"of 9"
    assert not drop_old_records(connection, Limits(), month_ms + 8)


def test_timelines_are_bounded_and_a_bomb_is_none(connection) -> None:
    limits = Limits(timelines_bytes=30_000)
    for number in range(4):
        body = bytes([number]) + bytes(range(256)) * 40
        put_timeline(connection, f"{number}", body, number, limits)
    kept = connection.execute("SELECT report_id FROM timeline").fetchall()
    assert kept == [("2",), ("3",)]
    put_timeline(connection, "large", bytes(40_000), 9.0, limits)
    assert timeline_of(connection, "large", 10**6) is None
    put_timeline(connection, "bomb", pack_timeline(bytes(10**8)), 10.0, Limits())
    assert timeline_of(connection, "bomb", 10**6) is None
    keep(connection, record("a"))
    connection.execute("UPDATE record SET body = ?", (pack_timeline(bytes(10**8)),))
    assert message_of(connection, "report", "a") is None
    connection.execute("UPDATE record SET body = x'00', title = x'ff'")
    assert message_of(connection, "report", "a") is None
    assert find(connection, Search()) == ([], False), "nothing that it could be"


def test_the_runs_of_a_cell_are_found_beyond_the_newest(connection) -> None:
    keep(
        connection,
        record("old", 1000.0, kind="receipt"),
        record("older", 500.0, kind="receipt"),
        record("other", 1500.0, kind="receipt", cell_id="d"),
        record("a report", 1600.0),
    )
    messages = messages_of_cell(connection, "receipt", "c", 1600.0, 5)
    assert [json.loads(message)["id"] for message in messages] == ["old", "older"]
    messages = newest_messages(connection, "receipt", 2)
    assert [json.loads(message)["id"] for message in messages] == ["old", "other"]


def test_only_what_a_server_that_is_gone_left_open_is_ended(
    connection, tmp_path: Path
) -> None:
    here, there = Servers(tmp_path), Servers(tmp_path)
    here.enter()
    there.enter()

    def ending(kind, message: bytes, last_ms: float):
        name = json.loads(message)["id"]
        return record(name, ended_ms=last_ms, status="interrupted"), message

    def states() -> dict[str, str]:
        return {
            record_found.id: record_found.status
            for record_found in find(connection, Search())[0]
        }

    for servers, name in ((here, "a"), (there, "b")):
        running = record(name, ended_ms=None, status="running")
        message = json.dumps({"id": name}).encode()
        put(connection, running, message, servers.name, Limits())
    assert end_open_records(connection, here, ending, Limits()) == 0
    assert states() == {"a": "running", "b": "running"}
    there.leave()
    assert end_open_records(connection, here, ending, Limits()) == 1
    assert states() == {"a": "running", "b": "interrupted"}
    assert end_open_records(connection, here, ending, Limits()) == 0
    here.leave()
    assert list(tmp_path.glob("server-*")) == []


def test_servers_that_were_killed_leave_no_locks(tmp_path: Path) -> None:
    """Each one that had left nothing open left its lock, for ever."""
    for name in ("a" * 16, "b" * 16):
        (tmp_path / f"server-{name}.lock").write_text("1\n")
    one, other = Servers(tmp_path), Servers(tmp_path)
    one.enter()
    other.enter()
    other.forget_gone()
    locks = {path.stem for path in tmp_path.glob("server-*.lock")}
    assert locks == {f"server-{one.name}", f"server-{other.name}"}
    # and one whose lock somebody removed is known again when it writes next
    (tmp_path / f"server-{one.name}.lock").unlink()
    one.enter()
    assert not other.is_gone(one.name)
    one.leave()
    other.leave()
