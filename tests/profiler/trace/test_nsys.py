"""Exports of Nsight Systems: the same report, what is not in them unknown, no trust."""

import contextlib
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.profiler.trace.nsys_file import (
    GLOBAL_TID,
    PID,
    SCHEMA,
    share_one_value,
    write_nsys,
)
from warpbook_monitors.python_path import own_path
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.files.file_profile import read_profile
from warpbook_profiler.files.nsight import database as limits
from warpbook_profiler.files.read_trace import read_trace
from warpbook_profiler.model.errors import (
    NotATrace,
    TraceDamaged,
    TraceFileError,
    TraceTooLarge,
)
from warpbook_profiler.report.report import TraceReport, report

TRACES = Path(__file__).parents[2] / "data" / "traces"


def exported(folder: Path, name: str, *statements: str) -> Path:
    path = folder / f"{name}.sqlite"
    database = write_nsys(path, TRACES / f"{name}.json.gz")
    for statement in statements:
        database.executescript(statement)
    database.close()
    return path


def report_of(path: Path) -> TraceReport:
    return report(*read_trace(str(path)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tiny_kernels", "launch-bound"),
        ("train_fp32", "compute-bound"),
        ("pinned_h2d", "transfer-bound"),
        ("matmul_bf16", "compute-bound"),
    ],
)
def test_the_verdict_is_that_of_the_same_run_by_torch(
    tmp_path: Path, name: str, kind: str
) -> None:
    trace_report = report_of(exported(tmp_path, name))
    same = report(*read_chrome_trace(str(TRACES / f"{name}.json.gz")))
    assert trace_report.verdict.kind == same.verdict.kind == kind
    assert trace_report.gpu == same.gpu
    assert trace_report.metrics.kernels == same.metrics.kernels
    assert trace_report.metrics.gpu_busy_ns == same.metrics.gpu_busy_ns
    assert trace_report.completeness.matched == same.completeness.matched
    assert trace_report.metrics.occupancy_share == pytest.approx(
        same.metrics.occupancy_share
    )
    assert [
        (one.direction, one.host_memory) for one in trace_report.metrics.copies
    ] == [(one.direction, one.host_memory) for one in same.metrics.copies]


def test_what_it_does_not_hold_is_not_known(tmp_path: Path) -> None:
    trace_report = report_of(exported(tmp_path, "train_fp32"))
    assert trace_report.bare is None and trace_report.changes == ()
    assert trace_report.metrics.flops is None
    assert all(point.flops is None for point in trace_report.roofline)
    assert any("Nsight Systems" in note for note in trace_report.completeness.warnings)


def test_ranges_of_nvtx_are_annotations(tmp_path: Path) -> None:
    ranges = f"""
    INSERT INTO StringIds VALUES (900000, 'by id');
    INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, textId) VALUES
      (0, 9000000000, 59, 'whole', {GLOBAL_TID}, NULL),
      (0, 1000, 60, NULL, {GLOBAL_TID}, 900000),
      (5, NULL, 59, 'open', {GLOBAL_TID}, NULL),
      (5, 9, 34, 'a mark', {GLOBAL_TID}, NULL);
    """
    trace_report = report_of(exported(tmp_path, "tiny_kernels", ranges))
    rows = {row.name: row for row in trace_report.annotations}
    assert set(rows) == {"whole", "by id"}
    assert rows["whole"].work == trace_report.metrics.kernels
    assert rows["by id"].work == 0


