"""A day of eight GPUs on disk: what keeping it costs, beside plainer ways.

    python benchmarks/archive.py [--write docs/benchmarks.md]

The frames are those of `benchmarks/history.py`: eight GPUs that play the shipped
recording from different places, with 60 metrics each. Their seconds are in an order of
chance, so that nothing repeats as it was. An hour is written by each way; then a day
is made of it, and four metrics of one GPU are read as the dashboard reads a day: 600
steps. The plain ways are what the memory has (a second of JSON, compressed, as a row of
SQLite), which has no summaries, and, where pyarrow is installed, Parquet files.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import random
import sqlite3
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.history import BEGIN_MS, HOUR_S, RATE_HZ, devices, frames
from benchmarks.report import ask, tell
from warpbook_monitors.archive.database import (
    connect,
    size_bytes,
    transaction,
)
from warpbook_monitors.archive.lookup import read_archive
from warpbook_monitors.archive.segments import next_merge
from warpbook_monitors.archive.steps import fitting_step_ms
from warpbook_monitors.archive.table import (
    FROM_MS,
    TO_MS,
    Table,
    pack,
    unpack,
)
from warpbook_monitors.archive.tail import Tail
from warpbook_monitors.frames import Frame
from warpbook_monitors.history.detail import in_steps
from warpbook_monitors.history.readings import read_frames

HEADING = "An archive of a day"
_ROUNDS = 3
_DAY_MS = 86_400_000.0
_CHOSEN = 4
#: frames that are in no segment yet, as long as one may be
_GROWING = 2990
_STEPS = 600


def hour() -> list[Frame]:
    """An hour whose seconds are in an order of chance."""
    dice = random.Random(15)
    seconds = _batched(list(frames()), RATE_HZ)
    dice.shuffle(seconds)
    whole = [frame for second in seconds for frame in second]
    times_ms = (BEGIN_MS + 100.0 * (seq + 1) - 0.5 for seq in range(len(whole)))
    return [
        msgspec.structs.replace(frame, seq=seq, time_ms=time_ms)
        for seq, (frame, time_ms) in enumerate(zip(whole, times_ms, strict=True))
    ]


def _batched(whole: Sequence[Frame], size: int) -> list[list[Frame]]:
    return [list(whole[at : at + size]) for at in range(0, len(whole), size)]


def archived(folder: Path, whole: Sequence[Frame]) -> tuple[float, float, float]:
    """Bytes and CPU of the hour, and seconds to read a day of it."""
    described = devices()
    with contextlib.closing(connect(folder / "archive.db")) as connection:
        empty_bytes = size_bytes(connection)
        begun_s = time.thread_time()
        tail = Tail()
        for second in _batched(whole, RATE_HZ):
            tail.write(connection, [(frame, described) for frame in second])
        # a later frame ends the last segment: a day has one tail, not one each hour
        later = msgspec.structs.replace(whole[-1], time_ms=BEGIN_MS + _DAY_MS)
        tail.write(connection, [(later, described)])
        with transaction(connection):
            while next_merge(connection, BEGIN_MS + 2 * _DAY_MS):
                pass
        cpu_s = time.thread_time() - begun_s
        taken_bytes = size_bytes(connection) - empty_bytes
        _repeat(connection)
        grow = [
            msgspec.structs.replace(frame, time_ms=frame.time_ms + _DAY_MS)
            for frame in whole[:_GROWING]
        ]
        tail.write(connection, [(frame, described) for frame in grow])
        chosen = msgspec.structs.replace(
            described[0], metrics=described[0].metrics[:_CHOSEN]
        )
        begun_s = time.perf_counter()
        step_ms = _DAY_MS / _STEPS
        row_ms = fitting_step_ms(_DAY_MS, step_ms, _CHOSEN)
        end_ms = grow[-1].time_ms
        span = (end_ms - _DAY_MS, end_ms)
        readings = read_archive(connection, *span, {0: chosen}, row_ms)[0]
        in_steps(readings, range(_CHOSEN), span[0], step_ms, _STEPS)
        read_s = time.perf_counter() - begun_s
        assert len(readings.ends_ms) > _STEPS
    return taken_bytes, cpu_s, read_s


def _repeat(connection: sqlite3.Connection) -> None:
    """Make a day of an hour: its summaries, 23 times later."""
    rows = connection.execute(
        "SELECT step_ms, description, from_ms, to_ms, columns FROM segment"
        " WHERE step_ms > 0"
    ).fetchall()
    with transaction(connection):
        for number, (step, described, from_ms, to_ms, packed) in itertools.product(
            range(1, 24), rows
        ):
            table = unpack(packed, step)
            later_ms = number * 3_600_000.0
            moved = {
                name: column + later_ms if name in (FROM_MS, TO_MS) else column
                for name, column in table.columns.items()
            }
            connection.execute(
                "INSERT INTO segment (step_ms, description, from_ms, to_ms, columns)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    step,
                    described,
                    from_ms + later_ms,
                    to_ms + later_ms,
                    pack(Table(moved, table.words)),
                ),
            )


def plain(folder: Path, whole: Sequence[Frame]) -> tuple[float, float, float]:
    """The same by rows of compressed JSON; a day is its hour, read 24 times."""
    encode = msgspec.json.Encoder().encode
    with contextlib.closing(sqlite3.connect(folder / "plain.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE second (time_ms REAL, messages BLOB)")
        begun_s = time.thread_time()
        for second in _batched(whole, RATE_HZ):
            packed = zlib.compress(b"\n".join(map(encode, second)), 3)
            row = (second[0].time_ms, packed)
            with connection:
                connection.execute("INSERT INTO second VALUES (?, ?)", row)
        cpu_s = time.thread_time() - begun_s
        taken_bytes = size_bytes(connection)
        begun_s = time.perf_counter()
        for _ in range(24):
            rows = connection.execute("SELECT messages FROM second ORDER BY time_ms")
            lines = (
                line
                for (packed,) in rows
                for line in zlib.decompress(packed).split(b"\n")
            )
            readings = read_frames(lines, {0: devices()[0]})[0]
            in_steps(readings, range(_CHOSEN), BEGIN_MS, 3_600_000 / 25, 25)
        read_s = time.perf_counter() - begun_s
    return taken_bytes, cpu_s, read_s


def parquet(folder: Path, whole: Sequence[Frame]) -> tuple[float, float, float]:
    """The same as Parquet files; the newest seconds would need a log beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    begun_s = time.process_time()
    paths = []
    for number, part in enumerate(_batched(whole, 300 * RATE_HZ)):
        columns = {"time_ms": np.array([frame.time_ms for frame in part])}
        for position in range(len(part[0].readings)):
            block = np.array(
                [frame.readings[position].values for frame in part], dtype=np.float64
            )
            for at in range(block.shape[1]):
                columns[f"{position} {at}"] = block[:, at]
        paths.append(folder / f"{number}.parquet")
        pq.write_table(pa.table(columns), paths[-1], compression="zstd")
    cpu_s = time.process_time() - begun_s
    taken_bytes = sum(path.stat().st_size for path in paths)
    names = ["time_ms", *(f"0 {at}" for at in range(_CHOSEN))]
    begun_s = time.perf_counter()
    for path in paths * 24:
        table = pq.read_table(path, columns=names)
        for name in names:
            table[name].to_numpy()
    return taken_bytes, cpu_s, time.perf_counter() - begun_s


