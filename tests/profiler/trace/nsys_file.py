"""Writes what `nsys export --type sqlite` writes, by NVIDIA's documented schema.

No export of a real run is at hand: the events are those of a real trace of torch.
"""

import contextlib
import re
import sqlite3
import struct
from pathlib import Path
from typing import Any

from warpbook_profiler.events.columns import NONE, Category, Columns
from warpbook_profiler.files.chrome import read_chrome_trace

PID, TID = 4321, 77
_PAGE = 4096
GLOBAL_PID = PID << 24
GLOBAL_TID = GLOBAL_PID | TID
#: "SQLite Export Schema Reference" of Nsight Systems, the columns that are of use
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
  start INTEGER NOT NULL, -- Event start timestamp (ns), as seen by the GPU.
  end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
  blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
  localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
  gridId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
  start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
  globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,
  deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
  start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
  globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
  start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (
  start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE TARGET_INFO_GPU (
  vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, smCount INTEGER,
  computeMajor INTEGER, computeMinor INTEGER, maxWarpsPerSm INTEGER,
  threadsPerWarp INTEGER, maxRegistersPerSm INTEGER, maxShmemPerSm INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER NOT NULL);
"""
_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "PtoP": 10}
_MEMORY = {"Pageable": 1, "Pinned": 2, "Device": 3}
_COPY = re.compile(r"Memcpy (\w+) \((\w+) -> (\w+)\)")


def share_one_value(path: Path, table: str, column: int, kind: str, rows: int) -> None:
    """Give an empty table rows that all have one value of 900 kB in common.

    Each has the value's first bytes, and the number of the same page for the rest.

    Args:
        path: of a database with pages of 4096 bytes.
        table: which; its root page is taken.
        column: in which the value is; those before it are NULL.
        kind: "text" or "blob".
        rows: how many, at most 3200.
    """
    with contextlib.closing(sqlite3.connect(path)) as database:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = database.execute(query, (table,)).fetchone()
    pages = bytearray(path.read_bytes())
    # as SQLite computes what of a payload is in the cell itself: 489 bytes of it
    payload = 489 + 220 * (_PAGE - 4)
    head_bytes = column + 5
    value = (12 if kind == "blob" else 13) + 2 * (payload - head_bytes)
    head = bytes([head_bytes, *[0] * column]) + _varint(value).rjust(4, b"\x80")
    rest = len(pages) // _PAGE + 1
    for number in range(220):
        follows = rest + number + 1 if number < 219 else 0
        pages += struct.pack(">I", follows) + b"A" * (_PAGE - 4)
    local = head + b"A" * (489 - len(head)) + struct.pack(">I", rest)
    leaves = []
    for first in range(1, rows + 1, 8):
        ids = range(first, min(first + 8, rows + 1))
        cells = [_varint(payload) + _varint(row) + local for row in ids]
        pages += _page(b"", cells)
        leaves.append((len(pages) // _PAGE, ids[-1]))
    (last, _), before = leaves[-1], leaves[:-1]
    cells = [struct.pack(">I", page) + _varint(row) for page, row in before]
    pages[(root - 1) * _PAGE : root * _PAGE] = _page(struct.pack(">I", last), cells)
    pages[28:32] = struct.pack(">I", len(pages) // _PAGE)
    path.write_bytes(pages)


def _page(rightmost: bytes, cells: list[bytes]) -> bytes:
    """Write a page of a table: an inner one if it has a rightmost child."""
    page, end, places = bytearray(_PAGE), _PAGE, b""
    for cell in cells:
        end -= len(cell)
        page[end : end + len(cell)] = cell
        places += struct.pack(">H", end)
    head = struct.pack(">BHHHB", 5 if rightmost else 13, 0, len(cells), end, 0)
    start = head + rightmost + places
    page[: len(start)] = start
    return bytes(page)


def _varint(number: int) -> bytes:
    parts = [number & 127]
    while number := number >> 7:
        parts.append(number & 127 | 128)
    return bytes(reversed(parts))


def write_nsys(path: Path, source: Path) -> sqlite3.Connection:
    """Write a trace of torch as Nsight Systems would, and leave the file open."""
    events, run = read_chrome_trace(str(source))
    base_ns = int(events.start_ns[0])
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    for number, text in enumerate(events.names):
        is_call = re.match(r"cu(da)?[A-Z]", text)
        name_of_call = f"{text}_v7000" if is_call else text
        database.execute("INSERT INTO StringIds VALUES (?, ?)", (number, name_of_call))
    for row in range(len(events)):
        _insert(database, events, row, base_ns)
    gpu = run.gpus[0]
    database.execute(
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 0, ?, ?, ?, ?, 64, 32, ?, ?)",
        (
            *(gpu.name, gpu.sm_count, *(gpu.compute_capability or (0, 0))),
            *(gpu.registers_per_sm, gpu.shared_memory_per_sm_bytes),
        ),
    )
    database.execute(
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (base_ns,)
    )
    database.commit()
    return database


def _insert(
    database: sqlite3.Connection, events: Columns, row: int, base_ns: int
) -> None:
    begin = int(events.start_ns[row]) - base_ns
    end = begin + int(events.duration_ns[row])
    name = int(events.name[row])
    category = Category(events.category[row])
    work = (begin, end, int(events.device[row]), 1, int(events.track[row]))
    work += (int(events.correlation[row]), GLOBAL_PID)
    values: tuple[Any, ...]
    if category == Category.KERNEL:
        shape = events.shapes[events.shape[row]] if events.shape[row] != NONE else None
        launch = (1, 1, 1, 1, 1, 1) if shape is None else (*shape.grid, *shape.block)
        registers = 0 if shape is None else shape.registers_per_thread
        shared = 0 if shape is None else shape.shared_memory_bytes
        values = (*work, name, name, name, None, None, registers, *launch)
        _add(database, "KERNEL", (*values, 0, shared, 0, 0, row))
    elif category == Category.COPY:
        match = _COPY.match(events.names[name])
        assert match is not None
        values = (*work, int(events.size_bytes[row]), _KINDS[match[1]], None)
        _add(database, "MEMCPY", (*values, _MEMORY[match[2]], _MEMORY[match[3]]))
    elif category == Category.MEMSET:
        _add(database, "MEMSET", (*work, 0, int(events.size_bytes[row])))
    elif category == Category.API:
        values = (begin, end, 0, GLOBAL_TID, int(events.correlation[row]), name, 0)
        _add(database, "RUNTIME", (*values, None))


def _add(database: sqlite3.Connection, table: str, values: tuple[Any, ...]) -> None:
    marks = ", ".join("?" * len(values))
    database.execute(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES ({marks})", values
    )