def test_tables_of_a_later_version_are_read(tmp_path: Path) -> None:
    renamed = f"""
    INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, textId) VALUES
      (0, 9000000000, 59, 'whole', {GLOBAL_TID}, NULL);
    ALTER TABLE NVTX_EVENTS RENAME TO NVTX_EVENTS_V2;
    ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO CUPTI_ACTIVITY_KIND_KERNEL_V10;
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER) ;
    """
    same = report_of(exported(tmp_path, "train_fp32"))
    trace_report = report_of(exported(tmp_path, "tiny_kernels", renamed))
    assert [row.name for row in trace_report.annotations] == ["whole"]
    assert trace_report.metrics.kernels == 800
    assert not any("not known are not read" in note for note in notes_of(trace_report))
    assert not any("not known are not read" in note for note in notes_of(same))


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMSET RENAME COLUMN start TO beginNs;",
        """ALTER TABLE CUPTI_ACTIVITY_KIND_MEMSET RENAME TO MEMSET_V2;
        ALTER TABLE MEMSET_V2 RENAME COLUMN streamId TO stream;
        ALTER TABLE MEMSET_V2 RENAME TO CUPTI_ACTIVITY_KIND_MEMSET_V2;""",
    ],
)
def test_tables_that_are_not_known_are_named(statement: str, tmp_path: Path) -> None:
    trace_report = report_of(exported(tmp_path, "train_fp32", statement))
    assert any(
        "not known are not read: CUPTI_ACTIVITY_KIND_MEMSET" in note
        for note in notes_of(trace_report)
    )


def notes_of(trace_report: TraceReport) -> tuple[str, ...]:
    return trace_report.completeness.warnings


def test_the_process_with_most_work_is_told(tmp_path: Path) -> None:
    other = f"""
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES
      (10, 20, 0, 1, 7, 1, {(PID + 1) << 24}, 0, 64);
    """
    trace_report = report_of(exported(tmp_path, "tiny_kernels", other))
    assert any(
        "1 other process with" in note for note in trace_report.completeness.warnings
    )


def test_graphs_that_were_recorded_as_a_whole_are_named(tmp_path: Path) -> None:
    graph = f"""
    CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER,
      deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES
      (100, 900, 0, 7, 999999, {PID << 24});
    """
    trace_report = report_of(exported(tmp_path, "tiny_kernels", graph))
    assert any(
        "cuda-graph-trace" in note for note in trace_report.completeness.warnings
    )


def test_a_notebook_reads_it_too(tmp_path: Path) -> None:
    file_profile = read_profile(str(exported(tmp_path, "tiny_kernels")))
    assert file_profile.profile.verdict is not None
    assert file_profile.profile.verdict.kind == "launch-bound"


_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_HOSTILE = {
    "a view that never ends": f"""
      DROP TABLE {_KERNELS};
      CREATE VIEW {_KERNELS} AS WITH RECURSIVE n(start) AS
        (SELECT 1 UNION ALL SELECT start + 1 FROM n)
        SELECT start, start AS end, 0 AS deviceId FROM n;
    """,
    "a virtual table": f"""
      DROP TABLE {_KERNELS};
      CREATE VIRTUAL TABLE {_KERNELS} USING fts5(start, end, deviceId);
    """,
    "a computed column": f"""
      DROP TABLE {_KERNELS};
      CREATE TABLE {_KERNELS} (deviceId INTEGER, end INTEGER,
        start AS (length(zeroblob(900000000))));
      INSERT INTO {_KERNELS} (deviceId, end) VALUES (0, 5);
    """,
    "values of other kinds": f"""
      UPDATE {_KERNELS} SET streamId = 'x', registersPerThread = x'00',
        correlationId = 1e300, demangledName = 'none', gridX = -5;
      UPDATE StringIds SET value = x'ff00fe';
    """,
    "times that can't be": f"""
      UPDATE {_KERNELS} SET start = 9223372036854775807, end = -9223372036854775808
        WHERE rowid % 2;
      UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = 9223372036854775807;
      UPDATE TARGET_INFO_GPU SET id = 9223372036854775807;
    """,
    "ids beyond all bounds": f"""
      UPDATE {_KERNELS} SET deviceId = 9223372036854775807,
        gridX = 9223372036854775807, staticSharedMemory = 9223372036854775807;
    """,
    "no columns that are known": f"""
      DROP TABLE {_KERNELS}; CREATE TABLE {_KERNELS} ("a""b" INTEGER);
    """,
}


@pytest.mark.parametrize("what", _HOSTILE)
def test_a_hostile_file_costs_what_is_wrong_in_it(tmp_path: Path, what: str) -> None:
    path = exported(tmp_path, "tiny_kernels", _HOSTILE[what])
    before = path.read_bytes()
    assert report_of(path).verdict.sentence
    assert path.read_bytes() == before
    assert not [other for other in tmp_path.iterdir() if other != path]