def main() -> None:
    """Print the table; write it where that is asked for."""
    options = ask(__doc__)
    whole = hour()
    ways: dict[str, Callable[[Path, Sequence[Frame]], tuple[float, float, float]]] = {
        "the archive": archived,
        "rows of compressed JSON": plain,
    }
    if importlib.util.find_spec("pyarrow"):
        ways["Parquet, zstd"] = parquet
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                figures[name].append(way(Path(folder), whole))
    lines = [
        f"{_ROUNDS} rounds, least to most. Eight GPUs at 10 Hz with 60 metrics each, "
        "in an order of chance: more than a GPU tells. A real H100 tells 46: 231 MB "
        "(docs/evidence/archive-h100.md).",
        "",
        "| way | MB a day | CPU, % of a core | 4 metrics of a day, s |",
        "| --- | --- | --- | --- |",
    ]
    for name, rounds in figures.items():
        sizes, cpus, reads = zip(*rounds, strict=True)
        lines.append(
            f"| {name} | {min(sizes) * 24 / 1e6:.0f} | {_range(cpus, 100 / HOUR_S)} "
            f"| {_range(reads, 1)} |"
        )
    tell(options, HEADING, "\n".join(lines))


def _range(values: Sequence[float], scale: float) -> str:
    return f"{min(values) * scale:.2f} to {max(values) * scale:.2f}"


if __name__ == "__main__":
    main()
