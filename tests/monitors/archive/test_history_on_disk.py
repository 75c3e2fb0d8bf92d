"""What was read comes back: frames exactly, and long spans from summaries."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.monitors.archive.machine import BEGIN_MS, DEVICES, METRICS, frames, gpu
from warpbook_monitors.archive.database import connect, size_bytes, transaction
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.frame_table import SEQ
from warpbook_monitors.archive.limits import DAY_MS, Limits
from warpbook_monitors.archive.lookup import archived_messages, read_archive
from warpbook_monitors.archive.retention import drop_oldest
from warpbook_monitors.archive.segments import next_merge
from warpbook_monitors.archive.steps import HOUR, MINUTE, SECOND, fitting_step_ms
from warpbook_monitors.archive.table import FROM_MS, TO_MS, Table, pack, unpack
from warpbook_monitors.archive.tail import Tail
from warpbook_monitors.frames import Device, Event, Frame, Gap, Metric
from warpbook_monitors.history.history import Message
from warpbook_monitors.history.readings import read_frames


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = connect(tmp_path / "archive.db")
    yield connection
    connection.close()


def keep(
    connection: sqlite3.Connection,
    messages: Sequence[Message],
    devices: tuple[Device, ...] = DEVICES,
    tail: Tail | None = None,
) -> Tail:
    """Write messages a second at a time, as the archive does."""
    tail = tail or Tail()
    for begin in range(0, len(messages), 10):
        tail.write(connection, [(m, devices) for m in messages[begin : begin + 10]])
    return tail


def merge(connection: sqlite3.Connection, now_ms: float) -> None:
    with transaction(connection):
        while next_merge(connection, now_ms):
            pass


def segments(connection: sqlite3.Connection, step_ms: int) -> int:
    count = "SELECT count(*) FROM segment WHERE step_ms = ?"
    return int(connection.execute(count, (step_ms,)).fetchone()[0])


def test_every_message_comes_back_as_it_was(connection: sqlite3.Connection) -> None:
    written: list[Message] = list(frames(7000))
    gap = Gap(BEGIN_MS + 5, BEGIN_MS + 250.0, "not_watched", "Nobody watched.")
    fault = Event(BEGIN_MS + 777, "gpu:0", "xid", 79, "fault", "Lost", "…", "…")
    keep(connection, [gap, fault, *written])
    read = list(archived_messages(connection, 0, BEGIN_MS + DAY_MS, DEVICES))
    assert [m for m in read if isinstance(m, Frame)] == written
    assert [m for m in read if not isinstance(m, Frame)] == [gap, fault]
    times_ms = [m.to_ms if isinstance(m, Gap) else m.time_ms for m in read]
    assert times_ms == sorted(times_ms)
    # most of it is in segments, the newest minutes are not yet
    assert segments(connection, 0) == 2


def test_readings_are_those_of_the_memory(connection: sqlite3.Connection) -> None:
    written = list(frames(4000))
    keep(connection, written)
    span = (BEGIN_MS + 280_000, BEGIN_MS + 330_000)
    part = [f for f in written if span[0] <= f.time_ms <= span[1]]
    wanted = read_frames(map(msgspec.json.encode, part), dict(enumerate(DEVICES)))
    read = read_archive(connection, *span, dict(enumerate(DEVICES)), 0)
    for position in (0, 1):
        np.testing.assert_array_equal(read[position].ends_ms, wanted[position].ends_ms)
        np.testing.assert_array_equal(read[position].mean, wanted[position].mean)
        np.testing.assert_array_equal(read[position].reasons, wanted[position].reasons)


@pytest.mark.parametrize("step_ms", [SECOND, MINUTE, HOUR])
def test_summaries_tell_the_least_mean_and_most_of_their_step(
    connection: sqlite3.Connection, step_ms: int
) -> None:
    written = list(frames(7 * 3000))
    keep(connection, written)
    merge(connection, BEGIN_MS + 2 * DAY_MS)
    readings = read_archive(
        connection, BEGIN_MS, BEGIN_MS + DAY_MS, {0: DEVICES[0]}, step_ms
    )[0]
    # of the hour that is not over, the tail is a row of its own
    assert len(readings.ends_ms) == -(-2_100_000 // step_ms) + (step_ms == HOUR)
    for row in range(0, len(readings.ends_ms), 97):
        begin_ms, end_ms = readings.starts_ms[row], readings.ends_ms[row]
        part = [f.readings[0].values for f in written if begin_ms < f.time_ms <= end_ms]
        table = np.array(part, dtype=float)
        np.testing.assert_array_equal(readings.least[row], table.min(axis=0))
        np.testing.assert_array_equal(readings.most[row], table.max(axis=0))
        np.testing.assert_allclose(readings.mean[row], table.mean(axis=0), rtol=1e-3)
        held = np.nanmax(readings.reasons[row])
        assert held == pytest.approx((table[:, 3] > 0).mean(), rel=1e-3)


def test_a_period_that_is_over_is_one_segment(connection: sqlite3.Connection) -> None:
    keep(connection, list(frames(14 * 300, step_ms=1000.0)))
    assert segments(connection, SECOND) == 13
    merge(connection, BEGIN_MS + 2 * DAY_MS)
    assert [segments(connection, step) for step in (SECOND, MINUTE, HOUR)] == [2, 1, 1]
    hours = read_archive(connection, 0, BEGIN_MS + DAY_MS, {0: DEVICES[0]}, HOUR)
    covered_ms = hours[0].ends_ms - hours[0].starts_ms
    assert covered_ms.sum() == 14 * 300_000 and covered_ms[0] == 3_600_000


def test_what_a_kill_left_is_taken_up(connection: sqlite3.Connection) -> None:
    written = list(frames(5000))
    keep(connection, written[:3777])
    again = Tail()
    assert again.recover(connection) == 3777 - 3000
    keep(connection, written[3777:], tail=again)
    read = list(archived_messages(connection, 0, BEGIN_MS + DAY_MS, DEVICES))
    assert read == written
    assert segments(connection, 0) == 1


def test_a_second_that_is_damaged_costs_no_other(
    connection: sqlite3.Connection,
) -> None:
    written = list(frames(200))
    keep(connection, written)
    connection.execute("UPDATE recent SET messages = x'00ff' WHERE number = 7")
    assert Tail().recover(connection) == 190
    read = list(archived_messages(connection, 0, BEGIN_MS + DAY_MS, DEVICES))
    assert len(read) == 190


def test_after_a_restore_what_comes_next_tells_of_its_own_devices(
    connection: sqlite3.Connection,
) -> None:
    """Rows without them were lost, or given to whoever was told of last."""
    written = list(frames(60))
    others = (gpu(7), gpu(8))
    tail = keep(connection, written[:30])
    connection.execute("DELETE FROM recent")
    keep(connection, list(frames(10, BEGIN_MS + 50, seq=500)), others)
    keep(connection, written[30:], tail=tail)
    read = list(archived_messages(connection, 0, BEGIN_MS + DAY_MS, DEVICES))
    assert [f for f in read if isinstance(f, Frame) and f.readings] == written[30:]


@pytest.mark.parametrize("damage", ["no begin", "no end", "too many"])
def test_segments_that_can_not_be_merged_stop_nothing(
    connection: sqlite3.Connection, damage: str
) -> None:
    keep(connection, list(frames(14 * 300, step_ms=1000.0)))
    # twelve are all of an hour
    damaged = 12 if damage == "no begin" else 2
    if damage == "too many":
        rows = np.arange(99_000) + BEGIN_MS
        columns = {TO_MS: rows, FROM_MS: rows - 1}
    else:
        rows = np.arange(3) * 1000 + BEGIN_MS
        columns = {TO_MS: rows if damage == "no begin" else rows * np.nan}
        columns |= {FROM_MS: rows} if damage == "no end" else {}
    packed = pack(Table(columns, {}))
    connection.execute(
        "UPDATE segment SET columns = ? WHERE number IN"
        " (SELECT number FROM segment WHERE step_ms = 1000 ORDER BY number LIMIT ?)",
        (packed, damaged),
    )
    devices = {0: DEVICES[0]}
    for is_merged in (False, True):
        if is_merged:
            merge(connection, BEGIN_MS + 2 * DAY_MS)
            assert segments(connection, SECOND) == 1 + (damaged < 12)
        try:
            read = read_archive(connection, 0, BEGIN_MS + DAY_MS, devices, SECOND)
        except ArchiveError:
            assert damage == "too many" and not is_merged
        else:
            assert len(read[0].ends_ms) >= (14 - damaged) * 300 - 10


def test_frames_without_a_number_are_left_out(connection: sqlite3.Connection) -> None:
    written = list(frames(3100))
    keep(connection, written)
    ((number, packed),) = connection.execute(
        "SELECT number, columns FROM segment WHERE step_ms = 0"
    )
    table = unpack(packed, 0)
    table.columns[SEQ][:3] = (np.nan, 1e300, -1)
    for columns in (
        table.columns,
        {k: v for k, v in table.columns.items() if k != SEQ},
    ):
        connection.execute(
            "UPDATE segment SET columns = ? WHERE number = ?",
            (pack(Table(columns, table.words)), number),
        )
        read = list(archived_messages(connection, 0, BEGIN_MS + DAY_MS, DEVICES))
        assert read == (written[3:] if SEQ in columns else written[3000:])


def test_a_clock_that_was_set_back_leaves_a_hole(
    connection: sqlite3.Connection,
) -> None:
    before = list(frames(6000))
    # ten minutes were read; then the clock goes back by five
    after = list(frames(1000, BEGIN_MS + 300_000, seq=6000))
    keep(connection, [*before, *after])
    readings = read_archive(
        connection, BEGIN_MS, BEGIN_MS + DAY_MS, {0: DEVICES[0]}, SECOND
    )[0]
    assert (np.diff(readings.ends_ms) > 0).all(), "no moment is told twice"
    within = readings.ends_ms > BEGIN_MS + 300_000
    newer = readings.most[:, 4] >= after[0].readings[0].values[4]  # type: ignore[operator]
    at_ms = readings.ends_ms[newer]
    assert at_ms.min() == BEGIN_MS + 301_000 and at_ms.max() == BEGIN_MS + 400_000
    assert within.sum() > newer.sum(), "what came later by the old clock is there"
    holes = np.diff(readings.ends_ms)[np.diff(newer.astype(int)) != 0]
    assert (holes >= 2000).all() and len(holes) == 2


def test_a_machine_that_slept_leaves_a_hole(connection: sqlite3.Connection) -> None:
    keep(connection, [*frames(100), *frames(100, BEGIN_MS + 3_600_000, seq=100)])
    readings = read_archive(
        connection, BEGIN_MS, BEGIN_MS + DAY_MS, {0: DEVICES[0]}, SECOND
    )[0]
    covered_ms = (readings.ends_ms - readings.starts_ms).sum()
    assert covered_ms == 20_000, "nothing is told of the hour between"


def test_devices_that_changed_are_found_by_name(connection: sqlite3.Connection) -> None:
    keep(connection, list(frames(50)))
    more = (Metric("temperature_celsius", "celsius", "Temperature"), *METRICS)
    newer = (gpu(1), gpu(0, metrics=more))
    read = read_archive(
        connection, 0, BEGIN_MS + DAY_MS, dict(enumerate(newer)), SECOND
    )
    assert np.isnan(read[1].mean[:, 0]).all(), "nobody read the temperature then"
    assert np.isfinite(read[1].mean[:, 1]).all()
    assert np.isnan(read[0].mean[:, 0]).all(), "GPU 1 has never told its power"


def test_a_recording_is_another_device(connection: sqlite3.Connection) -> None:
    keep(connection, list(frames(50)), (gpu(0, "replay"), gpu(1, "replay")))
    live = read_archive(connection, 0, BEGIN_MS + DAY_MS, {0: gpu(0)}, SECOND)
    assert len(live[0].ends_ms) == 0
    played = read_archive(
        connection, 0, BEGIN_MS + DAY_MS, {0: gpu(0, "replay")}, SECOND
    )
    assert len(played[0].ends_ms) > 0


def test_it_is_kept_since_it_was_read_and_not_since_the_hour_began(
    connection: sqlite3.Connection,
) -> None:
    begin_ms = BEGIN_MS + 1_800_000
    keep(connection, list(frames(400, begin_ms, 1000.0)))
    for step_ms in (SECOND, MINUTE, HOUR):
        assert oldest_ms(connection, step_ms) == begin_ms


def test_the_oldest_goes_first_by_age_and_by_size(
    connection: sqlite3.Connection,
) -> None:
    keep(connection, list(frames(10 * 300, step_ms=1000.0)))
    now_ms = BEGIN_MS + 3_000_000
    limits = Limits(frames_ms=1_600_000, summaries_ms=2_200_000)
    with transaction(connection):
        while drop_oldest(connection, limits, now_ms):
            pass
    assert oldest_ms(connection, 0) >= now_ms - 1_900_000
    assert oldest_ms(connection, SECOND) >= now_ms - 2_500_000
    assert segments(connection, SECOND) > segments(connection, 0) > 0
    small = Limits(size_bytes=size_bytes(connection) - 20_000)
    with transaction(connection):
        while drop_oldest(connection, small, now_ms):
            pass
    assert size_bytes(connection) <= small.size_bytes
    assert segments(connection, 0) > 0, "the newest stay"


def oldest_ms(connection: sqlite3.Connection, step_ms: int) -> float:
    oldest = "SELECT min(from_ms) FROM segment WHERE step_ms = ?"
    return float(connection.execute(oldest, (step_ms,)).fetchone()[0])


def test_a_span_of_any_length_fits_in_memory() -> None:
    for length_ms in (60_000.0, DAY_MS, 30 * DAY_MS):
        for wanted_ms in (0, 1000, 144_000, 5_000_000):
            step_ms = fitting_step_ms(length_ms, wanted_ms, 8 * 60)
            assert length_ms / step_ms * 8 * 60 * 3 <= 8_000_000
            assert fitting_step_ms(length_ms, wanted_ms, 1) >= length_ms / 100_000
    assert fitting_step_ms(DAY_MS, 0, 4) == SECOND
    assert fitting_step_ms(DAY_MS, 144_000, 4) == MINUTE
    assert fitting_step_ms(3_600_000, 6_000, 4) == SECOND
