"""Everything of a person in one file, and back; the file may be somebody else's."""

import gzip
import io
import json
import os
import random
import signal
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from zlib import compress

import psutil
import pytest
from msgspec.json import encode

from tests.extension.cli.conftest import COMMAND
from tests.extension.server.test_ingest import report
from tests.extension.server.test_records_survive import now_ms, whose
from tests.programs import wait_for
from tests.server_process import server
from warpbook_labs.course.store import Store
from warpbook_monitors.archive.database import connect
from warpbook_monitors.archive.place import default_folder
from warpbook_monitors.frames import Device, Devices, Frame, Metric

LABS, RULES_FILE = "data/labs.db", "config/warpbook-alerts.toml"
RULES = "[built_in.temperature]\nfor_s = 1\n"


@pytest.fixture
def data(home: Path) -> Path:
    folder = home / ".local" / "share" / "warpbook"
    folder.mkdir(parents=True)
    return folder


def fill(home: Path, data: Path) -> int:
    """Let somebody have submissions and rules; give a submission's number."""
    number = Store(data / "labs.db").add_submission("some-lab", "// mine", 7)
    (home / ".jupyter").mkdir(exist_ok=True)
    (home / ".jupyter" / "warpbook-alerts.toml").write_text(RULES)
    return number


def reports_of(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT id FROM record WHERE kind = 'report'").fetchall()
    connection.close()
    return {name for (name,) in rows}


def test_everything_comes_back_while_servers_write(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    number = fill(home, data)
    backup = tmp_path / "mine.tar.gz"
    with server(home) as running:
        running.start_kernel()

        def hand_in(name: str) -> None:
            times = {"started_ms": now_ms(), "ended_ms": now_ms()}
            body = report(name, **times, **whose(running))
            assert running.ingest("/v1/reports", body).status_code == 204

        hand_in("before")
        done = warpbook("backup", str(backup))
        assert done.returncode == 0, done.stderr
        assert backup.stat().st_mode & 0o777 == 0o600
        assert "data/labs.db" in done.stdout
        refused = warpbook("backup", str(backup))
        assert refused.returncode == 1 and "is there already" in refused.stderr
        assert warpbook("backup", str(backup), "--force").returncode == 0

        hand_in("later")
        (home / ".jupyter" / "warpbook-alerts.toml").unlink()
        Store(data / "labs.db").add_submission("some-lab", "// later", 7)
        done = warpbook("restore", str(backup))
        assert done.returncode == 0, done.stderr
        # the server has the file open, and goes on with what is in it now
        assert running.record("report", "before")
        names = {record["id"] for record in running.records(kind="report")}
        assert names == {"before"}
        hand_in("after")
        names = {record["id"] for record in running.records(kind="report")}
        assert names == {"before", "after"}
    assert (home / ".jupyter" / "warpbook-alerts.toml").read_text() == RULES
    store = Store(data / "labs.db")
    assert store.submissions("some-lab") == [number]

    (before,) = data.glob("before-restore-*.tar.gz")
    assert str(before) in done.stdout
    assert warpbook("restore", str(before)).returncode == 0
    assert len(store.submissions("some-lab")) == 2
    (archive,) = (data / "archive").glob("*/archive.db")
    assert reports_of(archive) == {"before", "later"}


def test_it_comes_back_on_a_machine_that_has_nothing(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    number = fill(home, data)
    backup = tmp_path / "mine.tar.gz"
    assert warpbook("backup", str(backup)).returncode == 0
    other = tmp_path / "other"
    other.mkdir()
    done = warpbook("restore", str(backup), HOME=str(other))
    assert done.returncode == 0, done.stderr
    folder = other / ".local" / "share" / "warpbook"
    assert Store(folder / "labs.db").submissions("some-lab") == [number]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "labs.db").stat().st_mode & 0o777 == 0o600
    assert not list(folder.glob("before-restore-*"))


def test_a_kill_in_the_middle_loses_nothing(
    warpbook, environment, home: Path, data: Path, tmp_path: Path
) -> None:
    fill(home, data)
    store = Store(data / "labs.db")
    for _ in range(200):
        store.add_submission("some-lab", "// " + "x" * 20_000, 7)
    backup = tmp_path / "mine.tar.gz"
    assert warpbook("backup", str(backup)).returncode == 0
    store.add_submission("some-lab", "// later", 7)
    began_s = time.monotonic()
    assert warpbook("restore", str(backup)).returncode == 0
    took_s = time.monotonic() - began_s
    (before,) = data.glob("before-restore-*")
    assert warpbook("restore", str(before)).returncode == 0
    for command in (["restore"], ["backup", "--force"]) * 4:
        before = set(data.glob("before-restore-*"))
        process = subprocess.Popen(
            [COMMAND, *command, str(backup)], env=environment, cwd=tmp_path
        )
        # any moment will do, most of them while it works
        time.sleep(random.uniform(0.3, 1.0) * took_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(store.submissions("some-lab")) in (201, 202)
        if len(store.submissions("some-lab")) == 201:
            (kept, *_) = set(data.glob("before-restore-*")) - before
            assert warpbook("restore", str(kept)).returncode == 0
            assert len(store.submissions("some-lab")) == 202
        with gzip.open(backup) as stream:
            assert stream.read()


def test_nothing_but_a_file_is_replaced_and_no_backup_holds_another(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    fill(home, data)
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link, tmp_path):
        done = warpbook("backup", str(target), "--force")
        assert done.returncode == 1 and "not a regular file" in done.stderr
    assert pipe.is_fifo() and link.is_symlink()
    inside = data / "mine.tar.gz"
    assert warpbook("backup", str(inside)).returncode == 0
    assert warpbook("backup", str(tmp_path / "later.tar.gz")).returncode == 0
    with tarfile.open(tmp_path / "later.tar.gz") as tar:
        names = tar.getnames()
    assert "data/labs.db" in names and "data/mine.tar.gz" not in names


def test_a_damaged_database_is_replaced_under_a_server(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    fill(home, data)
    backup = tmp_path / "mine.tar.gz"
    with server(home) as running:
        running.start_kernel()
        hand_in = {"started_ms": now_ms(), "ended_ms": now_ms(), **whose(running)}
        assert running.ingest("/v1/reports", report("one", **hand_in)).ok
        assert warpbook("backup", str(backup)).returncode == 0
        (archive,) = (data / "archive").glob("*/archive.db")
        for path in (archive, data / "labs.db"):
            for ending in ("-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            broken = tmp_path / "broken"
            broken.write_bytes(b"\xa5" * 8192)
            os.replace(broken, path)
        done = warpbook("restore", str(backup))
        assert done.returncode == 0, done.stderr
        # the server may have put the archive's aside before
        assert done.stdout.count(".damaged-") in (1, 2)
        # the server finds the new file, and writes into it
        assert running.ingest("/v1/reports", report("two", **hand_in)).ok
        assert reports_of(archive) == {"one", "two"}
    assert len(Store(data / "labs.db").submissions("some-lab")) == 1
    assert not list(data.glob(".*.part")) + list(archive.parent.glob(".*.part"))


def entry(name: str, content: bytes, **changes) -> dict:
    described = {
        "name": name,
        "kind": "database" if name.endswith(".db") else "file",
        "size_bytes": len(content),
        "sha256": sha256(content).hexdigest(),
    }
    return {**described, **changes}


def hostile(path: Path, entries: list[dict], contents: list[bytes], **changes) -> Path:
    """Write a backup that tells `entries` and holds `contents`."""
    manifest = {"format": 1, "version": "1", "made_ms": 1.0, "files": entries}
    encoded_manifest = json.dumps({**manifest, **changes}).encode()
    with tarfile.open(path, "w:gz") as tar:
        names = ["manifest.json", *(entry_kept["name"] for entry_kept in entries)]
        for name, content in zip(names, [encoded_manifest, *contents], strict=False):
            header = tarfile.TarInfo(name)
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return path


def database(tmp_path: Path, *statements: str) -> bytes:
    path = tmp_path / f"made-{random.random()}.db"
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path.read_bytes()


def one_file(name: str, **changes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        body = b"always = true"
        return hostile(folder / "b", [entry(name, body, **changes)], [body])

    return make


def one_database(name: str, *statements: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        body = database(folder, *statements)
        return hostile(folder / "b", [entry(name, body)], [body])

    return make


def linked(folder: Path) -> Path:
    made = one_file(RULES_FILE)(folder)
    with tarfile.open(made) as tar:
        manifest_bytes = tar.extractfile("manifest.json").read()
    with tarfile.open(made, "w:gz") as tar:
        header = tarfile.TarInfo("manifest.json")
        header.size = len(manifest_bytes)
        tar.addfile(header, io.BytesIO(manifest_bytes))
        link = tarfile.TarInfo(RULES_FILE)
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return made


def bomb(folder: Path) -> Path:
    """A header that has Python's own reader keep a gigabyte in memory."""
    path = folder / "b"
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 10**9
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(100):
            stream.write(bytes(10**7))
    return path


def cut_off(folder: Path) -> Path:
    body = os.urandom(100_000)
    path = hostile(folder / "b", [entry(RULES_FILE, body)], [body])
    path.write_bytes(path.read_bytes()[:50_000])
    return path


def plain(content: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "b").write_bytes(content)
        return folder / "b"

    return make


ARCHIVE = "data/archive/m/archive.db"


def altered(name: str, old: str, new: str) -> Callable[[Path], Path]:
    """A backup with a database of ours in which one thing is another."""

    def make(folder: Path) -> Path:
        path = folder / "mine.db"
        if name == ARCHIVE:
            connect(path).close()
        else:
            Store(path).add_submission("some-lab", "// mine", 7)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("PRAGMA writable_schema = 1")
            changed = connection.execute(
                "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE instr(sql, ?)",
                (old, new, old),
            )
            assert changed.rowcount == 1
        body = path.read_bytes()
        return hostile(folder / "b", [entry(name, body)], [body])

    return make


def holding(number: int, lab: object, seed: object) -> Callable[[Path], Path]:
    """A backup whose submission has such values, in a schema of ours."""

    def make(folder: Path) -> Path:
        Store(folder / "mine.db")
        with closing(sqlite3.connect(folder / "mine.db")) as connection, connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            row = (number, lab, "// mine", seed, 1)
            connection.execute("INSERT INTO submissions VALUES (?, ?, ?, ?, ?)", row)
        body = (folder / "mine.db").read_bytes()
        return hostile(folder / "b", [entry(LABS, body)], [body])

    return make


def sharing(folder: Path) -> Path:
    """A backup whose eight submissions are one and the same 400 kB of the file."""
    path = folder / "mine.db"
    Store(path)
    # of a record, what stands in the leaf itself, and of each page that follows it
    local_bytes, page_bytes = 4084 * 32 // 255 - 23, 4092
    for source_bytes in range(100 * page_bytes + local_bytes, 0, -1):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("DELETE FROM submissions")
            rows = [(number, "lab", "x" * source_bytes, 7, 1) for number in range(1, 9)]
            connection.executemany("INSERT INTO submissions VALUES (?,?,?,?,?)", rows)
            query = "SELECT rootpage FROM sqlite_master WHERE name = 'submissions'"
            (root,) = connection.execute(query).fetchone()
        content = bytearray(path.read_bytes())
        page = memoryview(content)[(root - 1) * 4096 : root * 4096]
        if page[0] == 13:
            # all of them are in one leaf
            break
    cells = sorted(
        int.from_bytes(page[8 + 2 * i : 10 + 2 * i], "big") for i in range(8)
    )
    ends = [*cells[1:], 4096]
    for end in ends:
        page[end - 4 : end] = page[ends[-1] - 4 : ends[-1]]
    page.release()
    first = int.from_bytes(content[root * 4096 - 4 : root * 4096], "big")
    assert first < 20
    content[28:32] = (first + 100).to_bytes(4, "big")
    body = bytes(content[: (first + 100) * 4096])
    return hostile(folder / "b", [entry(LABS, body)], [body])


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (one_file("../../.bashrc"), "which is not ours"),
        (one_file("data/../../.bashrc"), "which is not ours"),
        (one_file("/etc/passwd"), "which is not ours"),
        (one_file("data/labs.db-wal"), "which is not ours"),
        (one_file("data/archive/m/archive.lock"), "which is not ours"),
        (one_file("data/archive/\u202em/archive.db"), "which is not ours"),
        (one_file("config/jupyter_server_config.py"), "which is not ours"),
        (one_file(RULES_FILE, sha256="0" * 64), "is damaged"),
        (one_file(RULES_FILE, size_bytes=3), "not where it should be"),
        (one_file(RULES_FILE, size_bytes=-1), "manifest can't be read"),
        (one_file(RULES_FILE, size_bytes=2**40), "would come out of it"),
        (one_file("data/labs.db", size_bytes=2**40), "would come out of it"),
        (one_file("data/labs.db"), "not a database"),
        (one_database(LABS), "it is empty"),
        (one_database("data/labs.db", "PRAGMA user_version = 2"), "Update warpbook"),
        (
            one_database("data/labs.db", "CREATE TABLE t (a)"),
            "not a database of warpbook",
        ),
        (
            one_database("data/labs.db", "CREATE VIEW hints AS SELECT 1 AS lab"),
            "not a database of warpbook: it has",
        ),
        (
            one_database(
                "data/labs.db",
                "CREATE TABLE hints (lab, opened)",
                "CREATE TRIGGER t AFTER INSERT ON hints BEGIN SELECT 1; END",
            ),
            "not a database of warpbook: it has",
        ),
        (
            one_database(
                ARCHIVE,
                "PRAGMA user_version = 9",
                f"PRAGMA application_id = {0x77626172}",
            ),
            "newer warpbook",
        ),
        (one_database(ARCHIVE, "CREATE TABLE t (a)"), "not an archive of warpbook"),
        (
            altered(ARCHIVE, "time_ms REAL NOT NULL", "time_ms REAL CHECK(0)"),
            "not a database of warpbook",
        ),
        (
            altered(ARCHIVE, "NOT NULL UNIQUE", "NOT NULL UNIQUE, g AS(abs(1))"),
            "not a database of warpbook",
        ),
        (
            altered(LABS, "seed BIGINT", "seed BIGINT DEFAULT(randomblob(10))"),
            "not a database of warpbook",
        ),
        (
            altered(LABS, 'L,\n    "of"', 'L, "of--",\n    "of"'),
            "not a database of warpbook",
        ),
        (
            holding(2**63 - 1, "lab", 7),
            "submissions.id is not one that warpbook writes",
        ),
        (holding(1, b"lab", 7), "submissions.lab is not one that warpbook writes"),
        (
            holding(1, "lab", float("inf")),
            "submissions.seed is not one that warpbook writes",
        ),
        (sharing, "its values take more room than the file"),
        (linked, "more than plain files"),
        (bomb, "more than plain files"),
        (cut_off, "no backup, or damaged"),
        (plain(b"hello"), "no backup, or damaged"),
        (plain(gzip.compress(b"hello" * 200)), "no backup, or damaged"),
        (plain(b""), "no backup of warpbook"),
        (
            lambda folder: hostile(folder / "b", [], [], format=2),
            "a newer warpbook made it",
        ),
        (
            lambda folder: hostile(folder / "b", [], [], made_ms=1e300),
            "manifest can't be read",
        ),
    ],
)
def test_a_hostile_backup_changes_nothing(
    warpbook, home: Path, data: Path, tmp_path: Path, make, why
) -> None:
    (home / ".jupyter").mkdir()
    (home / ".jupyter" / "warpbook-alerts.toml").write_text("mine")
    there = {path for path in home.rglob("*")}
    done = warpbook("restore", str(make(tmp_path)))
    assert done.returncode == 1
    assert why in done.stderr and "Traceback" not in done.stderr
    assert {path for path in home.rglob("*")} == there
    assert (home / ".jupyter" / "warpbook-alerts.toml").read_text() == "mine"


#: of an account that has used all there is; none of it may come from somebody else
MADE_ANEW = (
    "trusted_labs.json",
    "limits/GPU-1-580.1.json",
    "limit_cards/GPU-1-580.1.json",
    "programs/00000000000000000000000000000000.cubin",
    "hub/hub.json",
    "hub/hub/passwords.json",
    "hub/hub/jupyterhub_cookie_secret",
    "hub/hub/hub.sqlite",
    "hub/course/hub.db",
    "hub/homes/grace/torch.py",
    "hub/proxy/node_modules/strftime/index.js",
)


def test_only_known_things_are_packed(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    fill(home, data)
    connect(data / "archive" / "m" / "archive.db").close()
    for name in (*MADE_ANEW, "notes.txt", "archive/m/run.py", "archive/.x/archive.db"):
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]")
    backup = tmp_path / "mine.tar.gz"
    done = warpbook("backup", str(backup))
    with tarfile.open(backup) as tar:
        names = {*tar.getnames()} - {"manifest.json"}
    assert names == {LABS, ARCHIVE, RULES_FILE}
    for name in {name.partition("/")[0] for name in MADE_ANEW}:
        assert f"left out: {data / name}: " in done.stderr
    assert "node_modules" not in done.stdout + done.stderr


def test_only_known_things_come_from_a_backup(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    number = Store(data / "labs.db").add_submission("some-lab", "// mine", 7)
    mine = (data / "labs.db").read_bytes()
    rules = b"a = " + b"[" * 200_000
    contents = {
        **{f"data/{name}": b"planted" for name in MADE_ANEW},
        "data/notes.txt": b"",
        "config/jupyter_server_config.py": b"",
        RULES_FILE: rules,
        ARCHIVE: b"planted",
        LABS: mine,
    }
    made = hostile(
        tmp_path / "b",
        [entry(name, content) for name, content in contents.items()],
        list(contents.values()),
    )
    other = tmp_path / "other"
    other.mkdir()
    done = warpbook("restore", str(made), HOME=str(other))
    assert done.returncode == 0, done.stderr
    folder = other / ".local" / "share" / "warpbook"
    there = {path.relative_to(other) for path in other.rglob("*") if path.is_file()}
    assert there == {(folder / "labs.db").relative_to(other)}
    assert Store(folder / "labs.db").submissions("some-lab") == [number]
    came, _, left_out = done.stdout.partition("Not restored:")
    assert LABS in came and "trusted_labs.json" not in came
    assert "data/trusted_labs.json: you are asked again" in left_out
    assert "at line 1" in left_out and left_out.count("data/hub: ") == 1
    for name in ("data/notes.txt", "config/jupyter_server_config.py", ARCHIVE):
        assert name in left_out


def test_what_an_archive_says_of_itself_stops_no_server(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    """Sizes whose sum is too large, times that are none, and a tail without an end."""
    path = tmp_path / "mine.db"
    connect(path).close()
    frames = b"".join(encode(Frame(n, 1.0, (), None)) + b"\n" for n in range(100_000))
    metric = Metric("x", "1", "x")
    gpu = Device("gpu:x", "gpu", "x", 0, "live", (metric,) * 2_000)
    tail, devices = compress(frames), compress(encode(Devices(0.0, (gpu,))))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        for name in ("one", "two", "three"):
            body = compress(encode(report(name, started_ms=1e300, ended_ms=1e300)))
            row = ("report", name, 1.0, 2.0, "t", "ok", "s", 0, body, 2**62)
            connection.execute(
                "INSERT INTO record (kind, id, started_ms, ended_ms, title, status, "
                f"sentence, is_replay, body, body_bytes) VALUES ({'?, ' * 9}?)",
                row,
            )
        rows = [(1.0, 1.0, body) for body in (devices, *[tail] * 9)]
        connection.executemany(
            "INSERT INTO recent (from_ms, to_ms, messages) VALUES (?, ?, ?)", rows
        )
    body = path.read_bytes()
    name = f"data/archive/{default_folder().name}/archive.db"
    backup = hostile(tmp_path / "b", [entry(name, body)], [body])
    done = warpbook("restore", str(backup))
    assert done.returncode == 0, done.stderr
    with server(home) as running:
        running.start_kernel()
        times = {"started_ms": now_ms(), "ended_ms": now_ms()}
        kept = report("mine", **times, **whose(running))
        # acknowledged: it is on the disk
        wait_for("room", lambda: running.ingest("/v1/reports", kept).ok)
        bad = {**kept, "id": "bad", "started_ms": 1e300}
        assert running.ingest("/v1/reports", bad).status_code == 400
        page = running.get("warpbook/api/v1/reports/one/page")
        assert page.status_code == 404
        assert running.get("warpbook/api/v1/reports/mine/page").ok
        used = psutil.Process(running.process.pid).memory_info().rss
    assert used < 1 << 30


def test_no_word_of_another_schema_survives(
    warpbook, home: Path, data: Path, tmp_path: Path
) -> None:
    """SQLite tells columns, but no CHECK: rows come over, and the schema does not."""
    no_row = '"of" INTEGER NOT NULL CHECK (length(hex(zeroblob(400000000))) < 0)'
    made = altered(LABS, '"of" INTEGER NOT NULL', no_row)(tmp_path)
    done = warpbook("restore", str(made))
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(data / "labs.db")) as connection, connection:
        assert connection.execute("SELECT source FROM submissions").fetchone()
        connection.execute("INSERT INTO results VALUES (1, 1, 1, 1, 1, 1, '')")
        schema = connection.execute("SELECT group_concat(sql) FROM sqlite_master")
        assert "zeroblob" not in schema.fetchone()[0]