def test_names_are_bounded(tmp_path: Path) -> None:
    long = "UPDATE StringIds SET value = value || printf('%.*c', 100000, 'x');"
    trace_report = report_of(exported(tmp_path, "tiny_kernels", long))
    assert max(len(row.name) for row in trace_report.kernels) <= 1000


@pytest.mark.parametrize(
    ("table", "column", "kind", "words"),
    [
        ("StringIds", 1, "text", "bytes of names"),
        ("StringIds", 1, "blob", "no event of CUDA"),
        (_KERNELS, 0, "text", "no event of CUDA"),
        (_KERNELS, 0, "blob", "no event of CUDA"),
        ("NVTX_EVENTS", 6, "text", "bytes of names"),
        ("TARGET_INFO_GPU", 2, "text", "bytes of names"),
    ],
)
def test_rows_that_share_a_large_value_take_no_memory(
    tmp_path: Path, table: str, column: int, kind: str, words: str
) -> None:
    """They have 2.7 GB together; the command may have 1.5 of its own 12."""
    path = tmp_path / "shared.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA)
        if table != _KERNELS:
            database.execute(f"INSERT INTO {_KERNELS} VALUES (9, 5, 0{', 0' * 21})")
            database.commit()
    share_one_value(path, table, column, kind, 3000)
    ended = subprocess.run(
        [sys.executable, "-m", "warpbook.cli.main", "analyze", str(path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 29, 3 << 29)),
        env={"PYTHONPATH": own_path()},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert words in ended.stderr and ended.stderr.count("\n") == 1


def test_a_schema_that_is_no_text_is_damaged(tmp_path: Path) -> None:
    """SQLite's own message quotes it."""
    broken = """
    PRAGMA writable_schema = ON;
    UPDATE sqlite_master SET name = CAST(x'fffe' AS TEXT), sql = 'CREATE TABLE ('
      WHERE name = 'NVTX_EVENTS';
    """
    with pytest.raises(TraceDamaged, match="schema"):
        report_of(exported(tmp_path, "tiny_kernels", broken))


@pytest.mark.parametrize(
    ("bound", "value"), [("MAX_ROWS", 100), ("MAX_TEXT_BYTES", 50)]
)
def test_a_file_beyond_a_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(limits, bound, value)
    with pytest.raises(TraceTooLarge):
        report_of(exported(tmp_path, "tiny_kernels"))


def test_a_file_that_takes_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = exported(tmp_path, "tiny_kernels")
    monkeypatch.setattr(limits, "MAX_SECONDS", -1.0)
    monkeypatch.setattr(limits, "_INSTRUCTIONS", 1)
    with pytest.raises(TraceFileError):
        report_of(path)


@pytest.mark.parametrize("rounded", [0, 1_000])
def test_a_file_that_is_cut_off_gives_what_it_holds(
    tmp_path: Path, rounded: int
) -> None:
    path = exported(tmp_path, "tiny_kernels")
    whole, content = report_of(path), path.read_bytes()
    kernels = set()
    for share in (0.9, 0.6):
        path.write_bytes(content[: int(share * len(content)) // 4096 * 4096 + rounded])
        cut = report_of(path)
        assert any("cut off" in told for told in cut.completeness.warnings)
        kernels.add(cut.metrics.kernels)
    assert 0 < min(kernels) and max(kernels) <= whole.metrics.kernels
    path.write_bytes(content[:20_000])
    with pytest.raises(TraceDamaged, match="cut off"):
        report_of(path)


def test_another_database_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (name TEXT)")
    database.close()
    with pytest.raises(NotATrace, match="nsys export"):
        report_of(path)


@pytest.mark.parametrize("name", ["run.nsys-rep", "run.qdrep", "kernels.ncu-rep"])
def test_a_closed_format_is_told_how_to_export(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x00")
    with pytest.raises(NotATrace, match="export|--csv"):
        report_of(path)
